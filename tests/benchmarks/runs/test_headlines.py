"""The table of recorded runs has a column a commit, a row a figure, and a mark where nothing was measured."""

from __future__ import annotations

from typing import Any

from runs.headlines import HEADLINES, headline_table


def a_run(revision: str, date: str, began: str = "2026-01-01", **found: Any) -> dict[str, Any]:
    return {
        "began": began,
        "commit": {"revision": revision, "date": date, "changed": False},
        "benchmarks": {name: {"found": each} for name, each in found.items()},
    }


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


STATUS = "`kainite status` with 100,000 units in the log, s"
WAY = [
    {"name": "Kainite", "mix": "TPC-B", "rate": 0.0, "per_second": 500, "busy": {"daemon": 0.2}},
    {"name": "Kainite", "mix": "TPC-B", "rate": 100.0, "per_second": 99, "latency": [0.17, 0.3, 0.4]},
    {"name": "CREATE SUBSCRIPTION", "mix": "TPC-B", "rate": 0.0, "per_second": 2000},
]


def test_each_commit_has_a_column_the_oldest_first() -> None:
    new = a_run("b" * 40, "2026-03-01T10:00:00", commands={"status": {"seconds": 0.25}})
    old = a_run("a" * 40, "2026-02-01T10:00:00", commands={"status": {"seconds": 0.5}})
    head, _, *rows = cells(headline_table([new, old]))
    assert head == ["", "2026-02-01 `aaaaaaaa`", "2026-03-01 `bbbbbbbb`"]
    assert rows == [[STATUS, "0.5", "0.25"]]


def test_a_later_run_of_a_commit_counts_for_what_it_has() -> None:
    first = a_run("a" * 40, "2026-02-01", "2026-02-01", commands={"status": {"seconds": 0.5}}, whole_way=WAY)
    again = a_run("a" * 40, "2026-02-01", "2026-02-02", commands={"status": {"seconds": 0.4}})
    rows = dict(cells(headline_table([again, first]))[2:])
    assert (rows[STATUS], rows["TPC-B, whole way, units/s"]) == ("0.4", "500")


def test_a_figure_with_a_baseline_is_the_ratio_of_one_run() -> None:
    rows = dict(cells(headline_table([a_run("a" * 40, "2026-02-01", whole_way=WAY)]))[2:])
    assert rows["TPC-B, whole way : `CREATE SUBSCRIPTION`"] == "0.25"
    assert rows["TPC-B at 100 units/s: 99 % within s"] == "0.3"
    assert "TPC-B, whole way : `foreachBatch`" not in rows


def test_what_one_commit_lacks_is_marked() -> None:
    runs = [a_run("a" * 40, "2026-02-01", whole_way=WAY), a_run("b" * 40, "2026-03-01", apply={"ratio_to_A": 0.7})]
    rows = cells(headline_table(runs))[2:]
    assert ["orders into PostgreSQL : hand-tuned statements", "–", "0.7"] in rows


def test_titles_tell_the_rows_apart() -> None:
    assert len({each.title for each in HEADLINES}) == len(HEADLINES)
