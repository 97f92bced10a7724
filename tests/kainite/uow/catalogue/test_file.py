from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from kainite.base.errors import CatalogueError
from kainite.uow.catalogue.file import dumps, loads, read_catalogue, write_catalogue
from kainite.uow.catalogue.tables import Action, Catalogue, Column, ForeignKey, UniqueKey
from support.tables import INTEGER, SHOP, TEXT, catalogue, columns, table

ODD = catalogue(
    table(
        "other.t",
        columns(id=INTEGER) | {"b": Column("b", "text", TEXT, nullable=False, generated=True)},
        (),
        UniqueKey("partial", ()),
        UniqueKey("k", ("b", "id"), nulls_distinct=False),
        ForeignKey("f", ("id",), "elsewhere.x", ("id",), deferrable=True),
        ForeignKey("g", ("id",), "elsewhere.x", ("id",), on_delete=Action.SET_NULL, on_update=Action.CASCADE),
    ),
    replace(table("other.part", columns(id=INTEGER)), part_of="other.t", judged=()),
    replace(table("other.judged", columns(id=INTEGER, a=TEXT)), judged=("a",)),
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


ORDERS = ("tables", "orders")


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"{", "invalid JSON"),
        (b"[]", "not a catalogue of version 1"),
        (changed(("kainite_catalogue",), 2), "not a catalogue of version 1"),
        (changed(("tables",), []), "'tables' of the file must be an object"),
        (changed(ORDERS, 1), "table 'orders' must be an object"),
        (changed((*ORDERS, "columns"), None), "'columns' of table 'orders' must be an object"),
        (changed((*ORDERS, "columns", "id"), {"type": "int"}), "column 'id' of table 'orders': 'family' is missing"),
        (changed((*ORDERS, "columns", "id", "family"), "int"), "'family' must be one of integer, numeric"),
        (
            changed((*ORDERS, "columns", "id", "nullable"), 0),
            "'nullable' of column 'id' of table 'orders' must be",
        ),
        (changed((*ORDERS, "primary_key"), ["no"]), "table 'orders': a key names column 'no', which it does not have"),
        (changed((*ORDERS, "primary_key"), [1]), "'primary_key' of table 'orders' must be a string"),
        (changed((*ORDERS, "unique_keys"), [1]), "a unique key of table 'orders' must be an object"),
        (changed((*ORDERS, "foreign_keys", 0, "parent_columns"), []), "must be as many"),
        (changed((*ORDERS, "foreign_keys", 0, "on_delete"), "explode"), "must be one of no action, cascade"),
        (
            changed((*ORDERS, "foreign_keys", 0, "on_update"), 1),
            "'on_update' of a foreign key of table 'orders' must be",
        ),
        (changed((*ORDERS, "part_of"), 1), "'part_of' of table 'orders' must be a string"),
        (changed((*ORDERS, "foreign_keys", 0, "parent_columns"), ["no"]), "names column 'no', which 'customer' does"),
    ],
)
def test_a_broken_file_says_where(data: bytes, cause: str) -> None:
    with pytest.raises(CatalogueError) as refused:
        loads(data)
    assert cause in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"none\.json cannot be read: No such file"):
        read_catalogue(tmp_path / "none.json")


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"gone/c\.json cannot be written"):
        write_catalogue(SHOP, tmp_path / "gone" / "c.json")
