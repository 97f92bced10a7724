from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError, SettingsError
from kainite.processors.tables import CurrentTables, TableRule, Tables, read_tables
from kainite.uow.catalogue.file import write_catalogue
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
        ('{"t": {"json": ["doc"]}}', "'t' must be an object with"),
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


def test_current_tables_read_a_replaced_catalogue_when_a_column_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.json"
    write_catalogue(CATALOGUE, path)
    tables = CurrentTables(None, path)
    rule, table = tables.find("public.orders", ["no", "placed"])
    assert (rule.key, table) == (("no",), CATALOGUE.tables["orders"])
    wider = {"no": Column("no", "int", TypeFamily.INTEGER), "placed": Column("placed", "date", TypeFamily.DATE)}
    write_catalogue(Catalogue({"orders": Table("orders", "public", wider, ("no",))}, "public"), path)
    assert tables.find("public.orders", ["no"])[1] == CATALOGUE.tables["orders"], "nothing unknown: no look at the file"
    found = tables.find("public.orders", ["no", "placed"])[1]
    assert found is not None
    assert found.columns["placed"].type == "date"


@pytest.mark.parametrize("broken", ["{", None])
def test_current_tables_stay_as_they_are_when_a_file_cannot_be_read(tmp_path: Path, broken: str | None) -> None:
    path = tmp_path / "tables.json"
    path.write_text('{"public.orders": {"key": ["id"]}}')
    tables = CurrentTables(path, None)
    path.unlink()
    if broken:
        path.write_text(broken)
    assert tables.find("unknown", [])[0] == TableRule("unknown")
    assert tables.find("public.orders", ["id"]) == (TableRule("public.orders", ("id",)), None)
