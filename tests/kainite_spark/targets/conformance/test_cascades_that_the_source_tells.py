"""Deletes and moves that a foreign key has made in the source, and makes in the target, are met when they are told."""

from __future__ import annotations

import pytest

from kainite_spark.targets.statements.planner import Statement
from support.stores import DATABASES, DEFERRING, Stores

TREE = """
    CREATE TABLE tree (id bigint PRIMARY KEY, up bigint REFERENCES tree ON DELETE CASCADE);
"""

OTHERS = """
    CREATE TABLE other (id bigint PRIMARY KEY);
    CREATE TABLE leaf (id bigint PRIMARY KEY, p bigint REFERENCES other ON DELETE CASCADE);
"""

CYCLE = """
    CREATE TABLE a (id bigint PRIMARY KEY, b bigint);
    CREATE TABLE b (id bigint PRIMARY KEY, a bigint REFERENCES a ON DELETE CASCADE DEFERRABLE);
"""
CLOSED = {
    "postgresql": "ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b ON DELETE CASCADE DEFERRABLE",
    "sqlite": "DROP TABLE a; CREATE TABLE a (id bigint PRIMARY KEY, b bigint REFERENCES b ON DELETE CASCADE)",
}

MOVED = """
    CREATE TABLE doc (id bigint PRIMARY KEY, v integer);
    CREATE TABLE line (
        doc bigint REFERENCES doc ON UPDATE CASCADE, no integer, v integer, PRIMARY KEY (doc, no));
"""


@DATABASES
@pytest.mark.parametrize("told", [True, False])
def test_a_tree_that_is_deleted_from_its_root(stores: Stores, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Statement, "MAX_ROWS", 3)
    store = stores.open(TREE)
    filled = store.unit(1, *(store.insert("tree", id=n, up=n // 2 or None) for n in range(1, 12)))
    gone = [store.delete("tree", {"up": n // 2 or None} if told else {}, id=n) for n in range(1, 12)]
    assert store.statuses(filled, store.unit(2, *gone)) == ["committed"] * 2
    assert store.rows("tree") == []


@DEFERRING
@pytest.mark.parametrize("told", [True, False])
def test_two_tables_in_a_cycle(stores: Stores, told: bool) -> None:
    store = stores.open(CYCLE + CLOSED[stores.database.kind])
    filled = [store.insert(t, **{"id": n, other: n}) for n in (1, 2) for t, other in (("a", "b"), ("b", "a"))]
    gone = {
        (t, n): store.delete(t, {other: n} if told else {}, id=n)
        for n in (1, 2)
        for t, other in (("a", "b"), ("b", "a"))
    }
    first, second = (gone["a", 1], gone["b", 1]), (gone["b", 2], gone["a", 2])
    units = [store.unit(1, *filled), store.unit(2, *first), store.unit(3, *second)]
    assert store.statuses(*units) == ["committed"] * 3
    assert (store.rows("a"), store.rows("b")) == ([], [])


@DATABASES
def test_a_row_that_no_cascade_reaches_must_be_there(stores: Stores) -> None:
    store = stores.open(TREE + OTHERS)
    filled = store.unit(1, store.insert("other", id=1), store.insert("other", id=2), store.insert("tree", id=2))
    units = [
        store.unit(2, store.delete("tree", {"up": None}, id=2), store.delete("other", id=7)),
        store.unit(3, store.delete("other", id=1), store.delete("leaf", {"p": 2}, id=9)),
        store.unit(4, store.update("other", {"id": 1}, id=5), store.delete("leaf", {"p": 1}, id=9)),
    ]
    outcomes = store.apply(filled, *units)
    assert [outcome.status for outcome in outcomes] == ["committed", "failed", "failed", "blocked"]
    assert "met 0 rows" in (outcomes[2].cause or "")


@DATABASES
@pytest.mark.parametrize("action", ["ON UPDATE CASCADE", "ON DELETE SET NULL"])
@pytest.mark.parametrize("told", [True, False])
def test_a_row_that_another_foreign_keys_cascade_passes_by_must_be_there(
    stores: Stores, action: str, told: bool
) -> None:
    store = stores.open(OTHERS + f"CREATE TABLE twig (id bigint PRIMARY KEY, p bigint REFERENCES other {action});")
    filled = store.unit(1, store.insert("other", id=1), store.insert("leaf", id=1, p=1))
    unit = store.unit(2, store.delete("twig", {"p": 1} if told else {}, id=9), store.delete("other", {}, id=1))
    assert store.statuses(filled, unit) == ["committed", "failed"]
    assert store.rows("other") == [(1,)]


@DATABASES
def test_a_key_that_moves_with_its_parent(stores: Stores) -> None:
    store = stores.open(MOVED)
    lines = [store.insert("line", doc=1, no=no, v=0) for no in (1, 2)]
    filled = store.unit(1, store.insert("doc", id=1, v=1), *lines)
    moved = [store.update("line", {"doc": 1, "no": no}, doc=2, no=no, v=0) for no in (1, 2)]
    unit = store.unit(2, store.update("doc", {"id": 1}, id=2, v=1), *moved)
    assert [outcome.cause for outcome in store.apply(filled, unit)] == [None, None]
    assert store.rows("line") == [(2, 1, 0), (2, 2, 0)]
