"""Units of which the source tells no order: their deltas come in any, and are applied in one that the keys allow."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from kainite.uow.delta import Delta
from support.stores import Store, Stores

DDL = """
    CREATE TABLE doc (id bigint PRIMARY KEY, code bigint NOT NULL UNIQUE);
    CREATE TABLE part (id bigint PRIMARY KEY, doc bigint NOT NULL REFERENCES doc, no bigint UNIQUE);
    INSERT INTO doc VALUES (1, 7), (2, 8); INSERT INTO part VALUES (1, 1, 5), (2, 2, 6);
"""
OWN = """
    CREATE TABLE own (id bigint PRIMARY KEY, doc bigint REFERENCES doc ON DELETE CASCADE, v integer);
    INSERT INTO own VALUES (1, 1, 0);
"""


def known(told: bool, **values: Any) -> dict[str, Any]:
    return values if told else {}


def replaced(store: Store, told: bool) -> Sequence[Delta]:
    """Returns deltas by which a row, with its child, makes room for another one with the same unique values."""
    return (
        store.delete("doc", known(told, code=7), id=1),
        store.delete("part", known(told, doc=1, no=5), id=1),
        store.insert("doc", id=3, code=7),
        store.insert("part", id=3, doc=3, no=5),
    )


def moved(store: Store, told: bool) -> Sequence[Delta]:
    """Returns deltas by which a parent goes when its children have left it."""
    return (
        store.insert("doc", id=3, code=9),
        store.update("part", {"id": 1}, known(told, doc=1), doc=3),
        store.update("own", {"id": 1}, known(told, doc=1), doc=3),
        store.delete("doc", known(told, code=7), id=1),
    )


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("batch", range(4))
def test_a_row_makes_room_for_another_in_each_order_of_arrival(stores: Stores, told: bool, batch: int) -> None:
    store = stores.open(DDL)
    for tid, order in enumerate(list(itertools.permutations(range(4)))[batch::4]):
        deltas = replaced(store, told)
        unit = store.unit(2 * tid, *(deltas[place] for place in order))
        store.session.apply(store.fence, [unit])
        assert store.rows("doc") == [(2, 8), (3, 7)]
        assert store.rows("part") == [(2, 2, 6), (3, 3, 5)]
        stores.database.run(
            "DELETE FROM part WHERE id = 3; DELETE FROM doc WHERE id = 3; INSERT INTO doc VALUES (1, 7);"
            "INSERT INTO part VALUES (1, 1, 5);"
        )


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 2, 0, 3), (2, 3, 0, 1)])
def test_no_parent_goes_before_its_children_have_left(stores: Stores, told: bool, order: tuple[int, ...]) -> None:
    store = stores.open(DDL + OWN)
    deltas = moved(store, told)
    assert store.statuses(store.unit(1, *(deltas[place] for place in order))) == ["committed"]
    assert (store.rows("own"), store.rows("part")) == ([(1, 3, 0)], [(1, 3, 5), (2, 2, 6)])


def test_a_value_that_goes_from_row_to_row_by_updates(stores: Stores) -> None:
    store = stores.open(DDL + OWN)
    first, second = (
        store.update("doc", {"id": 1}, {"code": 7}, code=9),
        store.update("doc", {"id": 2}, {"code": 8}, code=7),
    )
    assert store.statuses(store.unit(1, second, first)) == ["committed"]
    assert store.rows("doc") == [(1, 9), (2, 7)]
