"""What a point of a comparison needs of its source, whatever kind of database that is; and PostgreSQL as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from kainite.capture.postgresql import heartbeat
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S, consistent_snapshot
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.replicate.ends import LoadEnds, ReplicaEnds, source_session


@dataclass(frozen=True, slots=True)
class SourcePoint:
    """A snapshot of a source.

    Attributes:
        place: where it stands (:mod:`kainite.capture.places`): it has what committed before this place, and no more.
        snapshot: the name by which other sessions import it; empty where no other session can.
    """

    place: int
    snapshot: str


class PointSource(Protocol):
    """A source of which points are made."""

    @property
    def ends(self) -> LoadEnds:
        """Returns source and target."""

    def floor(self) -> int:
        """Returns a place that no later point lies before; raises SourceError."""

    def snapshot(self) -> AbstractContextManager[SourcePoint]:
        """Gives a snapshot, which lasts inside the ``with``; raises SourceError."""

    def beat(self) -> None:
        """Commits a transaction without changes that are carried, behind the point; raises SourceError."""

    def shown(self, place: int) -> str:
        """Returns a point as people read it."""


@dataclass(frozen=True, slots=True)
class PostgresPoints:
    """Implements :class:`PointSource` with an exported snapshot.

    Attributes:
        ends: source and target.
        oids: the tables, which are locked against being written anew.
        lock_wait: seconds to wait for open transactions.
    """

    ends: ReplicaEnds
    oids: Sequence[int]
    lock_wait: float = LOCK_WAIT_S

    def floor(self) -> int:
        """Returns the place in the WAL that is written next."""
        with source_session(self.ends.source.url) as source:
            row = source.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
        assert row is not None, "the statement returns a row"
        return int(row[0])

    @contextmanager
    def snapshot(self) -> Iterator[SourcePoint]:
        with consistent_snapshot(self.ends.source.url, lambda _: self.oids, self.lock_wait) as point:
            yield SourcePoint(point.lsn, point.snapshot)

    def beat(self) -> None:
        beat_once(self.ends.source.url)

    def shown(self, place: int) -> str:
        return format_lsn(place)


def beat_once(url: str) -> None:
    """Writes a heartbeat into a PostgreSQL source; raises SourceError."""
    with source_session(url) as source:
        source.execute("SELECT pg_logical_emit_message(true, %s, '')", (heartbeat.PREFIX,))
