from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError, SettingsError
from kainite.processors.tables import TableRule, Tables, read_tables
from kainite.uow.catalogue.tables import Catalogue, Column, Table, TypeFamily

CATALOGUE = Catalogue(
    {
        "orders": Table("orders", "public", {"no": Column("no", "int", TypeFamily.INTEGER)}, ("no",)),
        "log": Table("log", "public", {}, ()),
    },
    "public",
)


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("public.orders", TableRule("public.orders", ("no",))),
        ("public.log", TableRule("public.log", ())),
        ("crm.orders", TableRule("orders", ("id",))),
        ("crm.sales", TableRule("orders", ("no",))),
        ("crm.unknown", TableRule("crm.unknown")),
        ("unknown", TableRule("unknown")),
    ],
)
def test_a_table_keeps_its_name_and_takes_the_catalogues_key_unless_the_file_says_otherwise(
    source: str, rule: TableRule
) -> None:
    rules = {"crm.orders": TableRule("orders", ("id",)), "crm.sales": TableRule("orders")}
    assert Tables(rules, CATALOGUE).find(source) == rule


def test_without_files_a_table_keeps_its_name_and_has_no_key() -> None:
    assert read_tables(None, None).find("public.t") == TableRule("public.t", None)


def test_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tables.json"
    path.write_text('{"a.t": {"table": "t", "key": ["x", "y"]}, "a.u": {"key": []}}')
    tables = read_tables(path, None)
    assert tables.find("a.t") == TableRule("t", ("x", "y"))
    assert tables.find("a.u") == TableRule("a.u", ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "invalid JSON"),
        ("[]", "an object is needed"),
        ('{"t": ["id"]}', "'t' must be an object with"),
        ('{"t": {"keys": ["id"]}}', "'t' must be an object with"),
        ('{"t": {"table": ""}}', "'table' must be"),
        ('{"t": {"key": "id"}}', "'key' must be an array"),
        ('{"t": {"key": [1]}}', "'key' must be an array"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "tables.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message) as caught:
        read_tables(path, None)
    assert str(path) in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_tables(tmp_path / "none", None)
    with pytest.raises(CatalogueError, match="cannot be read"):
        read_tables(None, tmp_path / "none")
