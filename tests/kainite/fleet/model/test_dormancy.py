"""The dormant hours of a worker: cron's fields, and ranges over the end of a day or a week."""

from __future__ import annotations

from datetime import datetime

import pytest

from kainite.fleet.model.dormancy import is_dormant, unwrapped

MONDAY = datetime(2026, 11, 23)


@pytest.mark.parametrize(
    ("expression", "dormant", "awake"),
    [
        ("* 22-6 * * *", [(22, 0), (23, 59), (0, 0), (6, 59)], [(7, 0), (21, 59), (12, 0)]),
        ("*/5 * * * *", [(0, 0), (0, 5), (13, 55)], [(0, 1), (13, 54)]),
        ("* 9-17/2 * * mon-fri", [(9, 0), (17, 30)], [(10, 0), (18, 0)]),
        ("* 1,3,20-22 * * *", [(1, 1), (3, 59), (21, 0)], [(2, 0), (23, 0)]),
        ("* * * * fri-mon", [(0, 0), (23, 59)], []),
        ("* * * * sat-sun", [], [(0, 0), (23, 59)]),
        ("* * * nov-feb *", [(4, 4)], []),
        ("50-10/5 * * * *", [(3, 50), (3, 0), (3, 10)], [(3, 51), (3, 15), (3, 45)]),
    ],
)
def test_a_worker_sleeps_in_the_minutes_of_the_expression(
    expression: str, dormant: list[tuple[int, int]], awake: list[tuple[int, int]]
) -> None:
    for hour, minute in dormant:
        assert is_dormant(expression, MONDAY.replace(hour=hour, minute=minute, second=31)), (hour, minute)
    for hour, minute in awake:
        assert not is_dormant(expression, MONDAY.replace(hour=hour, minute=minute)), (hour, minute)


@pytest.mark.parametrize("expression", ["", "* * * *", "* * * * * *", "* 25 * * *", "x * * * *", "* 22-x * * *"])
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match="cron expression of five fields"):
        is_dormant(expression, MONDAY)


def test_ranges_in_order_stay_as_they_are() -> None:
    assert unwrapped("1-5 22-2 1-31/2 * 0-6") == "1-5 22,23,0,1,2 1-31/2 * 0-6"
