"""What a source lists of its own actions, and what is left of it for a target that has carried them out."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.uow.catalogue.tables import Catalogue, ReferentialAction
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
