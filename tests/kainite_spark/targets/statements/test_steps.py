"""Steps of a unit: no row and no unique value is touched twice in one step."""

from __future__ import annotations

import pytest

from kainite.uow.delta import Delta, Operation, Row
from kainite_spark.targets.statements.steps import Stepper
from support.tables import SHOP


def delta(op: str, table: str, key: Row, before: Row | None = None, **row: object) -> Delta:
    return Delta(table, Operation(op), key, {**key, **row} if op == "insert" else row, before or {})


def numbers(*deltas: Delta) -> list[int]:
    """Returns the number of each delta's step."""
    steps = Stepper(SHOP).steps(deltas)
    return [next(number for number, step in enumerate(steps) if delta in step) for delta in deltas]


ANNA, BORIS = {"id": 1}, {"id": 2}
LINE = {"order_id": 1, "line": 1}


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([delta("insert", "customer", ANNA, email="a")], [0]),
        ([delta("update", "customer", ANNA, name="a"), delta("update", "customer", BORIS, name="b")], [0, 0]),
        ([delta("update", "customer", ANNA, name="a"), delta("update", "customer", ANNA, name="b")], [0, 1]),
        ([delta("update", "customer", ANNA, id=3), delta("update", "customer", {"id": 3}, name="b")], [0, 1]),
        (
            [
                delta("update", "customer", ANNA, {"email": "a"}, email="x"),
                delta("update", "customer", BORIS, {"email": "b"}, email="a"),
            ],
            [0, 1],
        ),
        ([delta("insert", "orders", ANNA), delta("insert", "order_line", LINE)], [0, 0]),
        (
            [delta("delete", "orders", ANNA), delta("insert", "orders", ANNA), delta("insert", "order_line", LINE)],
            [0, 1, 1],
        ),
        (
            [
                delta("update", "order_line", LINE, qty=2),
                delta("delete", "order_line", LINE),
                delta("delete", "orders", ANNA),
            ],
            [0, 1, 1],
        ),
        ([delta("insert", "unknown", ANNA), delta("insert", "unknown", ANNA)], [0, 0]),
    ],
    ids=[
        "one delta",
        "two rows",
        "one row twice",
        "a row under its new key",
        "a unique value from one row to another",
        "parent and child",
        "a child after its parent is back",
        "a delete after the last step of its children",
        "a table that the catalogue does not have",
    ],
)
def test_a_delta_is_one_step_after_the_last_that_touched_the_same(deltas: list[Delta], expected: list[int]) -> None:
    assert numbers(*deltas) == expected
