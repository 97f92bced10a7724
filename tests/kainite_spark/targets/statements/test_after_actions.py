"""What a source lists of its own actions, and what is left of it for a target that has carried them out."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.uow.catalogue.tables import Catalogue, ReferentialAction, TypeFamily
from kainite.uow.delta import Delta, Operation
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import PLAIN
from kainite_spark.targets.statements.after_actions import fitted
from kainite_spark.targets.statements.steps import Stepper
from support.stores import Database, Stores
from support.tables import CASCADE, INTEGER, acting, catalogue, columns, table

SET_NULL = ReferentialAction.SET_NULL
PAGES = catalogue(
    table("person", columns(id=INTEGER, v=INTEGER)),
    table(
        "page",
        columns(id=INTEGER, author=INTEGER, editor=INTEGER, v=INTEGER),
        ("id",),
        acting("author", "person", SET_NULL, CASCADE),
        acting("editor", "person", SET_NULL, CASCADE),
    ),
    table("note", columns(page=INTEGER, v=INTEGER), ()),
)
OWNED = catalogue(
    PAGES.tables["person"],
    table(
        "page",
        columns(id=INTEGER, author=INTEGER, owner=INTEGER, v=INTEGER),
        ("id",),
        acting("author", "person", SET_NULL, CASCADE),
        acting("owner", "person", CASCADE),
    ),
)


def delta(table: str, op: str, key: int, **row: Any) -> Delta:
    return Delta(table, Operation(op), {"id": key}, row, {})


def page(op: str, key: int, **row: Any) -> Delta:
    return delta("page", op, key, **row)


def person(op: str, key: int, **row: Any) -> Delta:
    return delta("person", op, key, **row)


def taken(*deltas: Delta, tables: Catalogue = PAGES) -> list[tuple[dict[str, Any], bool]]:
    """Returns the rows that are written, and whether each may be missing."""
    plan_of = TouchedKeys(tables, PLAIN).plan
    return [(dict(each.delta.row), each.may_miss) for each in fitted(deltas, plan_of, Stepper(tables).cascaded(deltas))]


GONE = person("delete", 1)


def test_an_image_in_the_middle_of_the_actions_does_not_name_the_parent_that_is_gone() -> None:
    first, second = page("update", 5, author=None, editor=1, v=7), page("update", 5, author=None, editor=None, v=7)
    assert taken(GONE, first, second)[1:] == [({"author": None, "v": 7}, False), (dict(second.row), False)]


def test_nor_the_key_that_a_parent_had() -> None:
    first, second = page("update", 5, author=2, editor=1), page("update", 5, author=2, editor=2)
    assert taken(person("update", 1, id=2), first, second)[1:] == [({"author": 2}, False), (dict(second.row), False)]


def test_an_update_of_which_nothing_is_left_goes() -> None:
    assert taken(GONE, page("update", 5, editor=1), page("update", 5, editor=None))[1:] == [({"editor": None}, False)]


@pytest.mark.parametrize(
    "deltas",
    [
        (page("update", 5, editor=1), page("update", 5, editor=None), GONE),
        (GONE, page("update", 5, editor=2), page("update", 5, editor=None)),
        (GONE, page("update", 5, editor=1), page("update", 6, editor=None)),
        (GONE, page("update", 5, editor=1), page("update", 5, v=1)),
        (GONE, person("insert", 1), page("update", 5, editor=1), page("update", 5, editor=None)),
        (GONE, page("insert", 5, id=5, editor=1), page("update", 5, editor=None)),
        (person("update", 1, v=3), page("update", 5, editor=1), page("update", 5, editor=None)),
    ],
    ids=["before", "another parent", "another row", "not written again", "born again", "an insert", "still there"],
)
def test_everything_else_stays(deltas: tuple[Delta, ...]) -> None:
    assert taken(*deltas) == [(dict(each.row), False) for each in deltas]


@pytest.mark.parametrize(
    ("deltas", "may_miss"),
    [
        ((GONE, page("update", 5, v=1), page("delete", 5)), [False, True, True]),
        ((page("update", 5, v=1), page("delete", 5), GONE), [False, False, False]),
        ((GONE, page("update", 5, v=1), page("delete", 6)), [False, False, True]),
        ((GONE, page("update", 5, v=1), page("insert", 5, id=5), page("delete", 5)), [False, False, False, True]),
    ],
    ids=["taken along", "before", "another row", "made anew"],
)
def test_a_row_that_the_unit_deletes_in_the_end_may_be_missing(deltas: tuple[Delta, ...], may_miss: list[bool]) -> None:
    assert [missing for _, missing in taken(*deltas, tables=OWNED)] == may_miss
    assert not any(missing for _, missing in taken(*deltas)), "SET NULL deletes no row"


def spelled(text: str) -> Delta:
    return Delta("person", Operation.DELETE, {"id": text}, {}, {})


STRANGE = catalogue(
    table("person", columns(id=TypeFamily.OPAQUE, v=INTEGER)),
    table(
        "page",
        columns(id=INTEGER, author=TypeFamily.OPAQUE, editor=TypeFamily.OPAQUE),
        ("id",),
        acting("author", "person", SET_NULL),
        acting("editor", "person", SET_NULL),
    ),
)


@pytest.mark.parametrize(
    ("between", "kept"),
    [
        ((), set()),
        ((Delta("person", Operation.UPDATE, {"id": "(2)"}, {"id": "(2)", "v": 1}, {}),), set()),
        ((Delta("person", Operation.INSERT, {"id": "(01)"}, {"id": "(01)"}, {}),), {"editor"}),
        ((Delta("person", Operation.UPDATE, {"id": "(2)"}, {"id": "(3)"}, {}),), {"editor"}),
    ],
    ids=["alone", "another row stays", "perhaps made anew", "perhaps another row's now"],
)
def test_values_whose_equality_is_not_known_are_gone_as_they_are_spelled(
    between: tuple[Delta, ...], kept: set[str]
) -> None:
    first, second = page("update", 5, author=None, editor="(1)"), page("update", 5, author=None, editor=None)
    written = taken(spelled("(1)"), *between, first, second, tables=STRANGE)[-2][0]
    assert written.keys() - {"author"} == kept


def test_a_value_that_is_not_known_to_be_gone_is_written() -> None:
    first, second = page("update", 5, author=None, editor="(1)"), page("update", 5, author=None, editor=None)
    assert taken(spelled("(2)"), first, second, tables=STRANGE)[1][0] == dict(first.row)


def test_a_target_takes_what_the_source_lists_of_a_composite_key(postgres: str) -> None:
    stores = Stores(Database(postgres))
    store = stores.open("""
        CREATE TYPE pair AS (a integer, b text);
        CREATE TABLE node (id pair PRIMARY KEY, v integer, up pair REFERENCES node ON DELETE SET NULL,
            aside pair REFERENCES node ON DELETE SET NULL ON UPDATE SET DEFAULT);""")
    listed = [("(1,x)", None, None), ("(2,y)", "(1,x)", None), ("(3,z)", "(1,x)", "(1,x)")]
    units = [
        store.unit(0, *(store.insert("node", id=n, v=0, up=up, aside=aside) for n, up, aside in listed)),
        store.unit(
            1,
            store.delete("node", id="(1,x)"),
            store.update("node", {"id": "(2,y)"}, id="(2,y)", v=0, up=None, aside=None),
            store.update("node", {"id": "(3,z)"}, id="(3,z)", v=0, up=None, aside="(1,x)"),
            store.update("node", {"id": "(3,z)"}, id="(3,z)", v=0, up=None, aside=None),
        ),
    ]
    assert [outcome.cause for outcome in store.apply(*units)] == [None, None]
    assert store.database.rows("SELECT id::text, up, aside FROM node ORDER BY id") == [
        ("(2,y)", None, None), ("(3,z)", None, None),
    ]  # fmt: skip
    stores.close()


def test_a_table_without_a_key_takes_its_rows_as_they_are() -> None:
    note = Delta("note", Operation.INSERT, {}, {"page": 1}, {})
    assert taken(GONE, note, note)[1:] == [({"page": 1}, False)] * 2


def test_a_target_takes_what_the_source_lists(postgres: str) -> None:
    stores = Stores(Database(postgres))
    store = stores.open("""
        CREATE TABLE person (id integer PRIMARY KEY);
        CREATE TABLE page (id integer PRIMARY KEY, v integer,
            author integer REFERENCES person ON DELETE SET NULL ON UPDATE CASCADE,
            editor integer REFERENCES person ON DELETE SET NULL ON UPDATE CASCADE,
            owner integer REFERENCES person ON DELETE CASCADE);""")
    persons = [store.insert("person", id=number) for number in (1, 2, 3)]
    pages = [
        store.insert("page", id=5, author=1, editor=1, owner=None, v=0),
        store.insert("page", id=6, author=2, editor=2, owner=2, v=0),
        store.insert("page", id=7, author=3, editor=3, owner=None, v=0),
    ]
    units = [
        store.unit(0, *persons, *pages),
        store.unit(
            1,
            store.delete("person", id=1),
            store.update("page", {"id": 5}, author=None, editor=1, owner=None, v=0),
            store.update("page", {"id": 5}, author=None, editor=None, owner=None, v=0),
        ),
        store.unit(
            2,
            store.delete("person", id=2),
            store.update("page", {"id": 6}, author=None, editor=2, owner=2, v=0),
            store.update("page", {"id": 6}, author=None, editor=None, owner=2, v=0),
            store.delete("page", id=6),
        ),
        store.unit(
            3,
            store.update("person", {"id": 3}, id=4),
            store.update("page", {"id": 7}, author=4, editor=3, owner=None, v=0),
            store.update("page", {"id": 7}, author=4, editor=4, owner=None, v=0),
        ),
    ]
    assert store.statuses(*units) == ["committed"] * 4
    assert store.database.rows("SELECT id, author, editor FROM page ORDER BY id") == [(5, None, None), (7, 4, 4)]
    stores.close()
