"""``kainite log show``, ``who``, ``serve``, ``status``, ``skip`` and ``adopt-stream``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kainite.base.clock import epoch_ms
from kainite.base.errors import LogError, LogRequestError, SettingsError
from kainite.cli.lazy_group import LazyCommand, LazyCommands
from kainite.cli.opened_log import opened_log
from kainite.cli.options import properties_option, target_option
from kainite.cli.settings_warnings import tell_warnings
from kainite.cli.terminal import say, say_json, stdout
from kainite.cli.unit_filter import unit_filter
from kainite.log.format.entry import UnitStatus
from kainite.log.state.summary import from_text
from kainite.log.state.unit_filter import UnitFilter
from kainite.log.views.latest_rows import read_latest_rows
from kainite.log.views.target_marks import Parts, in_targets, read_marks, rows_of_target
from kainite.log.views.unit_table import COLLECTING, LogRow, read_present_rows
from kainite.settings import Settings, load
from kainite.settings.targets import of_target, require_parts

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from kainite.log.contract import LogHead
    from kainite.log.views.row_holders import Toucher

_LAZY = {
    "status": LazyCommand("kainite.cli.log_status:status", "Says which daemon owns the log, and whether it is alive."),
    "mark": LazyCommand("kainite.cli.log_mark:mark", "Says up to which unit each target, and all, are applied."),
    "adopt-stream": LazyCommand(
        "kainite.cli.adopt_stream:adopt_stream", "Lets the log collect a stream that has replaced another one."
    ),
    "skip": LazyCommand("kainite.cli.skip_numbers:skip", "Gives up numbers that are awaited (uowOrder=dense)."),
    "pause": LazyCommand("kainite.cli.log_control:pause", "Applies no unit until resume, whatever is restarted."),
    "resume": LazyCommand("kainite.cli.log_control:resume", "Lets the apply job go on that pause holds back."),
    "hand-over": LazyCommand("kainite.cli.log_control:hand_over", "Lets another process own the log."),
    "history": LazyCommand("kainite.cli.log_control:history", "Lists what people did: who, when, why, the outcome."),
}

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_COLOURS = {UnitStatus.FAILED: "red", UnitStatus.BLOCKED: "yellow", UnitStatus.COMMITTED: "green"}


@click.group("log", cls=LazyCommands, lazy=_LAZY)
def log() -> None:
    """Shows and serves the serialization log.

    \b
    Examples:
      kainite log status -p app.properties
      kainite log show -p app.properties
      kainite log who -p app.properties sales.orders id=17
      kainite log serve -p app.properties
    """


@log.command("show")
@properties_option
@unit_filter([*UnitStatus, COLLECTING])
@click.option("--uow", "uows", multiple=True, metavar="NAME", help="Only this unit of work.")
@target_option
@click.option("--limit", type=click.IntRange(min=1), help="Only the last N rows.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on each line.")
def show(
    properties: Path, wanted: UnitFilter, uows: tuple[str, ...], target: str | None, limit: int | None, as_json: bool
) -> None:
    """Prints the log as a table, a row for each unit of work.

    With --limit alone only the log's end is read: the column Conflict then names only units that stand there.
    Of several targets the column Targets says what each has of a unit that is not resolved in all of them; --target
    shows the units that are not resolved in one, with their status and cause there.

    \b
    Examples:
      kainite log show -p app.properties
      kainite log show -p app.properties --status failed --status blocked
      kainite log show -p app.properties --table sales.order_line --limit 20
      kainite log show -p app.properties --cause 23503
      kainite log show -p app.properties --uow T-17 --json
    """
    settings = load(properties, needs=("applicationName",))
    opened, targets = opened_log(settings), settings.log.targets
    if target is not None:
        of_target(settings, target)
        require_parts(settings)
    head = opened[0].read_head(opened[1])
    parts = read_marks(*opened, targets.names).parts if targets else None
    if limit and not wanted and not uows and target is None:
        shown = read_latest_rows(*opened, limit, head)
    else:
        present = read_present_rows(*opened, head)
        rows = present if target is None else rows_of_target(present, parts or {}, target)
        rows = [row for row in rows if wanted.takes(row) and (not uows or row.uow in uows)]
        shown = rows[-limit:] if limit else rows
    now = epoch_ms()
    marked = [(row, _not_live(settings, row, marks)) for marks in [_marks(settings)] for row in shown]
    if as_json:
        for row, not_live in marked:
            each = {} if parts is None else {"targets": in_targets(row, parts)}
            say_json(asdict(row) | each | {"not_live": not_live, "age_s": row.age_s(now), "now_ms": now})
    else:
        stdout().print(_table(marked, now, parts))
        if paused := _paused(head):
            say(f"applying is {paused}: kainite log resume -p {properties}")


@log.command("who")
@properties_option
@click.argument("table")
@click.argument("key", nargs=-1, required=True, metavar="COLUMN=VALUE...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on each line.")
def who(properties: Path, table: str, key: tuple[str, ...], as_json: bool) -> None:
    """Says which unit in progress holds a row of the target, and which units wait for it.

    The row is named by all columns of its primary key. Units that are committed or discarded hold nothing. The log's
    owner answers from its memory; where it is not reached, the log is read.

    \b
    Examples:
      kainite log who -p app.properties orders id=17
      kainite log who -p app.properties sales.order_line order_id=17 line=2 --json
    """
    values = dict(_column(text) for text in key)
    settings = load(properties, needs=("applicationName",))
    found = _asked(settings, table, values)
    if found is None:
        found = _read(settings, table, values)
    if as_json:
        for toucher in found:
            say_json(asdict(toucher) | {"waits_for_uow": _name_of(toucher.waits_for, found)})
    elif found:
        stdout().print(_touchers(found))
    else:
        say("no unit in progress touches this row")


@log.command("serve")
@properties_option
def serve(properties: Path) -> int:
    """Owns the log without reading shards, and serves applications.

    Daemons of the same application append through it. While a daemon owns the log, this waits to take over. The key
    logApplications says how many log partitions programs may use; docs/log-service.md says how.

    \b
    Examples:
      kainite log serve -p app.properties
      KAINITE_LOG_APPLICATIONS=1 kainite log serve -p app.properties
      KAINITE_LOG_LISTEN=127.0.0.1:7070 kainite log serve -p app.properties
    """
    from kainite.waltz.serving import serving_applications
    from kainite.worker.log_service import run

    settings = load(properties, needs=("applicationName", "streamName"))
    tell_warnings(settings)
    return run(settings, serving_applications)


def _asked(settings: Settings, table: str, key: Mapping[str, str]) -> list[Toucher] | None:
    """Returns who touches a row, as the log's owner says; None if the owner cannot be asked."""
    import asyncio

    from kainite.peers.access import access_of
    from kainite.peers.rows.asking import ask_owner

    store, partition = opened_log(settings, token=True)
    try:
        access = access_of(settings.service)
        return asyncio.run(ask_owner(store, partition, f"{settings.log.table}/{partition}", access, table, key))
    except LogRequestError:
        raise
    except (SettingsError, LogError):  # a file, or the token of HEAD, that the daemons may read, and this user not
        return None


def _marks(settings: Settings) -> Mapping[str, str]:
    """Returns what a replica's target tells of its tables that are not live, by name; nothing of another target."""
    from kainite.replicate.asked_target import asking

    ask = asking(settings)
    return {} if ask is None else ask().marks


def _not_live(settings: Settings, row: LogRow, marks: Mapping[str, str]) -> list[str]:
    """Returns the marks of the tables that a unit touches; a name without a schema is in the first of the target's."""
    schema = settings.apply.schemas[0] if settings.apply.schemas else "public"
    touched = {name if "." in name else f"{schema}.{name}" for name in row.tables}
    return [mark for name, mark in sorted(marks.items()) if name in touched]


def _paused(head: LogHead | None) -> str:
    """Returns who has paused applying, as the log's owner told it with its last heartbeat; empty for nobody."""
    summary = from_text(head.summary) if head is not None else None
    return summary.paused if summary is not None else ""


def _read(settings: Settings, table: str, key: Mapping[str, str]) -> list[Toucher]:
    """Returns who touches a row, as the log says."""
    from kainite.log.state.loading import load_state
    from kainite.log.views.row_holders import touchers
    from kainite.uow.catalogue.several import catalogue_of

    return touchers(load_state(*opened_log(settings)), catalogue_of(settings), table, key)


def _column(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.UsageError(f"{text!r} is not COLUMN=VALUE")
    return name, value


def _touchers(found: Sequence[Toucher]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for name in ("ID", "UofW", "Status", "ETL JI", "Waits for", "Cause"):
        table.add_column(name, overflow="fold")
    for unit in found:
        holder = None if unit.waits_for is None else f"{unit.waits_for} ({_name_of(unit.waits_for, found)})"
        cells = (unit.id, unit.uow, unit.status, unit.instance, holder, unit.cause)
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in cells))
    return table


def _name_of(tid: int | None, found: Sequence[Toucher]) -> str | None:
    return next((unit.uow for unit in found if unit.id == tid), None)


def _table(rows: Sequence[tuple[LogRow, list[str]]], now_ms: int, parts: Parts | None = None) -> Table:
    from rich.table import Table

    now = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    table = Table(title=None, header_style="bold", caption=f"now: {now}")
    for name in ("Conflict", "ID"):
        table.add_column(name, justify="right")
    for name in ("UofW", "Queue ID", "ETL JI", "Signature"):
        table.add_column(name, overflow="fold")
    for name in ("Trans ID In", "Trans ID Out"):
        table.add_column(name, justify="right")
    table.add_column("Status")
    table.add_column("Seconds", justify="right")
    table.add_column("Age", justify="right")
    table.add_column("Cause", overflow="fold")
    if parts is not None:
        table.add_column("Targets", overflow="fold")
    for row, not_live in rows:
        colour = _COLOURS.get(UnitStatus(row.status)) if row.status != COLLECTING else "cyan"
        each = [] if parts is None else [", ".join(f"{name}: {at}" for name, at in in_targets(row, parts).items())]
        table.add_row(*_cells(row, not_live, now_ms), *each, style=colour)
    return table


def _cells(row: LogRow, not_live: list[str], now_ms: int) -> list[Text]:
    from rich.text import Text

    cells = [
        row.conflict,
        row.id,
        row.uow,
        ", ".join(row.queue),
        row.instance,
        _shortened(row.signature),
        row.trans_in,
        row.trans_out,
        row.status,
        row.took_s,
        _lasted(row.age_s(now_ms)),
        "; ".join(filter(None, (row.cause, *not_live))),
    ]
    return [Text("" if cell is None else str(cell)) for cell in cells]


def _lasted(seconds: float | None) -> str | None:
    """Returns a time span in the largest unit of which it has two."""
    if seconds is None:
        return None
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= 2 * size), _UNITS[-1])
    return f"{seconds // size:.0f} {unit}"


def _shortened(signature: list[str], most: int = 4) -> str:
    more = f" and {len(signature) - most} more" if len(signature) > most else ""
    return ", ".join(signature[:most]) + more
