"""The order that the target's keys demand of deltas that the source does not number."""

from __future__ import annotations

import pytest

from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, Table, TypeFamily, UniqueKey
from kainite.uow.delta import Delta, Operation, Row
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import PLAIN
from kainite_spark.targets.statements.derived_order import PlannedDelta, derived_order


def table(name: str, *keys: ForeignKey) -> Table:
    columns = {column: Column(column, "bigint", TypeFamily.INTEGER) for column in ("id", "code", "up", "v")}
    return Table(name, None, columns, ("id",), (UniqueKey("u", ("code",)),), keys)


CATALOGUE = Catalogue({"doc": table("doc"), "part": table("part", ForeignKey("f", ("up",), "doc", ("id",)))})
KEYS = TouchedKeys(CATALOGUE, PLAIN)


def delta(op: str, name: str, number: int, before: Row | None = None, **row: object) -> Delta:
    return Delta(name, Operation(op), {"id": number}, {"id": number, **row} if op == "insert" else row, before or {})


def order(*deltas: Delta) -> list[str]:
    planned = [
        PlannedDelta(each, each.table, KEYS.plan(each.table), frozenset({"doc"} if each.table == "part" else ()))
        for each in deltas
    ]
    return [f"{each.op} {each.table} {each.key['id']}" for each in derived_order(planned)]


INSERT, DELETE = delta("insert", "doc", 2, code=7), delta("delete", "doc", 1, {"code": 7})


@pytest.mark.parametrize(
    "deltas",
    [
        (INSERT, DELETE),
        (INSERT, delta("delete", "doc", 1)),
        (INSERT, delta("update", "doc", 1, {"code": 7}, code=8)),
        (delta("update", "doc", 2, {"code": 8}, code=7), DELETE),
    ],
)
def test_a_value_is_given_up_before_it_is_taken(deltas: tuple[Delta, Delta]) -> None:
    words = [f"{each.op} doc {each.key['id']}" for each in deltas]
    assert order(*deltas) == words[::-1]
    assert order(*deltas[::-1]) == words[::-1]


@pytest.mark.parametrize(
    "deltas",
    [
        (INSERT, delta("delete", "doc", 1, {"code": 8})),
        (INSERT, delta("delete", "doc", 1, {"code": None})),
        (delta("update", "doc", 2, v=7), DELETE),
        (INSERT, delta("delete", "doc", 2, {"code": 7})),
        (delta("insert", "doc", 1, code=5), delta("update", "doc", 1, code=6), delta("insert", "doc", 2, code=6)),
        (delta("update", "doc", 1, {"code": 1}, code=2), delta("update", "doc", 2, {"code": 2}, code=1)),
    ],
    ids=["another value", "no value", "none taken", "the same row", "the last one takes", "a swap"],
)
def test_else_the_order_of_arrival_stays(deltas: tuple[Delta, ...]) -> None:
    assert order(*deltas) == [f"{each.op} doc {each.key['id']}" for each in deltas]


def test_children_go_before_their_parent_and_come_behind_the_new_one() -> None:
    deltas = [
        delta("insert", "part", 5, code=1, up=2), INSERT, DELETE, delta("delete", "part", 4, {"code": 1, "up": 1}),
    ]  # fmt: skip
    expected = ["delete part 4", "delete doc 1", "insert doc 2", "insert part 5"]
    assert order(*deltas) == expected
    assert order(*deltas[::-1]) == expected


def test_a_delete_that_cannot_have_made_room_waits_for_the_children() -> None:
    deltas = [delta("delete", "doc", 1), delta("update", "part", 4, up=2), delta("insert", "doc", 2, code=9)]
    assert order(*deltas) == ["insert doc 2", "update part 4", "delete doc 1"]
