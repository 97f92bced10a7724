"""What a point of a comparison needs of its target, whatever kind of database that is; and PostgreSQL as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import psycopg
from psycopg import errors, sql

from kainite.base.errors import TargetError, TargetUnavailableError
from kainite.replicate import ledger
from kainite.replicate.ends import target_session
from kainite.replicate.ledger import LoadState
from kainite.replicate.stop_ledger import POSTGRESQL, UnresolvedUnit, decoded
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.tables import TableName
from kainite.replicate.verify_ledger import VerifySession, first_row

_LOCK_S: Final = 2
_LIMITS: Final = f"""
    SELECT set_config('lock_timeout', '{_LOCK_S}s', false),
           set_config('idle_in_transaction_session_timeout', '0', false), set_config('statement_timeout', '0', false)"""
_LOAD: Final = "SELECT state FROM kainite_load WHERE log_partition = %s AND state <> 'live'"

SeenTarget = tuple[str, tuple[UnresolvedUnit, ...]]
"""The name by which other sessions import a snapshot, empty where none can, and the units that are not in it."""


class PointView(Protocol):
    """Sessions with a target, before and under its snapshot."""

    def see(self, request: int) -> SeenTarget | None:
        """Takes the snapshot; returns None where the apply job does not stand at the point of the request any more.

        Raises:
            TargetUnavailableError: the target does not answer, or its tables are locked.
        """

    def hold(self) -> None:
        """Keeps others from writing the tables anew that the snapshot sees, behind :meth:`see`.

        Raises:
            TargetUnavailableError: a table was altered since, or the target does not answer.
        """

    def unready(self, place: int) -> dict[TableName, str]:
        """Returns which tables, in the snapshot, are not as of a place, with the reason.

        Raises:
            TargetError: all tables are being loaded.
        """


class PointTarget(Protocol):
    """A target of which snapshots are taken while its apply job stands at a point."""

    def session(self) -> AbstractContextManager[VerifySession]:
        """Gives a session in autocommit mode; raises TargetUnavailableError for any error of it."""

    def connect(self) -> AbstractContextManager[PointView]:
        """Gives sessions for a snapshot, which end with the ``with``; raises TargetUnavailableError."""


def unready_tables(rows: Iterable[tuple[str, str, int | None, str]], place: int) -> dict[TableName, str]:
    """Returns which tables are not as of a place, with the reason.

    Args:
        rows: schema, name, the place of the copy, and the state of each table that a load has copied.
        place: the place.
    """
    unready = {}
    for schema, name, position, state in rows:
        if state == OwnLoadState.GIVEN_UP:
            unready[schema, name] = "it was given up: kainite replicate reload"
        elif state != OwnLoadState.LIVE:
            unready[schema, name] = "it is being loaded by itself, and not live"
        elif position is not None and position > place:
            unready[schema, name] = "it was loaded after the point"
    return unready


def refuse_unfinished_load(state: str | None) -> None:
    """Raises TargetError where the load of all tables has a state, and is not live."""
    if state is not None and state != LoadState.LIVE:
        raise TargetError(f"the target is {state}, and not live: kainite replicate status tells more")


@dataclass(frozen=True, slots=True)
class PostgresPointTarget:
    """Implements :class:`PointTarget` with an exported snapshot.

    Attributes:
        url: the target; ``repr`` is never shown.
        log_partition: the log's name there.
        tables: the tables, as SQL, which are locked against being written anew.
    """

    url: str
    log_partition: str
    tables: Sequence[str]

    def session(self) -> AbstractContextManager[VerifySession]:
        return target_session(self.url, "kainite verify")

    @contextmanager
    def connect(self) -> Iterator[PointView]:
        with target_session(self.url, "kainite verify snapshot") as session:
            session.execute(_LIMITS)
            yield _PostgresView(session, self.log_partition, self.tables)


@dataclass(frozen=True, slots=True)
class _PostgresView:
    """Implements :class:`PointView`."""

    session: psycopg.Connection
    log_partition: str
    tables: Sequence[str]

    def see(self, request: int) -> SeenTarget | None:
        self.session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            # Before the snapshot, which so has the tables as they are locked.
            if self.tables:
                names = sql.SQL(", ").join(sql.SQL(name) for name in self.tables)
                self.session.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(names))
        except errors.LockNotAvailable:
            raise TargetUnavailableError(
                "the target's tables are locked by another session (ALTER TABLE, say)"
            ) from None
        row = first_row(self.session, POSTGRESQL.see, self.log_partition, request)
        return None if row is None else (row[1], decoded(row[0]))

    def hold(self) -> None:
        """Does nothing: the tables were locked before the snapshot was taken."""

    def unready(self, place: int) -> dict[TableName, str]:
        found = self.session.execute(ledger.IS_THERE).fetchone()
        if found is None or not found[0]:
            return {}
        state = self.session.execute(_LOAD, (self.log_partition,)).fetchone()
        refuse_unfinished_load(None if state is None else str(state[0]))
        return unready_tables(self.session.execute(ledger.POSITIONS, (self.log_partition,)).fetchall(), place)
