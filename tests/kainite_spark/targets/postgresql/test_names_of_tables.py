"""Tables whose names mean something else in a statement, or in a delta."""

from __future__ import annotations

import pytest

from kainite.base.errors import CatalogueError
from kainite.uow.catalogue.reflection import reflect
from support.stores import Database, Stores

NAMED = "excluded", "t", "d", "new0", "old0", "json_to_recordset"


@pytest.mark.parametrize("name", NAMED)
def test_a_table_that_is_called_like_a_part_of_a_statement(stores: Stores, name: str) -> None:
    store = stores.open(f"CREATE TABLE {name} (id bigint PRIMARY KEY, {name} integer, excluded_ integer)")
    units = [
        store.unit(1, store.insert(name, id=1, **{name: 1})),
        store.unit(2, store.upsert(name, id=1, **{name: 2})),
        store.unit(3, store.update(name, {"id": 1}, **{name: 3})),
        store.unit(4, store.update(name, {"id": 1}, id=2)),
        store.unit(5, store.upsert(name, id=3, **{name: 5}), store.delete(name, id=3)),
    ]
    assert store.statuses(*units) == ["committed"] * 5
    assert store.rows(name) == [(2, 3, None)]


def test_a_name_that_begins_with_the_default_schema(stores: Stores) -> None:
    store = stores.open("""
        CREATE TABLE x (id bigint PRIMARY KEY, v integer);
        CREATE TABLE "public.x" (id bigint PRIMARY KEY, v integer);
    """)
    assert set(store.catalogue.tables) == {"x", "public.public.x"}
    units = [
        store.unit(1, store.insert("x", id=1, v=1)),
        store.unit(2, store.insert("public.public.x", id=2, v=2)),
    ]
    assert store.statuses(*units) == ["committed"] * 2
    plain = store.catalogue.find("public.x")
    assert plain is not None
    assert plain.bare_name == "x"
    assert (store.rows("x"), store.rows('"public.x"')) == ([(1, 1)], [(2, 2)])


def test_two_tables_of_one_name_are_refused(postgres: str) -> None:
    Database(postgres).run("""
        CREATE SCHEMA sales; CREATE TABLE sales.x (id bigint PRIMARY KEY);
        CREATE TABLE "sales.x" (id bigint PRIMARY KEY);
    """)
    with pytest.raises(CatalogueError, match=r"both called sales\.x: in the schemas 'public' and 'sales'"):
        reflect(postgres, ["public", "sales"])
    assert set(reflect(postgres, ["public"]).tables) == {"sales.x"}
