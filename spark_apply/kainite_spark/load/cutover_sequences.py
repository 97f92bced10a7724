"""What counts by itself in a source, and what is set forward for it in the target, of each pair of kinds.

=====================  ===============================================  ================================================
source, target         what the source has                              what is set in the target
=====================  ===============================================  ================================================
PostgreSQL, itself     sequences                                        the sequences of the same columns, or names
MariaDB, PostgreSQL    ``AUTO_INCREMENT`` columns                       the sequences of the same columns
PostgreSQL, MariaDB    sequences of columns                             the ``AUTO_INCREMENT`` of the same columns
MariaDB, itself        ``AUTO_INCREMENT`` columns                       the same
=====================  ===============================================  ================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_sequences import binlog_counters, counted_columns, look_at_counted, set_counted
from kainite.replicate.counters import SourceCounters
from kainite.replicate.ends import ReplicaEnds, both_sessions, is_mariadb, source_session, target_session
from kainite.replicate.findings import CheckFinding
from kainite.replicate.mariadb_counters import look_at_counters, set_counters, target_counters
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.replicate.sequences import column_counters, look_at_sequences, paired, set_forward
from kainite.uow.catalogue.tables import Catalogue


class TargetSequences(Protocol):
    """What counts in a source, and is set forward in the target."""

    def look(self) -> Iterator[CheckFinding]:
        """Yields what cannot be set; raises SourceError, TargetUnavailableError."""

    def set_forward(self) -> list[str]:
        """Sets the target's to where those of the source stand; returns those that were set.

        Raises:
            SourceError, TargetUnavailableError: a database refused, or does not answer.
            TargetError: the target does not take a value.
        """


def sequences_between(ends: ReplicaEnds | BinlogEnds, catalogue: Catalogue) -> TargetSequences:
    """Returns what counts in a source, for the kind of its target.

    Args:
        ends: source and target.
        catalogue: the target's tables.
    """
    if is_mariadb(ends.target):
        return MariadbCounters(ends.target, lambda: _counters(ends, catalogue))
    if isinstance(ends, BinlogEnds):
        return CountedSequences(ends, catalogue)
    return PostgresSequences(ends)


def _counters(ends: ReplicaEnds | BinlogEnds, catalogue: Catalogue) -> SourceCounters:
    if isinstance(ends, BinlogEnds):
        return binlog_counters(ends, catalogue)
    with source_session(ends.source.url) as source:
        return column_counters(source, catalogue)


@dataclass(frozen=True, slots=True)
class PostgresSequences:
    """Implements :class:`TargetSequences` from PostgreSQL to PostgreSQL.

    Attributes:
        ends: source and target.
    """

    ends: ReplicaEnds

    def look(self) -> Iterator[CheckFinding]:
        with both_sessions(self.ends) as (source, target):
            yield from look_at_sequences(paired(source, target))

    def set_forward(self) -> list[str]:
        with both_sessions(self.ends) as (source, target):
            return set_forward(source, target, paired(source, target))


@dataclass(frozen=True, slots=True)
class CountedSequences:
    """Implements :class:`TargetSequences` from MariaDB to PostgreSQL.

    Attributes:
        ends: source and target.
        catalogue: the target's tables.
    """

    ends: BinlogEnds
    catalogue: Catalogue

    def look(self) -> Iterator[CheckFinding]:
        yield from look_at_counted(counted_columns(self.ends, self.catalogue))

    def set_forward(self) -> list[str]:
        columns = counted_columns(self.ends, self.catalogue).columns
        with target_session(self.ends.target) as target:
            return set_counted(target, columns)


@dataclass(frozen=True, slots=True)
class MariadbCounters:
    """Implements :class:`TargetSequences` to MariaDB.

    Attributes:
        target: the target's URL.
        read: reads what of the source counts.
    """

    target: str
    read: Callable[[], SourceCounters]

    def look(self) -> Iterator[CheckFinding]:
        found = self.read()
        with mariadb_session(self.target) as target:
            yield from look_at_counters(found, target_counters(target, found.columns))

    def set_forward(self) -> list[str]:
        found = self.read()
        with mariadb_session(self.target) as target:
            return set_counters(target, target_counters(target, found.columns))
