"""Rows of workers, duties and histories, and the tables that are made of them."""

from __future__ import annotations

import io

from rich.console import Console

from kainite.cli.fleet_views import duty_rows, shown, worker_rows
from support.fleet_commands import FleetCommands


def printed(rows: list[dict[str, object]]) -> list[str]:
    output = io.StringIO()
    Console(file=output, width=200).print(shown(rows))
    return output.getvalue().splitlines()


def test_a_worker_has_its_duties_and_a_duty_its_worker(fleet: FleetCommands) -> None:
    picture = fleet.filled().picture()

    (worker,), (duty,) = worker_rows(picture), duty_rows(picture)
    assert (worker["worker"], worker["leads"], worker["duties"], worker["labels"]) == ("a", True, ["d"], ["big"])
    assert (duty["duty"], duty["worker"], duty["wanted"], duty["error"]) == ("d", "a", "yes", "")


def test_a_cell_is_a_word_a_number_or_nothing() -> None:
    rows: list[dict[str, object]] = [{"name": "a", "leads": True, "load": 1.5, "why": None, "labels": ["x", "y"]}]

    head, line = (printed(rows)[place].replace("┃", " ").replace("│", " ").split() for place in (1, 3))
    assert head == ["Name", "Leads", "Load", "Why", "Labels"]
    assert line == ["a", "yes", "1.5", "x", "y"]


def test_no_rows_are_told() -> None:
    assert printed([]) == ["none"]
