"""The depth of rows in a table that references itself."""

from __future__ import annotations

import pytest

from kainite.uow.catalogue.tables import TypeFamily
from kainite.uow.delta import Delta, Operation
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import PLAIN
from kainite_spark.targets.statements.self_reference import depths, references_itself
from support.tables import INTEGER, catalogue, columns, foreign_key, table

TREE = table("tree", columns(id=INTEGER, parent_id=INTEGER), ("id",), foreign_key(("parent_id",), "tree", ("id",)))


def insert(key: int | str, parent: int | str | None) -> Delta:
    return Delta("tree", Operation.INSERT, {"id": key}, {"id": key, "parent_id": parent}, {})


def delete(key: int, parent: int | None) -> Delta:
    return Delta("tree", Operation.DELETE, {"id": key}, {}, {"id": key, "parent_id": parent})


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([insert(1, None), insert(2, 1), insert(3, 2)], [0, 1, 2]),
        ([insert(3, 2), insert(2, 1), insert(1, None)], [2, 1, 0]),
        ([insert(2, 1), insert(3, 1)], [0, 0]),
        ([insert(1, 1)], [0]),
        ([insert(1, 2), insert(2, 1), insert(3, 1)], [0, 0, 0]),
        ([delete(2, 1), delete(1, None)], [1, 0]),
        ([insert(3, "2"), insert("2", 1), insert(1, None)], [2, 1, 0]),
    ],
    ids=[
        "in order",
        "out of order",
        "parent not among the deltas",
        "own parent",
        "cycle",
        "deletes",
        "other spellings",
    ],
)
def test_a_row_is_one_deeper_than_its_deepest_parent(deltas: list[Delta], expected: list[int]) -> None:
    assert depths(TouchedKeys(catalogue(TREE), PLAIN).plan("tree"), deltas) == expected


def test_a_table_references_itself_by_a_foreign_key_to_its_own_name() -> None:
    assert references_itself(TREE)
    assert not references_itself(table("item", columns(id=INTEGER)))


def test_opaque_values_are_compared_as_they_stand() -> None:
    moments = columns(id=TypeFamily.OPAQUE, parent_id=TypeFamily.OPAQUE)
    tree = catalogue(table("tree", moments, ("id",), foreign_key(("parent_id",), "tree", ("id",))))
    assert depths(TouchedKeys(tree, PLAIN).plan("tree"), [insert(3, 2), insert(2, 1), insert(1, None)]) == [2, 1, 0]
