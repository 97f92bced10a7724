"""``kainite verify``: compares a replica with its source, to the row, while both live."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from kainite import settings
from kainite.base.errors import SettingsError
from kainite.base.log_thread import log_in_thread
from kainite.base.words import counted
from kainite.cli.options import properties_option, why_option
from kainite.cli.terminal import say, say_json, say_rows
from kainite.replicate.merged_rows import MergedRow
from kainite.replicate.repair import RepairOutcome
from kainite.replicate.repaired_rows import MOST_ROWS, to_repair
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.verify_report import RowReport, ShownValues, VerifyReport
from kainite.settings import Settings
from kainite_spark.cli import stopping
from kainite_spark.verify.repeating import Repeating
from kainite_spark.verify_of_file import FileComparison, RepeatedFileComparison

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}

NEVER: Final = "never"


class _Interval(click.ParamType):  # type: ignore[type-arg]  # generic in some versions of click only
    name = "TIME"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the text; empty for the settings' own interval."""
        if value not in ("", NEVER) and not re.fullmatch(r"[1-9][0-9]{0,6}[smhd]", value):
            self.fail(f"{value!r} is no time such as 90s, 30m, 6h or 1d, and not {NEVER}", param, ctx)
        return value


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
@click.option("--every", type=_Interval(), is_flag=False, flag_value="", metavar="[TIME]",
              help="Compare again and again, until TERM or Ctrl-C: each 6h, say; by default each verifyEverySeconds. "
                   "never: nobody does so any more.")  # fmt: skip
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
    every: str | None,
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
      kainite verify -p shop.properties --every 1d         as the duty verify of a fleet does
      kainite verify -p shop.properties --repair --dry-run
      kainite verify -p shop.properties --repair --why "rows changed by hand, ticket 4711"
    """
    if (dry_run or yes) and not repair:
        raise click.UsageError("--dry-run and --yes belong to --repair")
    if repair and as_json and not (yes or dry_run):
        raise click.UsageError("--repair --json needs --yes, or --dry-run")
    if every is not None and (repair or tables or as_json):
        raise click.UsageError("--every compares all tables, and goes without --repair, --table and --json")
    configured = settings.load(properties, needs=("applicationName",))
    if repair and configured.apply.shared_tables:
        raise SettingsError(
            f"{configured.path}: targetSharedTables names tables with rows of other logs: to a comparison they are rows"
            " that the source lacks, and --repair would delete them. Compare without it"
        )
    stop = threading.Event()
    if every is not None:
        return _repeat(configured, every, wait, stop)
    shown = ShownValues(values)
    with log_in_thread(), stopping(stop), ExitStack() as opened:
        comparison = FileComparison.of(configured, tables, wait, stop, opened)
        report = comparison.run(MOST_ROWS if repair else rows)
        repaired: RepairOutcome | None = None
        merged: Sequence[MergedRow] = ()
        if repair:
            wanted, merged = comparison.apart(to_repair(report))
            if not as_json:
                _tell_plan(report.first_rows(rows), wanted, merged, shown)
            if wanted and not dry_run and (yes or _is_confirmed(wanted)):
                repaired = comparison.repair(wanted, why)
                report = comparison.run(rows)
            report = report.first_rows(rows)
    if as_json:
        found = report.as_json(shown) | ({"merged": [asdict(row) for row in merged]} if merged else {})
        say_json(found | ({} if repaired is None else {"repair": asdict(repaired)}), indent=True)
    elif repaired is not None or not repair:  # else the plan has told it
        _tell(report, repaired, shown)
    return 0 if report.passed else 1


def _repeat(configured: Settings, every: str, wait: float, stop: threading.Event) -> int:
    """Compares again and again."""
    comparison = RepeatedFileComparison(configured, wait, stop)
    with log_in_thread(), stopping(stop):
        if every == NEVER:
            comparison.note(None, None)
            return 0
        seconds = int(every[:-1]) * _UNITS[every[-1]] if every else configured.apply.verify_every
        Repeating(comparison, seconds, stop.wait).run()
    return 0


def _tell_plan(
    report: VerifyReport, wanted: Sequence[RowReport], merged: Sequence[MergedRow], shown: ShownValues
) -> None:
    """Says what a repair would do, and what it leaves alone."""
    for line in report.lines(shown):
        say_rows(line)
    for row in merged:
        say_rows(row.sentence)
    for (table, how), count in sorted(Counter((row.table, row.how) for row in wanted).items()):
        say(f"would {_DOES[how]} {counted(count, 'row')} of {table}")
    if not wanted:
        say("there is nothing to repair")


def _is_confirmed(wanted: Sequence[RowReport]) -> bool:
    return click.confirm(f"Set {counted(len(wanted), 'row')} of the target to what the source has?", abort=True)


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
