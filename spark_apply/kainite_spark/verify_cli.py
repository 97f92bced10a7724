"""``kainite verify``: compares a replica with its source, to the row, while both live."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import click
import psycopg

from kainite import settings
from kainite.base.errors import SettingsError
from kainite.base.log_thread import log_in_thread
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S
from kainite.cli.options import properties_option, why_option
from kainite.cli.terminal import say, say_json, say_rows
from kainite.operations.carrying_out import Operations
from kainite.operations.inbox import this_person
from kainite.replicate.ends import ReplicaEnds, ends_of, target_session
from kainite.replicate.ends_compared import tables_to_compare
from kainite.replicate.preparation import target_catalogue
from kainite.replicate.repair import Repair, RepairOutcome
from kainite.replicate.repaired_rows import MOST_ROWS, to_repair
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.session_checks import look_at_sessions
from kainite.replicate.verify_report import RowReport, ShownValues, VerifyReport
from kainite.settings import Settings, UowOrder
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.cli import stopping
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.session import spark_context
from kainite_spark.verify.job import VerifyJob, VerifyProgress
from kainite_spark.verify.runners import ItemRunner, SparkItemRunner, ThreadItems

_TELL_S: Final = 5.0

SMALL_BYTES: Final = 256 * 2**20
"""Size of both sides up to which threads compare, and Spark is not started: it takes seconds to start."""


@click.command()
@properties_option
@click.option("--table", "tables", metavar="TABLE", multiple=True, help="Only this table (may be repeated).")
@click.option("--values", type=click.Choice([one.value for one in ShownValues]), default=ShownValues.FULL.value,
              show_default=True, help="How values of rows that differ are shown; their keys always are.")  # fmt: skip
@click.option("--rows", type=click.IntRange(0, 10_000), default=100, show_default=True, help="Most rows to show.")
@click.option("--wait", type=click.FloatRange(1.0), default=600.0, show_default=True, metavar="SECONDS",
              help="How long the apply job may take to come to the point.")  # fmt: skip
@click.option("--repair", is_flag=True, help="Set the rows that differ to what the source has, and compare again.")
@click.option("--dry-run", is_flag=True, help="With --repair: say what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
@why_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; the progress goes to standard error.")
def verify(
    properties: Path,
    tables: tuple[str, ...],
    values: str,
    rows: int,
    wait: float,
    repair: bool,
    dry_run: bool,
    yes: bool,
    why: str,
    as_json: bool,
) -> int:
    """Compares a replica with its source, to the row, while both live and kainite apply goes on.

    Exit code 0 where each row is equal, or differs by a unit that has failed or waits; 1 where rows differ, or where it
    is not certain. A repair reads the rows that differ from the source at a later point, and sends them through the
    log as a unit: newer changes are never overwritten. Rows that a failed or waiting unit explains are left alone.

    \b
    Examples:
      kainite verify -p shop.properties
      kainite verify -p shop.properties --table public.orders --values masked
      kainite verify -p shop.properties --json             for a script
      kainite verify -p shop.properties --repair --dry-run
      kainite verify -p shop.properties --repair --why "rows changed by hand, ticket 4711"
    """
    if (dry_run or yes) and not repair:
        raise click.UsageError("--dry-run and --yes belong to --repair")
    if repair and as_json and not (yes or dry_run):
        raise click.UsageError("--repair --json needs --yes, or --dry-run")
    configured = settings.load(properties, needs=("applicationName",))
    stop = threading.Event()
    shown = ShownValues(values)
    with log_in_thread(), stopping(stop), ExitStack() as opened:
        comparison = _Comparison.of(configured, tables, wait, stop, opened)
        report = comparison.run(MOST_ROWS if repair else rows)
        repaired = None
        if repair:
            wanted = to_repair(report)
            _tell_plan(report, rows, shown, quiet=as_json)
            if wanted and not dry_run and (yes or _is_confirmed(wanted)):
                repaired = comparison.repair(wanted, why)
                report = comparison.run(rows)
            report = report.first_rows(rows)
    if as_json:
        say_json(report.as_json(shown) | ({} if repaired is None else {"repair": asdict(repaired)}), indent=True)
    elif repaired is not None or not repair:  # else the plan has told it
        _tell(report, repaired, shown)
    return 0 if report.passed else 1


def _tell_plan(report: VerifyReport, rows: int, shown: ShownValues, *, quiet: bool) -> None:
    """Says what a repair would do."""
    if quiet:
        return
    for line in report.first_rows(rows).lines(shown):
        say_rows(line)
    wanted = Counter((row.table, row.how) for row in to_repair(report))
    for (table, how), count in sorted(wanted.items()):
        say(f"would {_DOES[how]} {count:,} rows of {table}")
    if not wanted:
        say("there is nothing to repair")


def _is_confirmed(wanted: Sequence[RowReport]) -> bool:
    return click.confirm(f"Set {len(wanted):,} rows of the target to what the source has?", abort=True)


def _tell(report: VerifyReport, repaired: RepairOutcome | None, shown: ShownValues) -> None:
    if repaired is not None:
        say(repaired.sentence)
        for table, key in repaired.left_out:
            say_rows(f"left out, since units change it all the time: {table} {dict(key)}")
    for line in report.lines(shown):
        say_rows(line)


_DOES: Final = {
    RowDifference.MISSING: "insert",
    RowDifference.EXTRA: "delete",
    RowDifference.CHANGED: "overwrite",
}


@dataclass(slots=True)
class _Comparison:
    """A settings file's source and target, and the session by which nobody else compares them meanwhile.

    Attributes:
        configured, ends, catalogue: the settings, both databases, and the target's tables.
        connection: the session with the target.
        runners: run the items.
        tables, wait: which tables are compared, empty for all, and the seconds to wait.
        stop: set to end the comparison.
    """

    configured: Settings
    ends: ReplicaEnds
    catalogue: Catalogue
    connection: psycopg.Connection
    runners: _Runners
    tables: Sequence[str]
    wait: float
    stop: threading.Event

    @classmethod
    def of(
        cls, configured: Settings, tables: Sequence[str], wait: float, stop: threading.Event, opened: ExitStack
    ) -> _Comparison:
        if configured.uow.order is not UowOrder.DENSE:
            raise SettingsError(
                f"{configured.path}: kainite verify needs uowOrder = dense: in another order the log does not tell"
                " which units lie before a point of the source"
            )
        ends = ends_of(configured)
        for finding in look_at_sessions(ends):
            raise SettingsError(f"{finding.found}: {finding.mend}")
        catalogue = target_catalogue(configured, ends)
        connection = opened.enter_context(target_session(ends.target, "kainite verify"))
        return cls(configured, ends, catalogue, connection, _Runners(configured, stop, opened), tables, wait, stop)

    def run(self, most_rows: int) -> VerifyReport:
        job = VerifyJob(self.ends, self.connection, self.runners.of, self.catalogue, self.tables, most_rows, self.wait,
                        stop=self.stop, look=_Told().look)  # fmt: skip
        return job.run()

    def repair(self, rows: Sequence[RowReport], why: str) -> RepairOutcome:
        operations, told = Operations(self.configured), _Told()
        store, partition = operations.log
        tables = {table.name: table for table in tables_to_compare(self.ends, self.tables)[0]}
        repair = Repair(
            self.ends, store, partition, tables, self.catalogue,
            lambda asked: operations.carry_out(asked, this_person(), why, timeout=self.wait),
            self.wait, LOCK_WAIT_S, self.stop, lambda doing: told.look(VerifyProgress(doing)),
        )  # fmt: skip
        return repair.run(rows)


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
        return SparkItemRunner(context, limits, self.stop)


@dataclass(slots=True)
class _Told:
    """Tells the progress now and then, on standard error."""

    next: float = field(default_factory=lambda: time.monotonic() + _TELL_S)

    def look(self, progress: VerifyProgress) -> None:
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + _TELL_S
            done = f": {progress.done} of {progress.items} ranges, {progress.rows:,} rows" if progress.items else ""
            say(f"{progress.doing}{done}", err=True)
