"""The order in which a loader gets a unit's deltas, by what is known of its tables."""

from __future__ import annotations

import pytest

from kainite.base.errors import TargetRejectedError
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, Table, TypeFamily
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.exec.delta_order import DeltaOrder

LEVELS = {"parent": 1, "child": 2}
ID = Column("id", "bigint", TypeFamily.INTEGER)
PARENT = Column("parent_id", "bigint", TypeFamily.INTEGER)
CATALOGUE = Catalogue(
    {
        "parent": Table("parent", None, {"id": ID}, ("id",)),
        "child": Table(
            "child",
            None,
            {"id": ID, "parent_id": PARENT},
            ("id",),
            foreign_keys=(ForeignKey("fk", ("parent_id",), "parent", ("id",)),),
        ),
    }
)


def insert(table: str, key: int) -> Delta:
    return Delta(table, Operation.INSERT, {"id": key}, {"id": key}, {})


def delete(table: str, key: int) -> Delta:
    return Delta(table, Operation.DELETE, {"id": key}, {}, {})


def told(order: DeltaOrder, *deltas: Delta) -> list[tuple[str, str]]:
    return [(delta.op.value, delta.table) for delta in order.by_precedence(Unit(1, "T-1", deltas))]


CHILDREN_FIRST = (insert("child", 1), insert("parent", 1), delete("parent", 2), delete("child", 2))
IN_ORDER = [("insert", "parent"), ("insert", "child"), ("delete", "child"), ("delete", "parent")]


@pytest.mark.parametrize("catalogue", [CATALOGUE, None], ids=["catalogue", "pairs alone"])
def test_parents_come_first_and_go_last(catalogue: Catalogue | None) -> None:
    assert told(DeltaOrder(catalogue, LEVELS), *CHILDREN_FIRST) == IN_ORDER


@pytest.mark.parametrize("catalogue", [CATALOGUE, None], ids=["catalogue", "pairs alone"])
def test_a_row_that_is_touched_again_keeps_its_order(catalogue: Catalogue | None) -> None:
    again = (delete("parent", 1), insert("parent", 1), delete("child", 2))
    assert [op for op, table in told(DeltaOrder(catalogue, LEVELS), *again) if table == "parent"] == [
        "delete",
        "insert",
    ]


def test_without_precedence_the_source_s_order_stays() -> None:
    assert told(DeltaOrder(None, {}), *CHILDREN_FIRST) == [(delta.op.value, delta.table) for delta in CHILDREN_FIRST]


def test_rows_that_cannot_be_told_apart_stay_in_the_source_s_order() -> None:
    keyless = Delta("parent", Operation.INSERT, {}, {"id": 1}, {})
    deltas = (insert("child", 1), delete("parent", 1), keyless)
    assert told(DeltaOrder(None, LEVELS), *deltas) == [("insert", "child"), ("delete", "parent"), ("insert", "parent")]


def test_what_the_catalogue_does_not_have_is_refused_before_the_loader_hears_of_it() -> None:
    unit = Unit(1, "T-1", (insert("nowhere", 1),))
    for order in (DeltaOrder(CATALOGUE, LEVELS).by_precedence, DeltaOrder(CATALOGUE, LEVELS).by_source):
        with pytest.raises(
            TargetRejectedError,
            match="nowhere",
        ):
            order(unit)


def test_the_source_s_order_is_the_unit_s_own() -> None:
    unit = Unit(1, "T-1", CHILDREN_FIRST)
    for catalogue in (CATALOGUE, None):
        assert list(DeltaOrder(catalogue, LEVELS).by_source(unit)) == list(CHILDREN_FIRST)
