"""MariaDB as the source of a point: sessions of this process whose snapshots have one place of the binlog.

No other session can take them over, so who compares reads through these sessions. They end with the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial

from kainite.base.errors import SourceError
from kainite.capture.mysql.heartbeat import TableHeartbeat
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.same_place import same_place
from kainite.capture.mysql.snapshot_session import SnapshotSession
from kainite.capture.mysql.snapshot_tables import SnapshotTable
from kainite.capture.mysql.table_reading import HEARTBEATS
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_point import binlog_point, number_now
from kainite.replicate.point_source import SourcePoint

MENDS_HEARTBEAT = f"GRANT CREATE, SELECT, INSERT, UPDATE ON its database's {HEARTBEATS} TO the user"
"""What lets the source's user write a heartbeat."""


@dataclass(slots=True)
class BinlogPoints:
    """Implements :class:`kainite.replicate.point_source.PointSource` with the binlog.

    Attributes:
        ends: source and target.
        tables: the tables that are read.
        parallelism: how many sessions there are.
        sessions: those of the latest point, as long as that lasts.
    """

    ends: BinlogEnds
    tables: Sequence[SnapshotTable]
    parallelism: int
    sessions: tuple[SnapshotSession, ...] = field(default=())

    def floor(self) -> int:
        """Returns the number that the next transaction gets."""
        return number_now(self.ends) + 1

    @contextmanager
    def snapshot(self) -> Iterator[SourcePoint]:
        with ExitStack() as opened:
            url = self.ends.source.url
            sessions = [opened.enter_context(closing(SnapshotSession(url))) for _ in range(self.parallelism)]
            _, found = binlog_point(self.ends, self.tables, partial(_begin, url, sessions))
            self.sessions = tuple(sessions)
            yield SourcePoint(found.number + 1, "")

    def beat(self) -> None:
        beat_binlog(self.ends)

    def shown(self, place: int) -> str:
        return f"transaction {place - 1}"


def beat_binlog(ends: BinlogEnds) -> None:
    """Writes a heartbeat into a source; raises SourceError."""
    with closing(TableHeartbeat(ends.source.url)) as heartbeat:
        try:
            heartbeat.write()
        except SourceError as error:
            raise SourceError(
                f"no heartbeat can be written into the source: {error}; {MENDS_HEARTBEAT}, and READ_ONLY ADMIN ON *.*"
                " where the server is read_only"
            ) from None


@dataclass(frozen=True, slots=True)
class _HeldSessions:
    """Implements :class:`kainite.replicate.binlog_point.BegunSnapshots`; the sessions are closed by who opened them."""

    sessions: Sequence[SnapshotSession]
    place: BinlogPlace

    def hold(self, tables: Sequence[str]) -> None:
        for session in self.sessions:
            session.hold(tables)

    def release(self) -> None:
        """Does nothing."""


def _begin(url: str, sessions: Sequence[SnapshotSession], least: BinlogPlace) -> _HeldSessions:
    return _HeldSessions(sessions, same_place(url, lambda: {session.begin() for session in sessions}, least))
