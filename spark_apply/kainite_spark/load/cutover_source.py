"""What a cut-over needs of its source, whatever kind of database that is; and PostgreSQL and MariaDB as one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from kainite.base.errors import SourceError
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S
from kainite.capture.postgresql.quiet_source import QuietSource, watching
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.replicate.binlog_closing import look_at_binlog_writers
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_gaps import gaps_of
from kainite.replicate.binlog_watch import watching_binlog
from kainite.replicate.ends import LoadEnds, ReplicaEnds, source_session
from kainite.replicate.findings import CheckFinding, wrong
from kainite.replicate.load_target import load_session
from kainite.replicate.slot import found_slot, problem_of
from kainite.replicate.source_closing import look_at_writers
from kainite.replicate.source_triggers import triggers_of_binlog, triggers_of_postgresql
from kainite_spark.load.binlog_copy import BinlogCopySource
from kainite_spark.load.cutover_sequences import TargetSequences


class SourceWatch(Protocol):
    """Sees each change in the source from a point on."""

    def mark(self) -> int:
        """Commits a transaction without changes; returns its place, when nothing before it has changed anything.

        Raises:
            SourceError: somebody writes, or the source takes no such transaction.
        """

    def look(self) -> None:
        """Looks at all that has committed since the last look; raises SourceError where somebody has written."""


class CutOverSource(Protocol):
    """A source whose replica is to be cut over."""

    @property
    def ends(self) -> LoadEnds:
        """Returns source and target."""

    def look(self) -> Iterator[CheckFinding]:
        """Yields what of the source is in the way; raises SourceError."""

    def watching(self) -> AbstractContextManager[SourceWatch]:
        """Watches the source from a new point on, inside the ``with``; raises SourceError."""

    @property
    def sequences(self) -> TargetSequences:
        """Returns what of the source counts, and is set in the target."""

    def triggers(self) -> list[tuple[str, str]]:
        """Returns the triggers of its tables: the table, as changes name it, and the name; raises SourceError."""

    def shown(self, place: int) -> str:
        """Returns a marker's place as people read it."""

    @property
    def farewell(self) -> str:
        """Returns what is left to be done at the source afterwards; empty where nothing is."""


@dataclass(frozen=True, slots=True)
class PostgresCutOverSource:
    """Implements :class:`CutOverSource` with a temporary slot.

    Attributes:
        ends: source and target.
        sequences: what of the source counts.
        lock_wait: seconds to wait for open transactions.
    """

    ends: ReplicaEnds
    sequences: TargetSequences
    lock_wait: float = LOCK_WAIT_S

    def look(self) -> Iterator[CheckFinding]:
        with source_session(self.ends.source.url) as source:
            yield from look_at_writers(source)
            if problem := problem_of(found_slot(source, self.ends.source.slot), self.ends.source.slot):
                yield wrong("slot", problem, "kainite replicate load --anew, with a new slot")
        yield from self.sequences.look()

    @contextmanager
    def watching(self) -> Iterator[_MarkedSource]:
        with watching(self.ends.source, self.lock_wait) as watch:
            yield _MarkedSource(watch)

    def triggers(self) -> list[tuple[str, str]]:
        with source_session(self.ends.source.url) as source:
            return triggers_of_postgresql(source, self.ends.source.publication)

    def shown(self, place: int) -> str:
        return format_lsn(place)

    @property
    def farewell(self) -> str:
        return f"SELECT pg_drop_replication_slot('{self.ends.source.slot}')"


@dataclass(frozen=True, slots=True)
class _MarkedSource:
    """Implements :class:`SourceWatch`."""

    watch: QuietSource

    def mark(self) -> int:
        return self.watch.mark().commit_lsn

    def look(self) -> None:
        self.watch.look()


@dataclass(frozen=True, slots=True)
class BinlogCutOverSource:
    """Implements :class:`CutOverSource` with the binlog.

    Attributes:
        ends: source and target.
        sequences: what of the source counts.
    """

    ends: BinlogEnds
    sequences: TargetSequences

    def look(self) -> Iterator[CheckFinding]:
        yield from look_at_binlog_writers(self.ends)
        try:
            BinlogCopySource(self.ends).check()
        except SourceError as error:
            yield wrong("binlog", str(error), "kainite replicate load --anew, behind a new offset")
        with load_session(self.ends.target, "kainite replicate cutover") as target:
            yield from gaps_of(self.ends, target)
        yield from self.sequences.look()

    def watching(self) -> AbstractContextManager[SourceWatch]:
        return watching_binlog(self.ends)

    def triggers(self) -> list[tuple[str, str]]:
        return triggers_of_binlog(self.ends)

    def shown(self, place: int) -> str:
        return f"transaction {place}"

    @property
    def farewell(self) -> str:
        return ""
