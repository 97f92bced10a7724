"""Runs and segments, of which the order must not change."""

from __future__ import annotations

import pytest

from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.statements.hooked_runs import runs, segments


def fires(delta: Delta) -> bool:
    return delta.table.isupper()


def deltas(tables: str, *, numbered: bool = True) -> list[Delta]:
    return [Delta(each, Operation.INSERT, {}, {"a": 1}, {}, n if numbered else None) for n, each in enumerate(tables)]


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ("a b c", ["a b c"]),
        ("a B c", ["a", "B!", "c"]),
        ("a b A aB c d", ["a b", "A!", "aB!", "c d"]),
        ("", []),
    ],
)
def test_a_unit_that_fires_something_is_alone(units: str, expected: list[str]) -> None:
    listed = [Unit(tid, name, tuple(deltas(name))) for tid, name in enumerate(units.split())]
    found = [" ".join(unit.uow for unit in run.units) + "!" * run.hooked for run in runs(listed, fires)]
    assert found == expected


@pytest.mark.parametrize(
    ("unit", "expected"), [("abc", ["abc"]), ("aBc", ["a", "B", "c"]), ("aBBcd", ["a", "B", "B", "cd"])]
)
def test_numbered_deltas_are_cut_where_one_fires_something(unit: str, expected: list[str]) -> None:
    found = ["".join(each.table for each in segment) for segment in segments(deltas(unit), fires)]
    assert found == expected


def test_deltas_of_which_the_order_is_not_known_stay_together() -> None:
    assert [len(segment) for segment in segments(deltas("aBc", numbered=False), fires)] == [3]
