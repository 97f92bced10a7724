"""The comparison that a settings file describes: its databases, what runs it, what it tells, and how it is repeated."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from kainite.base.errors import SettingsError
from kainite.base.words import counted
from kainite.cli.terminal import say
from kainite.operations.carrying_out import Operations
from kainite.operations.inbox import this_person
from kainite.replicate.any_ends import any_ends_of
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.ends import ReplicaEnds, is_mariadb
from kainite.replicate.ends_compared import tables_to_compare
from kainite.replicate.load_target import load_session
from kainite.replicate.merged_rows import MergedRow, merged_rows
from kainite.replicate.paired_ends import paired_tables_to_compare
from kainite.replicate.paired_rows import PairedRows
from kainite.replicate.preparation import target_catalogue
from kainite.replicate.repair import Repair, RepairOutcome
from kainite.replicate.repair_source import BinlogRepairs, PostgresRepairs, RepairSource
from kainite.replicate.repaired_rows import alone
from kainite.replicate.session_checks import look_at_sessions
from kainite.replicate.verify_ledger import VerifyLedger, VerifySession, latest_outcome
from kainite.replicate.verify_report import RowReport, VerifyReport
from kainite.settings import Settings, UowOrder
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.cli import stopping
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.session import spark_context
from kainite_spark.driver.spark_items import SparkItems
from kainite_spark.load.binlog_copy import BinlogCopySource
from kainite_spark.verify.compare_source import CompareSource, PostgresCompareSource
from kainite_spark.verify.job import VerifyJob, VerifyProgress
from kainite_spark.verify.row_compare import RowCompareSource
from kainite_spark.verify.runners import ItemRunner, ThreadItems
from kainite_spark.verify.tasks import run_items

_TELL_S: Final = 5.0
_NAME: Final = "kainite verify"

SMALL_BYTES: Final = 256 * 2**20
"""Size of both sides up to which threads compare, and Spark is not started: it takes seconds to start."""


@dataclass(slots=True)
class FileComparison:
    """A settings file's source and target, and the session by which nobody else compares them meanwhile.

    Attributes:
        configured, ends, catalogue: the settings, both databases, and the target's tables.
        connection: the session with the target.
        runners: run the items.
        tables, wait: which tables are compared, empty for all, and the seconds to wait.
        stop: set to end the comparison.
    """

    configured: Settings
    ends: ReplicaEnds | BinlogEnds
    catalogue: Catalogue
    connection: VerifySession
    runners: _Runners
    tables: Sequence[str]
    wait: float
    stop: threading.Event

    @classmethod
    def of(
        cls, configured: Settings, tables: Sequence[str], wait: float, stop: threading.Event, opened: ExitStack
    ) -> FileComparison:
        if configured.uow.order is not UowOrder.DENSE:
            raise SettingsError(
                f"{configured.path}: kainite verify needs uowOrder = dense: in another order the log does not tell"
                " which units lie before a point of the source"
            )
        ends = any_ends_of(configured)
        _check_sessions(ends)
        catalogue = target_catalogue(configured, ends)
        connection = opened.enter_context(load_session(ends.target, _NAME))
        return cls(configured, ends, catalogue, connection, _Runners(configured, stop, opened), tables, wait, stop)

    def run(self, most_rows: int) -> VerifyReport:
        job = VerifyJob(self._source, self.connection, self.catalogue, self.tables, most_rows, self.wait, self.stop,
                        _Told().look)  # fmt: skip
        return job.run()

    @property
    def _source(self) -> CompareSource:
        if isinstance(self.ends, BinlogEnds) or is_mariadb(self.ends.target):
            return RowCompareSource(self.ends)
        return PostgresCompareSource(self.ends, self.runners.of)

    def apart(self, rows: Sequence[RowReport]) -> tuple[Sequence[RowReport], Sequence[MergedRow]]:
        """Separates rows that can be repaired from those that the target takes for another row of the source."""
        if not is_mariadb(self.ends.target):
            return rows, ()
        merged = merged_rows(self.ends.target, self._pairs, rows)
        left = {(one.table, *one.key.items()) for one in merged}
        return [row for row in rows if (row.table, *row.key.items()) not in left], merged

    def repair(self, rows: Sequence[RowReport], why: str) -> RepairOutcome:
        """Repairs rows, but for those that the target takes for another row of the source by now."""
        operations, told = Operations(self.configured), _Told()
        store, partition = operations.log
        repair = Repair(
            self._repairs, store, partition, self.catalogue,
            lambda asked: operations.carry_out(asked, this_person(), why, timeout=self.wait),
            self.wait, self.stop, lambda doing: told.look(VerifyProgress(doing)),
        )  # fmt: skip
        return repair.run(self.apart(rows)[0])

    @property
    def _repairs(self) -> RepairSource:
        if isinstance(self.ends, BinlogEnds):
            return BinlogRepairs(self.ends, self._pairs)
        if is_mariadb(self.ends.target):
            pairs = self._pairs
            return PostgresRepairs(self.ends, {name: alone(pair) for name, pair in pairs.items()}, pairs)
        return PostgresRepairs(self.ends, {table.name: table for table in tables_to_compare(self.ends, self.tables)[0]})

    @property
    def _pairs(self) -> dict[str, PairedRows]:
        found = paired_tables_to_compare(self.ends, self.catalogue, self.tables)
        return {table.name: table for table in found.tables}


def _check_sessions(ends: ReplicaEnds | BinlogEnds) -> None:
    """Raises SettingsError where a database gives no sessions of one's own."""
    if isinstance(ends, BinlogEnds):
        BinlogCopySource(ends).check_sessions()
        return
    for finding in look_at_sessions(ends):
        raise SettingsError(f"{finding.found}: {finding.mend}")


@dataclass(slots=True)
class _Runners:
    """Gives the runner that suits the size; Spark, once started, lasts as long as ``opened``."""

    configured: Settings
    stop: threading.Event
    opened: ExitStack

    def of(self, size: int) -> ItemRunner:
        if size <= SMALL_BYTES:
            return ThreadItems()
        apply, name = self.configured.apply, f"kainite verify {self.configured.leases.application}"
        context = self.opened.enter_context(spark_context(apply.master, name, self.stop, apply.python))
        self.opened.enter_context(stopping(self.stop))
        limits = SparkLimits(apply.stall, float("inf"), self.configured.child.shutdown_grace)
        return SparkItems(context, limits, self.stop, "kainite verify", run_items)


@dataclass(slots=True)
class _Told:
    """Tells the progress now and then, on standard error."""

    next: float = field(default_factory=lambda: time.monotonic() + _TELL_S)

    def look(self, progress: VerifyProgress) -> None:
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + _TELL_S
            ranges, rows = counted(progress.items, "range"), counted(progress.rows, "row")
            done = f": {progress.done} of {ranges}, {rows}" if progress.items else ""
            say(f"{progress.doing}{done}", err=True)


@dataclass(slots=True)
class RepeatedFileComparison:
    """Implements :class:`~kainite_spark.verify.repeating.RepeatedComparison` for a settings file.

    Attributes:
        configured: the settings.
        wait: seconds for which the apply job is waited for.
        stop: set to end the comparison.
    """

    configured: Settings
    wait: float
    stop: threading.Event

    def age(self) -> float | None:
        ends = any_ends_of(self.configured)
        with load_session(ends.target, _NAME) as connection:
            found = latest_outcome(connection, ends.log_partition)
        if found is None or not found.ended_at:
            return None
        return max(0.0, time.time() - datetime.fromisoformat(found.ended_at).timestamp())

    def compare(self) -> VerifyReport:
        with ExitStack() as opened:
            return FileComparison.of(self.configured, (), self.wait, self.stop, opened).run(0)

    def note(self, every: float | None, trouble: str | None) -> None:
        ends = any_ends_of(self.configured)
        with load_session(ends.target, _NAME) as connection:
            VerifyLedger(connection, ends.log_partition).note_repeated(every, trouble)
