"""Watches whether anybody changes what a source publishes, from one place of its WAL on.

At a cut-over nobody may write in the source any more, and no server tells that for certain: a session may switch
``default_transaction_read_only`` off for itself. What is certain is what has committed. So a temporary slot, beside the
main one, decodes all that commits from its consistent point on: each change of a published table is seen, whoever made
it. The server makes the slot when the transactions that were open before have ended, and each of them is so before the
point.

A *marker* is a transaction without changes (:mod:`~kainite.capture.postgresql.heartbeat`) that the watch itself commits
behind the point. It goes the whole way as a unit of work. Where the units are applied in the order of their commits,
everything before the point is in the target when the marker is.

States: *open*, as long as the connection lives. The slot ends with the connection, and nothing is left on the server.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from psycopg import errors, sql

from kainite.base.errors import SourceError
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S, in_the_way
from kainite.capture.postgresql.heartbeat import PREFIX
from kainite.capture.postgresql.pgoutput import (
    BeginMessage,
    DeleteMessage,
    InsertMessage,
    LogicalMessage,
    LostChange,
    Message,
    Relation,
    TruncateMessage,
    UpdateMessage,
    decode,
)
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.postgresql.replication_connection import as_source_error
from kainite.capture.postgresql.replication_frames import format_lsn, parse_lsn
from kainite.capture.postgresql.transactions import SourceTransaction
from kainite.targets.postgresql.connection import connect

_SESSION: Final = """
    SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', %s, false),
           set_config('synchronous_commit', 'local', false)"""
_CREATE: Final = "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput', true)"
_MARK: Final = "SELECT pg_logical_emit_message(true, %s, ''), pg_current_xact_id()::text"
_DECODED: Final = """
    SELECT data FROM pg_logical_slot_get_binary_changes(
        %s, NULL, NULL, 'proto_version', '1', 'publication_names', %s, 'messages', 'true')"""
_XIDS: Final = 2**32


class QuietSource:
    """A watch over a source; :func:`watching` makes one.

    Args:
        connection: a session with the source, in autocommit mode, whose temporary slot it is.
        source: the source.
        slot: the temporary slot's name.
        point: the slot's consistent point.

    Attributes:
        point: an LSN: of what committed behind it, nothing escapes the watch.
    """

    def __init__(self, connection: psycopg.Connection, source: SourceSlot, slot: str, point: int) -> None:
        self._connection = connection
        self._source = source
        self._slot = slot
        self._relations: dict[int, Relation] = {}
        self.point = point

    def mark(self) -> SourceTransaction:
        """Commits a marker; returns it, when all that committed before it is seen to change nothing.

        Raises:
            SourceError: somebody writes; or the marker was not decoded.
        """
        with as_source_error(), self._connection.transaction():
            # A source that is closed takes no writes by default, and a message is none that its tables would show.
            self._connection.execute("SET TRANSACTION READ WRITE")
            row: Any = self._connection.execute(_MARK, (PREFIX,)).fetchone()
        xid = int(row[1]) % _XIDS
        for transaction, message in self._decoded():
            if isinstance(message, LogicalMessage) and transaction.xid == xid and message.prefix == PREFIX:
                return transaction
        raise SourceError("the cut-over's own marker does not come out of the source: start it again")

    def look(self) -> None:
        """Looks at all that has committed since the last look.

        Raises:
            SourceError: somebody has written in a published table since the point.
        """
        for _ in self._decoded():
            pass

    def _decoded(self) -> Iterator[tuple[SourceTransaction, Message]]:
        """Yields the messages of what committed since the last call; raises SourceError at the first change."""
        names = sql.Identifier(self._source.publication).as_string(None)
        with as_source_error():
            rows = self._connection.execute(_DECODED, (self._slot, names)).fetchall()
        transaction: SourceTransaction | None = None
        for (data,) in rows:
            message = decode(bytes(data))
            if isinstance(message, BeginMessage):
                transaction = SourceTransaction(message.xid, message.final_lsn, message.commit_us)
            elif isinstance(message, Relation):
                self._relations[message.oid] = message
            elif (changed := _changed(message)) and transaction is not None:
                raise SourceError(self._still_written(transaction, changed))
            if transaction is not None:
                yield transaction, message

    def _still_written(self, transaction: SourceTransaction, changed: Sequence[int]) -> str:
        known = [self._relations[oid] for oid in changed if oid in self._relations]
        tables = ", ".join(f"{one.schema}.{one.name}" for one in known) or "a published table"
        at = datetime.fromtimestamp(transaction.commit_us / 1e6, UTC).isoformat(timespec="seconds")
        return (
            f"somebody still writes in the source: transaction {transaction.xid} has changed {tables} and committed at"
            f" {at} ({format_lsn(transaction.commit_lsn)}), behind the cut-over's point {format_lsn(self.point)}. Find"
            " and end it, then start the cut-over again; the target is live as before"
        )


@contextmanager
def watching(source: SourceSlot, lock_wait: float = LOCK_WAIT_S) -> Iterator[QuietSource]:
    """Watches a source from a new point on, inside the ``with``.

    Args:
        source: the source; its publication says which tables.
        lock_wait: seconds that are waited for open transactions that write.

    Raises:
        SourceError: a transaction is open for too long, or the server refused.
    """
    with as_source_error():
        opened = connect(source.url, "kainite cutover")
    with closing(opened) as connection:
        slot = f"kainite_cutover_{connection.info.backend_pid}"
        with as_source_error():
            connection.execute(_SESSION, (f"{round(lock_wait * 1000)}ms",))
            point = _create(connection, source.url, slot)
        yield QuietSource(connection, source, slot, point)


def _create(connection: psycopg.Connection, url: str, slot: str) -> int:
    """Makes the temporary slot; returns its consistent point."""
    began = time.monotonic()
    try:
        row: Any = connection.execute(_CREATE, (slot,)).fetchone()
    except errors.LockNotAvailable as error:
        raise SourceError(in_the_way(url, str(error.diag.message_primary), time.monotonic() - began)) from None
    return parse_lsn(row[0])


def _changed(message: Message) -> Sequence[int]:
    """Returns the OIDs of the tables that a message changes."""
    match message:
        case InsertMessage() | UpdateMessage() | DeleteMessage() | LostChange():
            return (message.relation,)
        case TruncateMessage():
            return message.relations
        case _:
            return ()
