"""The fleet's table, its workers, duties and histories as rows, and rows as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from kainite.aws import clients as aws
from kainite.fleet.model.records import HistoryLine, Picture
from kainite.fleet.store.contract import FleetStore
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.fleet.store.items import later_word
from kainite.settings import load

_COLOURS = {"running": "green", "alive": "green", "error": "red", "dead": "red", "waiting": "cyan", "stopped": "dim"}


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def store_of(properties: Path) -> FleetStore:
    """Returns the table of the fleet that the settings name."""
    settings = load(properties, needs=("applicationName",))
    return DynamoDBFleetStore(aws.client("dynamodb", settings.aws), settings.fleet.table, settings.fleet.history_days)


def worker_rows(picture: Picture) -> list[dict[str, Any]]:
    """Returns a row for each worker, by name."""
    lead = picture.lead
    return [
        {
            "worker": worker.name,
            "status": later_word(worker),
            "leads": lead is not None and lead.is_of(worker),
            "duties": [duty.name for duty in picture.duties_of(worker)],
            "load": picture.load_of(worker),
            "capacity": worker.capacity,
            "labels": list(worker.labels),
        }
        for _, worker in sorted(picture.workers.items())
    ]


def duty_rows(picture: Picture) -> list[dict[str, Any]]:
    """Returns a row for each duty, by name."""
    return [
        {
            "duty": duty.name,
            "kind": duty.work.kind,
            "status": later_word(duty),
            "worker": duty.worker,
            "goal": duty.goal,
            "wanted": "yes" if duty.wanted else "stopped" if duty.halted else "disabled",
            "weight": duty.work.weight,
            "error": duty.error,
        }
        for _, duty in sorted(picture.duties.items())
    ]


def event_rows(events: Iterable[HistoryLine]) -> list[dict[str, Any]]:
    """Returns a row for each line of a history."""
    return [
        {
            "time": datetime.fromtimestamp(event.at / 1000, UTC).isoformat(timespec="milliseconds"),
            "status": event.status,
            "worker": event.worker,
            "who": event.who,
            "why": event.why,
        }
        for event in events
    ]


def shown(rows: Sequence[dict[str, Any]]) -> Table | Text:
    """Returns rows as a table, whose columns are their keys."""
    if not rows:
        return Text("none")
    table = Table(header_style="bold")
    for name in rows[0]:
        table.add_column(name.capitalize(), overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row.values()), style=_COLOURS.get(row.get("status", "")))
    return table


def _cell(value: Any) -> Text:
    if value is None or value is False:
        return Text("")
    if value is True:
        return Text("yes")
    if isinstance(value, float):
        return Text(f"{value:g}")
    return Text(" ".join(value) if isinstance(value, list) else str(value))
