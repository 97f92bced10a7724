"""``kainite verify``: compares a replica with its source, to the row, while both live."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from kainite import settings
from kainite.base.errors import SettingsError
from kainite.base.log_thread import log_in_thread
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json, say_rows
from kainite.replicate.configured_ends import ends_of
from kainite.replicate.ends import target_session
from kainite.replicate.preparation import target_catalogue
from kainite.replicate.session_checks import look_at_sessions
from kainite.replicate.verify_report import ShownValues, VerifyReport
from kainite.settings import Settings, UowOrder
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
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; the progress goes to standard error.")
def verify(properties: Path, tables: tuple[str, ...], values: str, rows: int, wait: float, as_json: bool) -> int:
    """Compares a replica with its source, to the row, while both live and kainite apply goes on.

    Exit code 0 where each row is equal, or differs by a unit that has failed or waits; 1 where rows differ, or where it
    is not certain.

    \b
    Examples:
      kainite verify -p shop.properties
      kainite verify -p shop.properties --table public.orders --values masked
      kainite verify -p shop.properties --json             for a script
    """
    configured = settings.load(properties, needs=("applicationName",))
    stop = threading.Event()
    with log_in_thread(), stopping(stop):
        report = _verified(configured, _Asked(tables, rows, wait), stop)
    shown = ShownValues(values)
    if as_json:
        say_json(report.as_json(shown), indent=True)
    else:
        for line in report.lines(shown):
            say_rows(line)
    return 0 if report.passed else 1


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be compared: tables, how many rows to show, and the seconds to wait."""

    tables: Sequence[str]
    rows: int
    wait: float


def _verified(configured: Settings, asked: _Asked, stop: threading.Event) -> VerifyReport:
    if configured.uow.order is not UowOrder.DENSE:
        raise SettingsError(
            f"{configured.path}: kainite verify needs uowOrder = dense: in another order the log does not tell which"
            " units lie before a point of the source"
        )
    ends = ends_of(configured)
    for finding in look_at_sessions(ends):
        raise SettingsError(f"{finding.found}: {finding.mend}")
    catalogue = target_catalogue(configured, ends)
    with ExitStack() as opened:
        connection = opened.enter_context(target_session(ends.target, "kainite verify"))
        runners = _Runners(configured, stop, opened)
        job = VerifyJob(ends, connection, runners.of, catalogue, asked.tables, asked.rows, asked.wait, stop=stop,
                        look=_Told().look)  # fmt: skip
        return job.run()


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
