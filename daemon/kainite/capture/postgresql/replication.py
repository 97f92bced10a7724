"""Creates and reads a logical replication slot of PostgreSQL, over libpq's low-level interface (psycopg.pq).

:func:`create_slot` makes a slot and a snapshot of what was committed before it, so that an
initial copy and the slot's transactions meet without a gap. :class:`ReplicationStream` reads from
a slot. It acknowledges nothing by itself: after any restart PostgreSQL sends again what
:meth:`ReplicationStream.acknowledge` was not called for.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from psycopg import pq

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication_connection import (
    as_source_error,
    connect,
    execute,
    one_line,
    plain_name,
)
from kainite.capture.postgresql.replication_frames import (
    Frame,
    Keepalive,
    decode_frame,
    encode_status,
    format_lsn,
    parse_lsn,
)
from kainite.capture.postgresql.source_identity import SourceIdentity, SourceServer, check_source, timeline_ends

_STATUS_EVERY = 5.0
SILENT_S = 60.0
"""Seconds of waiting without a byte of the server, although it was asked for a reply each five, after which the
connection is taken for dead: a network that is cut without a word, or a server that is frozen."""
_SLOT_BUSY_LIMIT = 30.0
_SENDS_MESSAGES = 140000  # the server's version from which pgoutput sends logical messages
_FAILOVER = 170000  # the server's version from which a standby may keep a copy of a slot
_SLOT_BUSY = b"55006"
_SLOT_ANEW = (
    "what committed since the offset cannot be read any more; create the slot anew, copy the tables again, and begin"
    " with the new slot's LSN and the number of the last transaction (docs/replicate.md, *A lost slot*)"
)


@dataclass(frozen=True, slots=True)
class SourceSlot:
    """A source: a database's connection URL, and a replication slot and a publication of that database."""

    url: str
    slot: str
    publication: str


@dataclass(frozen=True, slots=True)
class CreatedSlot:
    """A new slot: it sends the transactions that commit after ``snapshot``, from ``lsn`` on."""

    lsn: int
    snapshot: str


@contextmanager
def create_slot(source: SourceSlot) -> Iterator[CreatedSlot]:
    """Creates a slot; other sessions may import its snapshot inside the ``with``.

    From PostgreSQL 17 on the slot has the property FAILOVER: a standby with ``sync_replication_slots`` keeps a copy of
    it, and whoever reads goes on there after a promotion. Without standbys the property costs nothing.

    Raises:
        SourceError: the server refused (the slot exists, ``wal_level`` is not ``logical`` …).
    """
    connection = connect(source.url)
    try:
        options = "SNAPSHOT 'export', FAILOVER" if _keeps_for_standbys(connection) else "SNAPSHOT 'export'"
        command = f"CREATE_REPLICATION_SLOT {plain_name(source.slot)} LOGICAL pgoutput ({options})"
        result = execute(connection, command)
        lsn, snapshot = (result.get_value(0, column) or b"" for column in (1, 2))
        yield CreatedSlot(parse_lsn(lsn.decode()), snapshot.decode())
    finally:
        connection.finish()


class ReplicationStream:
    """Reads the frames of one slot, from an LSN on; a context manager.

    Invariant: the flush LSN of every status update is the last one acknowledged, never a later one.

    Attributes:
        identity: the server and database that are read.
    """

    def __init__(self, connection: pq.abc.PGconn, start_lsn: int, identity: SourceIdentity) -> None:
        self.identity = identity
        self._connection = connection
        self._waited = 0.0  # seconds of waiting since the server's last byte
        self._received = start_lsn
        self._acknowledged = start_lsn
        self._status_due = time.monotonic() + _STATUS_EVERY

    @classmethod
    def open(cls, source: SourceSlot, start_lsn: int, noted: SourceIdentity | None = None) -> Self:
        """Starts reading the transactions that end after ``start_lsn``.

        Waits up to 30 s while the server still takes a killed reader for the slot's active one. A reader that lives may
        move the slot meanwhile, so whoever must miss nothing looks at it again, with :func:`check_not_beyond`.

        Args:
            source: the database, slot and publication that are read.
            start_lsn: everything that committed before it has been extracted.
            noted: the source that ``start_lsn`` was read from; None where nobody has noted it.

        Raises:
            SourceError: the server refused, is not the noted source, or the slot has acknowledged more than
                ``start_lsn``.
        """
        connection = connect(source.url)
        try:
            server = _identify(connection, noted)
            check_source(noted, start_lsn, server)
            _check_slot(connection, source.slot, start_lsn)
            _start(connection, source, start_lsn)
        except BaseException:
            connection.finish()
            raise
        return cls(connection, start_lsn, server.identity)

    def receive(self, timeout: float) -> Frame | None:
        """Returns the next frame, or None after ``timeout`` seconds without one; answers keepalives.

        Raises:
            SourceError: the connection is gone, the server has said nothing for :data:`SILENT_S` seconds of waiting,
                or the bytes are no frame.
        """
        self._send_status_if_due()
        began = time.monotonic()
        data = self._read(timeout)
        if data is None:
            # Only waiting counts: while nobody calls this method, the server's bytes wait unread in the socket.
            self._waited += time.monotonic() - began
            if self._waited > SILENT_S:
                raise SourceError(
                    f"replication: the source server has said nothing for {SILENT_S:g} s, although it was asked to"
                )
            return None
        self._waited = 0.0
        frame = decode_frame(data)
        self._received = max(self._received, frame.end_lsn)
        if isinstance(frame, Keepalive) and frame.reply_requested:
            self._send_status()
        return frame

    def acknowledge(self, lsn: int) -> None:
        """Tells the server that everything before ``lsn`` is safe; the server may forget that part at once."""
        self._acknowledged = max(self._acknowledged, lsn)
        self._received = max(self._received, lsn)
        self._send_status()

    def keep_alive(self) -> None:
        """Tells the server that the reader lives, if it is time to; the server cuts a silent one (wal_sender_timeout).

        Raises:
            SourceError: the connection is gone.
        """
        self._send_status_if_due()

    def close(self) -> None:
        self._connection.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, timeout: float) -> bytes | None:
        data = self._try_read()
        if data is None and timeout > 0:
            select.select([self._connection.socket], [], [], timeout)
        if data is None:
            with as_source_error():
                self._connection.consume_input()
            data = self._try_read()
        return data

    def _try_read(self) -> bytes | None:
        with as_source_error():
            size, data = self._connection.get_copy_data(1)
        if size < 0:
            raise SourceError(f"replication: the source server ended the stream{self._why_it_ended()}")
        return bytes(data) if size else None

    def _why_it_ended(self) -> str:
        with as_source_error():
            result = self._connection.get_result()
        reason = "" if result is None else one_line(result.error_message)
        return f": {reason}" if reason else ""

    def _send_status_if_due(self) -> None:
        if time.monotonic() >= self._status_due:
            self._send_status()

    def _send_status(self) -> None:
        self._status_due = time.monotonic() + _STATUS_EVERY
        with as_source_error():
            self._connection.put_copy_data(encode_status(self._received, self._acknowledged, time.time_ns() // 1000))
            self._connection.flush()


def check_not_beyond(slot: str, confirmed_lsn: int, start_lsn: int) -> None:
    """Raises SourceError where a slot has acknowledged more than ``start_lsn``.

    The server silently skips transactions up to the slot's position, and the caller lacks some of these.
    """
    if confirmed_lsn > start_lsn:
        raise SourceError(
            f"replication slot {slot} is at {format_lsn(confirmed_lsn)}, after {format_lsn(start_lsn)} that was asked"
            " for: what committed between them is lost; copy the tables again"
        )


def _start(connection: pq.abc.PGconn, source: SourceSlot, start_lsn: int) -> None:
    messages = ", messages 'true'" if connection.server_version >= _SENDS_MESSAGES else ""
    command = (
        f"START_REPLICATION SLOT {plain_name(source.slot)} LOGICAL {format_lsn(start_lsn)}"
        f" (proto_version '1', publication_names '{plain_name(source.publication)}'{messages})"
    )
    deadline = time.monotonic() + _SLOT_BUSY_LIMIT
    while True:
        result = connection.exec_(command.encode())
        if result.status == pq.ExecStatus.COPY_BOTH:
            return
        if result.error_field(pq.DiagnosticField.SQLSTATE) != _SLOT_BUSY or time.monotonic() > deadline:
            raise SourceError(f"replication slot {source.slot}: {one_line(result.error_message)}")
        time.sleep(0.1)


def _keeps_for_standbys(connection: pq.abc.PGconn) -> bool:
    """Tells whether a slot of the server may have copies on standbys; one that is made on a standby has none."""
    if connection.server_version < _FAILOVER:
        return False
    return execute(connection, "SELECT pg_is_in_recovery()").get_value(0, 0) == b"f"


def _identify(connection: pq.abc.PGconn, noted: SourceIdentity | None) -> SourceServer:
    """Asks the server who it is (PostgreSQL manual, *Streaming Replication Protocol*, IDENTIFY_SYSTEM)."""
    result = execute(connection, "IDENTIFY_SYSTEM")
    system, timeline, written, database = ((result.get_value(0, column) or b"").decode() for column in range(4))
    identity = SourceIdentity(system, int(timeline), database)
    promoted = noted is not None and noted.timeline < identity.timeline
    return SourceServer(identity, parse_lsn(written), _history(connection, identity.timeline) if promoted else {})


def _history(connection: pq.abc.PGconn, timeline: int) -> dict[int, int]:
    result = execute(connection, f"TIMELINE_HISTORY {timeline}")
    return timeline_ends((result.get_value(0, 1) or b"").decode("utf-8", "replace"))


def _check_slot(connection: pq.abc.PGconn, slot: str, start_lsn: int) -> None:
    """Raises SourceError where the slot is missing, or ahead of ``start_lsn``."""
    query = (
        "SELECT confirmed_flush_lsn, wal_status, to_jsonb(s) ->> 'invalidation_reason' FROM pg_replication_slots s"
        f" WHERE slot_name = '{plain_name(slot)}'"
    )
    result = execute(connection, query)
    value = result.get_value(0, 0) if result.ntuples else None
    if value is not None and result.get_value(0, 1) == b"lost":
        why = (result.get_value(0, 2) or b"wal_removed").decode()
        raise SourceError(
            f"replication slot {slot} was invalidated ({why}): the server has removed WAL that the slot had not sent,"
            f" or will; max_slot_wal_keep_size is one limit. {_SLOT_ANEW}"
        )
    if value is None:
        # A slot that is made now sends what commits from now on. To advise no more than that would lose the rest.
        raise SourceError(
            f"replication slot {slot} does not exist on the source server. Before the first extraction: create it with"
            f" plugin pgoutput, and begin with its LSN. After that: {_SLOT_ANEW}"
        )
    check_not_beyond(slot, parse_lsn(value.decode()), start_lsn)
