"""``kainite log pause``, ``resume``, ``hand-over`` and ``history``."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kainite.base.errors import LogRequestError
from kainite.cli.options import properties_option, why_option
from kainite.cli.terminal import say, say_json, stdout
from kainite.cli.times import TIME, epoch_ms_option
from kainite.log.format.entry import OperationResult
from kainite.operations.carrying_out import TIMEOUT_S, Operations
from kainite.operations.history import OperationRecord
from kainite.operations.inbox import this_person
from kainite.operations.operation import HandOverLog, OwnersOperation, PauseApply, ResumeApply
from kainite.settings import load

if TYPE_CHECKING:
    from rich.table import Table

_COLOURS = {OperationResult.FAILED: "red", OperationResult.REFUSED: "yellow", OperationResult.ASKED: "cyan"}


timeout_option = click.option(
    "--timeout", default=TIMEOUT_S, show_default=True, metavar="SECONDS", help="How long to wait for the answer."
)


@click.command("pause")
@properties_option
@timeout_option
@why_option
def pause(properties: Path, timeout: float, why: str) -> None:
    """Applies no unit to the target until "kainite log resume", whatever is restarted meanwhile.

    The apply job ends the micro-batch that is under way, and leaves the target alone from then on. Units go on being
    collected into the log; when it is full (logBacklogUnits, logBacklogBytes), reading waits.

    \b
    Examples:
      kainite log pause -p app.properties --why "the target is migrated"
      kainite status -p app.properties          says that applying is paused, by whom and why
    """
    carry_out(properties, PauseApply(), why, timeout)


@click.command("resume")
@properties_option
@timeout_option
@why_option
def resume(properties: Path, timeout: float, why: str) -> None:
    """Lets the apply job go on that "kainite log pause" holds back.

    \b
    Example:
      kainite log resume -p app.properties --why "migration done"
    """
    carry_out(properties, ResumeApply(), why, timeout)


@click.command("hand-over")
@properties_option
@timeout_option
@why_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def hand_over(properties: Path, timeout: float, why: str, yes: bool) -> None:
    """Lets another process own the log, such as before its present owner's host is stopped.

    Nothing is lost or repeated; for a second or so nothing is appended. Where no other process is there that may own
    the log, the present one owns it again.

    \b
    Example:
      kainite log hand-over -p app.properties --why "host-1 is patched"
    """
    if not yes:
        click.confirm("The log gets another owner. Go on?", abort=True)
    carry_out(properties, HandOverLog(), why, timeout)


@click.command("history")
@properties_option
@click.option("--since", callback=epoch_ms_option, metavar=TIME,
              help="Only what was asked for then or later: ISO 8601 (UTC), or epoch seconds.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on each line.")
def history(properties: Path, since: int | None, as_json: bool) -> None:
    """Lists what people did: who, when, why, and what has become of it, oldest first.

    The log remembers the latest 1,000 operations. "asked" means that it is not noted whether it was carried out: it
    waits for the log's owner, or who asked was killed meanwhile.

    \b
    Examples:
      kainite log history -p app.properties
      kainite log history -p app.properties --since 2026-11-23T08:00:00Z --json
    """
    found = Operations(load(properties, needs=("applicationName",))).history(since or 0)
    if as_json:
        for record in found:
            say_json(asdict(record))
    elif found:
        stdout().print(_table(found))
    else:
        say("nobody has done anything that is recorded")


def _table(found: list[OperationRecord]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for name in ("Time", "Who", "What", "About", "Result", "Outcome", "Why"):
        table.add_column(name, overflow="fold")
    for record in found:
        time = datetime.fromtimestamp(record.at_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")
        cells = (time, record.who, record.what, record.about, record.result, record.outcome, record.why)
        table.add_row(*map(Text, cells), style=_COLOURS.get(OperationResult(record.result)))
    return table


def carry_out(properties: Path, operation: OwnersOperation, why: str, timeout: float) -> None:
    """Has the log's owner carry an operation out, and says what it has answered.

    Raises:
        LogRequestError: it was refused.
        LogUnavailableError: no answer came in time.
    """
    operations = Operations(load(properties, needs=("applicationName",)))
    outcome = operations.carry_out(operation, this_person(), why, timeout=timeout)
    if outcome.result is OperationResult.REFUSED:
        raise LogRequestError(outcome.sentence)
    say(outcome.sentence)
