from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from kainite.base.errors import CatalogueError
from kainite.uow.catalogue.file import dumps, loads, read_catalogue, write_catalogue
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, ReferentialAction, Table, UniqueKey
from support.tables import INTEGER, SHOP, TEXT, catalogue, columns, table

ODD = catalogue(
    table(
        "other.t",
        columns(id=INTEGER) | {"b": Column("b", "text", TEXT, nullable=False, generated=True)},
        (),
        UniqueKey("partial", ()),
        UniqueKey("k", ("b", "id"), nulls_distinct=False),
        ForeignKey("f", ("id",), "elsewhere.x", ("id",), deferrable=True),
        ForeignKey(
            "g",
            ("id",),
            "elsewhere.x",
            ("id",),
            on_delete=ReferentialAction.SET_NULL,
            on_update=ReferentialAction.CASCADE,
        ),
    ),
    replace(table("other.part", columns(id=INTEGER)), part_of="other.t", judged=()),
    replace(table("other.judged", columns(id=INTEGER, a=TEXT)), judged=("a",), defaults=("id",)),
)


@pytest.mark.parametrize("tables", [SHOP, ODD, Catalogue({}, None)])
def test_what_is_written_reads_back_the_same(tables: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "catalogue.json"
    write_catalogue(tables, path)
    read = read_catalogue(path)
    assert read == tables
    assert [list(one.columns) for one in read.tables.values()] == [
        list(tables.tables[name].columns) for name in sorted(tables.tables)
    ]
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_does_not_depend_on_the_order_of_tables() -> None:
    turned = Catalogue(dict(reversed(list(SHOP.tables.items()))), SHOP.default_schema)
    assert dumps(turned) == dumps(SHOP)


def test_defaults_are_left_out() -> None:
    described = orjson.loads(dumps(SHOP))["tables"]["history"]
    assert described == {
        "schema": "public",
        "columns": {
            "customer": {"type": "bigint", "family": "integer"},
            "note": {"type": "text", "family": "text"},
        },
        "primary_key": [],
        "unique_keys": [],
        "foreign_keys": [
            {"name": "customer_to_customer", "columns": ["customer"], "parent": "customer", "parent_columns": ["id"]}
        ],
    }


def changed(path: tuple[str | int, ...], value: Any) -> bytes:
    document = copy.deepcopy(orjson.loads(dumps(SHOP)))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return orjson.dumps(document)


def no_catalogue(*contents: bytes) -> list[tuple[bytes, str]]:
    return [(each, "not a catalogue of version 1: write it anew") for each in contents]


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"{", "invalid JSON"),
        (b'{"kainite_catalogue": 1, "tables": {"\xff": {}}}', "the file: 'utf-8' codec"),
        (b"[" * 100_000, "not a catalogue"),
        *no_catalogue(b"[]", b"{}", b"1", changed(("kainite_catalogue",), 2), changed(("kainite_catalogue",), "1")),
    ],
    ids=repr,
)
def test_what_is_no_catalogue_at_all_says_so(data: bytes, cause: str) -> None:
    with pytest.raises(CatalogueError, match=cause):
        loads(data)


KEY = ("orders", "foreign_keys", 0)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ((), [], "tables: Expected `object`, got `array`"),
        (("orders",), 1, "tables.orders: Expected `object`, got `int`"),
        (("orders",), {}, "tables.orders: Object missing required field `columns`"),
        (("orders", "columns"), None, "tables.orders.columns: Expected `object`, got `null`"),
        (
            ("orders", "columns", "id"),
            {"type": "int"},
            "tables.orders.columns.id: Object missing required field `family`",
        ),
        (
            ("orders", "columns", "id", "family"),
            "int",
            "tables.orders.columns.id.family: Invalid enum value 'int'; one of integer, numeric",
        ),
        (("orders", "columns", "id", "nullable"), 0, "tables.orders.columns.id.nullable: Expected `bool`, got `int`"),
        (("orders", "primary_key"), ["no"], "tables.orders.primary_key: there is no column 'no'"),
        (("orders", "primary_key"), [1], "tables.orders.primary_key[0]: Expected `str`, got `int`"),
        (("orders", "unique_keys"), [1], "tables.orders.unique_keys[0]: Expected `object`, got `int`"),
        (
            ("orders", "unique_keys"),
            [{"name": "k", "columns": ["id", "no"]}],
            "tables.orders.unique_keys[0].columns: there is no column 'no'",
        ),
        (("orders", "judged"), ["no"], "tables.orders.judged: there is no column 'no'"),
        (("orders", "defaults"), ["no"], "tables.orders.defaults: there is no column 'no'"),
        (("orders", "part_of"), 1, "tables.orders.part_of: Expected `str | null`, got `int`"),
        ((*KEY, "columns"), ["no"], "tables.orders.foreign_keys[0].columns: there is no column 'no'"),
        ((*KEY, "parent_columns"), [], "tables.orders.foreign_keys[0]: columns and parent_columns must be as many"),
        (
            (*KEY, "parent_columns"),
            ["no"],
            "tables.orders.foreign_keys[0].parent_columns: 'customer' has no column 'no'",
        ),
        (
            (*KEY, "on_delete"),
            "explode",
            "tables.orders.foreign_keys[0].on_delete: Invalid enum value 'explode'; one of no action",
        ),
        ((*KEY, "on_update"), 1, "tables.orders.foreign_keys[0].on_update: Expected `str`, got `int`"),
    ],
)
def test_a_broken_file_says_where(path: tuple[str | int, ...], value: Any, problem: str) -> None:
    with pytest.raises(CatalogueError) as refused:
        loads(changed(("tables", *path), value))
    assert str(refused.value).startswith(problem)


def test_a_file_that_is_written_by_hand_may_leave_out_what_has_a_default() -> None:
    least = b'{"kainite_catalogue": 1, "tables": {"t": {"columns": {"id": {"type": "int", "family": "integer"}},'
    least += b' "primary_key": ["id"], "unique_keys": [], "foreign_keys": []}}}'
    assert loads(least) == Catalogue({"t": Table("t", None, {"id": Column("id", "int", INTEGER)}, ("id",))})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"none\.json cannot be read: No such file"):
        read_catalogue(tmp_path / "none.json")


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"gone/c\.json cannot be written"):
        write_catalogue(SHOP, tmp_path / "gone" / "c.json")
