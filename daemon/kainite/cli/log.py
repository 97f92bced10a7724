"""``kainite log show`` and ``who``, ``kainite uow retry`` and ``discard``."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from kainite.aws.clients import client
from kainite.base.errors import LogRequestError, LogUnavailableError
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json, stdout
from kainite.log.format.entry import UnitStatus
from kainite.log.owner.requests import OK
from kainite.log.store.dynamodb import DynamoDBStore
from kainite.log.views.unit_table import COLLECTING, LogRow, read_rows
from kainite.settings import Settings, load

if TYPE_CHECKING:
    from kainite.log.views.row_holders import Toucher

POLL_SECONDS = 0.1
_STATUSES = [status.value for status in UnitStatus] + [COLLECTING]
_COLOURS = {UnitStatus.FAILED: "red", UnitStatus.BLOCKED: "yellow", UnitStatus.COMMITTED: "green"}


@click.group("log")
def log() -> None:
    """Shows the serialization log.

    \b
    Examples:
      kainite log show -p app.properties
      kainite log who -p app.properties sales.orders id=17
    """


@log.command("show")
@properties_option
@click.option("--status", "statuses", multiple=True, type=click.Choice(_STATUSES), help="Only units of this status.")
@click.option("--uow", "uows", multiple=True, metavar="NAME", help="Only this unit of work.")
@click.option("--table", "tables", multiple=True, metavar="TABLE", help="Only units that change this table.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the last N rows.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on each line.")
def show(
    properties: Path,
    statuses: tuple[str, ...],
    uows: tuple[str, ...],
    tables: tuple[str, ...],
    limit: int | None,
    as_json: bool,
) -> None:
    """Prints the log as a table, a row for each unit of work.

    \b
    Examples:
      kainite log show -p app.properties
      kainite log show -p app.properties --status failed --status blocked
      kainite log show -p app.properties --table sales.order_line --limit 20
      kainite log show -p app.properties --uow T-17 --json
    """
    settings = load(properties)
    rows = [
        row
        for row in read_rows(_store(settings), settings.log.partition)
        if (not statuses or row.status in statuses)
        and (not uows or row.uow in uows)
        and (not tables or row.tables & set(tables))
    ]
    shown = rows[-limit:] if limit else rows
    if as_json:
        for row in shown:
            say_json(asdict(row))
    else:
        stdout().print(_table(shown))


@log.command("who")
@properties_option
@click.argument("table")
@click.argument("key", nargs=-1, required=True, metavar="COLUMN=VALUE...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on each line.")
def who(properties: Path, table: str, key: tuple[str, ...], as_json: bool) -> None:
    """Says which unit in progress holds a row of the target, and which units wait for it.

    The row is named by all columns of its primary key. Units that are committed or discarded hold nothing.

    \b
    Examples:
      kainite log who -p app.properties orders id=17
      kainite log who -p app.properties sales.order_line order_id=17 line=2 --json
    """
    from kainite.log.state.loading import load_state
    from kainite.log.views.row_holders import touchers
    from kainite.uow.catalogue.load import load_catalogue

    values = dict(_column(text) for text in key)
    settings = load(properties)
    apply = settings.apply
    catalogue = load_catalogue(settings.uow.catalogue_file, apply.target, apply.schemas)
    state = load_state(_store(settings), settings.log.partition)
    found = touchers(state, catalogue, table, values)
    if as_json:
        for toucher in found:
            say_json(asdict(toucher))
    elif found:
        stdout().print(_touchers(found))
    else:
        say("no unit in progress touches this row")


def _column(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.UsageError(f"{text!r} is not COLUMN=VALUE")
    return name, value


def _touchers(found: Sequence[Toucher]) -> Table:
    table = Table(header_style="bold")
    for name in ("ID", "UofW", "Status", "ETL JI", "Waits for", "Cause"):
        table.add_column(name, overflow="fold")
    for unit in found:
        cells = (unit.id, unit.uow, unit.status, unit.instance, unit.waits_for, unit.cause)
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in cells))
    return table


@click.group("uow")
def uow() -> None:
    """Resolves failed units of work.

    \b
    Examples:
      kainite uow retry -p app.properties T-17      the target was at fault, and is corrected
      kainite uow discard -p app.properties T-17    the unit was at fault
    """


@uow.command("retry")
@properties_option
@click.argument("name")
@click.option("--timeout", default=10.0, show_default=True, metavar="SECONDS", help="How long to wait for the daemon.")
def retry(properties: Path, name: str, timeout: float) -> None:
    """Applies a failed unit again, and then the units that it holds back.

    \b
    Example:
      kainite uow retry -p app.properties T-17
    """
    _request(load(properties), "retry", name, timeout)


@uow.command("discard")
@properties_option
@click.argument("name")
@click.option("--timeout", default=10.0, show_default=True, metavar="SECONDS", help="How long to wait for the daemon.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def discard(properties: Path, name: str, timeout: float, yes: bool) -> None:
    """Gives a failed unit up: it is never applied.

    The units that it holds back are applied.

    \b
    Example:
      kainite uow discard -p app.properties T-17
    """
    settings = load(properties)
    if not yes:
        click.confirm(f"Unit {name} will never be applied to the target. Discard it?", abort=True)
    _request(settings, "discard", name, timeout)


def _request(settings: Settings, action: str, name: str, timeout: float) -> None:
    store, partition = _store(settings), settings.log.partition
    request = {"action": action, "uow": name, "by": f"{getpass.getuser()}@{socket.gethostname()}"}
    request_id = store.put_request(partition, request)
    deadline = time.monotonic() + timeout
    while (answer := store.take_answer(partition, request_id)) is None:
        if time.monotonic() > deadline:
            raise LogUnavailableError(
                f"no answer within {timeout:g} s: is a daemon running for log {settings.log.table}, partition "
                f"{partition}? The request stays in the log's table, and the next daemon carries it out"
            )
        time.sleep(POLL_SECONDS)
    if answer["result"] != OK:
        raise LogRequestError(answer["message"])
    say(answer["message"])


def _store(settings: Settings) -> DynamoDBStore:
    return DynamoDBStore(client("dynamodb", settings.aws), settings.log.table)


def _table(rows: list[LogRow]) -> Table:
    table = Table(title=None, header_style="bold")
    for name in ("Conflict", "ID"):
        table.add_column(name, justify="right")
    for name in ("UofW", "Queue ID", "ETL JI", "Signature"):
        table.add_column(name, overflow="fold")
    for name in ("Trans ID In", "Trans ID Out"):
        table.add_column(name, justify="right")
    table.add_column("Status")
    table.add_column("Cause", overflow="fold")
    for row in rows:
        colour = _COLOURS.get(UnitStatus(row.status)) if row.status != COLLECTING else "cyan"
        table.add_row(*_cells(row), style=colour)
    return table


def _cells(row: LogRow) -> list[Text]:
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
        row.cause,
    ]
    return [Text("" if cell is None else str(cell)) for cell in cells]


def _shortened(signature: list[str], most: int = 4) -> str:
    more = f" and {len(signature) - most} more" if len(signature) > most else ""
    return ", ".join(signature[:most]) + more
