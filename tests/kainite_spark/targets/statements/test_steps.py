"""Steps of a unit: no row and no unique value is touched twice in one step."""

from __future__ import annotations

import pytest

from kainite.base.errors import TargetRejectedError
from kainite.uow.catalogue.tables import Catalogue, TypeFamily
from kainite.uow.delta import Delta, Operation, Row
from kainite_spark.targets.statements.steps import Stepper
from support.tables import INTEGER, SHOP, catalogue, columns, table


def delta(op: str, table: str, key: Row, before: Row | None = None, **row: object) -> Delta:
    return Delta(table, Operation(op), key, {**key, **row} if op == "insert" else row, before or {})


def numbers(*deltas: Delta, tables: Catalogue = SHOP) -> list[int]:
    """Returns the number of each delta's step."""
    steps = Stepper(tables).steps(deltas)
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
            [0, 0, 0],
        ),
        (
            [
                delta("update", "order_line", LINE, qty=2),
                delta("update", "order_line", LINE, qty=3),
                delta("delete", "orders", ANNA),
            ],
            [0, 1, 1],
        ),
        ([delta("delete", "customer", ANNA), delta("upsert", "customer", {"id": "01"}, name="a")], [0, 1]),
        ([delta("update", "customer", ANNA, name="a"), delta("update", "customer", {"id": 1.0}, name="b")], [0, 1]),
        (
            [
                delta("delete", "customer", ANNA, {"email": "a"}),
                delta("insert", "customer", BORIS, email="a"),
                delta("insert", "shipment", ANNA, notify="a"),
            ],
            [0, 1, 1],
        ),
        (
            [
                delta("delete", "order_line", LINE),
                delta("insert", "order_line", LINE),
                delta("insert", "shipment", ANNA, line="1", order_id="1"),
            ],
            [0, 1, 1],
        ),
        ([delta("insert", "shipment", ANNA, notify="a"), delta("insert", "customer", ANNA, email="a")], [0, 0]),
        ([delta("delete", "customer", BORIS), delta("delete", "orders", ANNA, {"customer": 2})], [0, 0]),
    ],
    ids=[
        "one delta",
        "two rows",
        "one row twice",
        "a row under its new key",
        "a unique value from one row to another",
        "parent and child",
        "a child after its parent is back",
        "a delete of a row after its update",
        "a delete after the last step of what may be a child",
        "a number and its text",
        "a number and its float",
        "a parent that a unique key names",
        "a parent that a composite key names, in another order",
        "a child before its parent",
        "a parent gone before its child",
    ],
)
def test_a_delta_is_one_step_after_the_last_that_touched_the_same(deltas: list[Delta], expected: list[int]) -> None:
    assert numbers(*deltas) == expected


def test_a_table_that_the_catalogue_does_not_have_is_refused() -> None:
    with pytest.raises(TargetRejectedError, match="no table unknown"):
        numbers(delta("insert", "unknown", ANNA), delta("insert", "unknown", ANNA))


def test_a_key_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(TargetRejectedError, match="no whole number"):
        numbers(delta("delete", "customer", {"id": "x"}), delta("delete", "customer", ANNA))


MOMENTS = catalogue(table("event", columns(device=INTEGER, at=TypeFamily.OPAQUE, v=INTEGER), ("device", "at")))


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        (["insert", "insert"], [0, 0]),
        (["delete", "delete"], [0, 0]),
        (["insert", "update"], [0, 0]),
        (["update", "insert"], [0, 1]),
        (["upsert", "upsert"], [0, 1]),
        (["delete", "upsert"], [0, 1]),
        (["upsert", "delete"], [0, 0]),
        (["update", "update"], [0, 1]),
    ],
)
def test_opaque_keys_keep_the_source_s_order(ops: list[str], expected: list[int]) -> None:
    deltas = [delta(op, "event", {"device": 1, "at": place}, v=place) for place, op in enumerate(ops)]
    assert numbers(*deltas, tables=MOMENTS) == expected
    others = [delta(op, "event", {"device": place, "at": 0}, v=place) for place, op in enumerate(ops)]
    assert numbers(*others, tables=MOMENTS) == [0, 0]
