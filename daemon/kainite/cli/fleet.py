"""``kainite fleet``: who does which duty, and the wishes of an operator."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kainite.base.errors import FleetError
from kainite.cli.fleet_changes import CHANGES
from kainite.cli.fleet_views import duty_rows, event_rows, json_option, shown, store_of, worker_rows
from kainite.cli.lazy_group import ListedGroup
from kainite.cli.options import properties_option
from kainite.cli.terminal import say_json, stdout
from kainite.fleet.model.records import Subject

WATCH_S = 2.0


@click.group("fleet", cls=ListedGroup)
def fleet() -> None:
    """Shows and steers what runs exactly once somewhere in the fleet.

    \b
    Examples:
      kainite fleet duties -p app.properties
      kainite fleet workers -p app.properties
      kainite fleet stop -p app.properties extract
      kainite fleet move -p app.properties extract host-2

    What changes the fleet is done within one or two looks of its workers; what stops something asks first, or takes
    --yes. With --json every command prints JSON.

    Exit code: 0 when it is done or asked for, 1 when there is no such duty or worker, or it makes no sense now, 2 when
    the command line is wrong.
    """


@fleet.command("workers")
@properties_option
@json_option
def workers(properties: Path, as_json: bool) -> None:
    """Lists the workers with their status, and who leads.

    \b
    Examples:
      kainite fleet workers -p app.properties
      kainite fleet workers -p app.properties --json
    """
    rows = worker_rows(store_of(properties).read())
    _print(rows, as_json=as_json)


@fleet.command("duties")
@properties_option
@json_option
def duties(properties: Path, as_json: bool) -> None:
    """Lists the duties with their status, their worker and their last error.

    \b
    Examples:
      kainite fleet duties -p app.properties
      kainite fleet duties -p app.properties --json
    """
    _print(duty_rows(store_of(properties).read()), as_json=as_json)


@fleet.command("watch")
@properties_option
@click.option("--every", type=click.FloatRange(min=0.1), default=WATCH_S, show_default=True, metavar="SECONDS")
@json_option
def watch(properties: Path, every: float, as_json: bool) -> None:
    """Shows the duties again and again, until Ctrl-C; with --json a line each time.

    \b
    Examples:
      kainite fleet watch -p app.properties
      kainite fleet watch -p app.properties --every 10
    """
    from rich.live import Live

    store = store_of(properties)
    while as_json or not sys.stdout.isatty():
        rows = duty_rows(store.read())
        say_json(rows) if as_json else stdout().print(shown(rows))
        time.sleep(every)
    with Live(console=stdout(), auto_refresh=False) as live:
        while True:
            live.update(shown(duty_rows(store.read())), refresh=True)
            time.sleep(every)


@fleet.command("history")
@properties_option
@click.argument("subject", type=click.Choice([each.value for each in Subject]))
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Only the last N lines.")
@json_option
def history(properties: Path, subject: str, name: str | None, limit: int, as_json: bool) -> None:
    """Prints what happened to a worker, a duty or the leader: when, who, and why.

    \b
    Examples:
      kainite fleet history -p app.properties duty extract
      kainite fleet history -p app.properties leader --limit 10
    """
    if (name is None) != (subject == Subject.LEADER):
        raise click.UsageError(f"name the {subject}" if name is None else "the leader's history has no name")
    store = store_of(properties)
    events = store.history(Subject(subject), name or "leader", limit)
    if name is not None and not events:
        picture = store.read()
        if name not in (picture.workers if subject == Subject.WORKER else picture.duties):
            raise FleetError(f"there is no {subject} {name!r}, and no history of one")
    if as_json:
        say_json([asdict(event) for event in events], indent=True)
    else:
        stdout().print(shown(event_rows(events)))


def _print(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        say_json(rows, indent=True)
    else:
        stdout().print(shown(rows))


for _change in CHANGES:
    fleet.add_command(_change)
