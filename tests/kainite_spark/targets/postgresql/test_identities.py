"""Columns that are GENERATED ALWAYS AS IDENTITY: inserts write them, updates cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.stores import Database, Store, Stores

DDL = """
    CREATE TABLE item (
        id bigint PRIMARY KEY, no bigint NOT NULL GENERATED ALWAYS AS IDENTITY, code text UNIQUE, qty integer);
    CREATE TABLE only_key (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
"""


@pytest.fixture
def store(postgres: str) -> Iterator[Store]:
    opened = Stores(Database(postgres))
    store = opened.open(DDL)
    first = [store.insert("item", id=n, no=70 + n, code=f"c{n}", qty=1) for n in (1, 2)]
    assert store.statuses(store.unit(0, *first, store.insert("only_key", id=5))) == ["committed"]
    yield store
    opened.close()


def test_whole_rows_are_updated_and_upserted(store: Store) -> None:
    units = [
        store.unit(1, store.update("item", {"id": 1}, id=1, no=71, code="x", qty=5)),
        store.unit(2, store.upsert("item", id=2, no=72, code="y", qty=6)),
        store.unit(3, store.upsert("item", id=3, no=90, code="z", qty=7)),
        store.unit(4, store.update("item", {"id": 3}, id=4, no=90, code="z", qty=8)),
    ]
    assert store.statuses(*units) == ["committed"] * 4
    assert store.rows("item") == [(1, 71, "x", 5), (2, 72, "y", 6), (4, 90, "z", 8)]


def test_an_update_that_writes_nothing_else_meets_its_row(store: Store) -> None:
    units = [
        store.unit(1, store.update("item", {"id": 1}, no=71)),
        store.unit(2, store.update("only_key", {"id": 5}, id=5)),
        store.unit(3, store.upsert("only_key", id=5), store.upsert("only_key", id=6)),
    ]
    assert store.statuses(*units) == ["committed"] * 3
    assert store.rows("only_key") == [(5,), (6,)]


@pytest.mark.parametrize("op", ["update", "upsert", "alone"])
def test_a_number_that_the_source_has_changed_is_refused_and_not_lost(store: Store, op: str) -> None:
    change = {
        "update": store.update("item", {"id": 1}, no=99, qty=2),
        "upsert": store.upsert("item", id=1, no=99, code="c1", qty=2),
        "alone": store.update("item", {"id": 1}, no=99),
    }[op]
    [outcome] = store.apply(store.unit(1, change))
    assert outcome.status == "failed"
    assert "no is GENERATED ALWAYS AS IDENTITY" in (outcome.cause or "")
    assert store.rows("item")[0] == (1, 71, "c1", 1)


def test_a_row_that_is_not_there_is_missed(store: Store) -> None:
    [outcome] = store.apply(store.unit(1, store.update("item", {"id": 9}, no=79, qty=2)))
    assert "met 0 rows" in (outcome.cause or "")


def test_an_update_of_the_number_is_not_folded_into_the_insert(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite_spark.targets.statements.planner.FOLDED_LAYERS", 1)
    units = [
        store.unit(1, store.insert("item", id=7, no=7, code="n", qty=1)),
        store.unit(2, store.update("item", {"id": 7}, no=8, qty=2)),
    ]
    assert store.statuses(*units) == ["committed", "failed"]
