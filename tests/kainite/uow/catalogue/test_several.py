"""The catalogue of an application with several targets."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from kainite.base.errors import CatalogueError
from kainite.settings import load
from kainite.settings.assignment import TableAssignment
from kainite.settings.targets import of_target
from kainite.uow.admission import Admission
from kainite.uow.catalogue.several import catalogue_of, merged, only, own_tables
from kainite.uow.catalogue.tables import Catalogue, ForeignKey, Table
from kainite.uow.signing import Signing


def made(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)
    return path


def test_each_table_is_read_from_the_target_that_it_belongs_to(tmp_path: Path) -> None:
    made(tmp_path / "a.db", "CREATE TABLE item (id integer PRIMARY KEY); CREATE TABLE visit (old integer);")
    made(tmp_path / "b.db", "CREATE TABLE visit (id integer PRIMARY KEY); CREATE TABLE item (old integer);")
    path = tmp_path / "app.properties"
    path.write_text(
        "applicationName = app\nstreamName = s\nexecutableName = e\ntarget.a = sqlite:///a.db\ntarget.b = sqlite:///b.db\n"
        "target.b.tables = visit\n"
    )
    settings = load(path)
    found = catalogue_of(settings)
    assert found is not None
    assert {name: tuple(table.columns) for name, table in found.tables.items()} == {"item": ("id",), "visit": ("id",)}
    of_b = catalogue_of(of_target(settings, "b"))
    assert of_b is not None
    assert set(of_b.tables) == {"visit"}


def test_a_table_is_found_with_and_without_the_default_schema_of_its_target() -> None:
    tables = {name: Table(name, None, {}) for name in ("item", "visit")}
    found = merged((Catalogue({"item": tables["item"]}, "public"), Catalogue({"visit": tables["visit"]}, "crm")))
    assert (found.default_schema, found.more_defaults) == ("public", ("crm",))
    assert [found.find(name) for name in ("item", "public.item", "visit", "crm.visit")] == [
        tables["item"], tables["item"], tables["visit"], tables["visit"],
    ]  # fmt: skip
    assert found.find("elsewhere.item") is None


def test_a_foreign_key_cannot_leave_its_target() -> None:
    child = Table("child", None, {}, foreign_keys=(ForeignKey("k", ("a",), "parent", ("id",)),))
    catalogue = Catalogue({"child": child, "parent": Table("parent", None, {})})
    targets = TableAssignment((("a", ()), ("b", ("parent",))))
    with pytest.raises(CatalogueError, match=r"child is among those of target\.a\.tables and references parent"):
        only(catalogue, targets, "a")
    assert set(only(catalogue, TableAssignment((("a", ()),)), "a").tables) == {"child", "parent"}


def test_a_unit_with_a_table_that_is_not_the_log_s_own_does_not_fit(tmp_path: Path) -> None:
    """Shows how several logs keep to their own tables of one database: each file names its own."""
    made(tmp_path / "a.db", "CREATE TABLE item (id integer PRIMARY KEY); CREATE TABLE visit (id integer PRIMARY KEY);")
    misfits: dict[str, list[str]] = {}
    for own, other in (("item", "visit"), ("visit", "item")):
        path = tmp_path / f"{own}.properties"
        path.write_text(
            f"applicationName = {own}s\nstreamName = s\nexecutableName = e\ntarget = sqlite:///a.db\n"
            f"targetTables = {own}\n"
        )
        admission = Admission(Signing(catalogue_of(load(path))))
        for uow, table in (("T-own", own), ("T-other", other)):
            delta = {"uow": uow, "table": table, "op": "insert", "row": {"id": 1}}
            admission.feed(orjson.dumps({"action": "emit", "deltas": [delta]}))
        misfits[own] = [f"{one.uow}: {misfit.cause}" for one in admission.take("?") for misfit in one.misfits]
    assert misfits == {
        "item": ["T-other: table 'visit' is not in the target's catalogue"],
        "visit": ["T-other: table 'item' is not in the target's catalogue"],
    }


def test_a_foreign_key_cannot_lead_to_a_table_of_another_log(tmp_path: Path) -> None:
    made(
        tmp_path / "a.db",
        "CREATE TABLE item (id integer PRIMARY KEY); CREATE TABLE part (id integer PRIMARY KEY REFERENCES item (id));",
    )
    path = tmp_path / "app.properties"
    path.write_text(
        "applicationName = app\nstreamName = s\nexecutableName = e\ntarget = sqlite:///a.db\ntargetTables = par*\n"
    )
    with pytest.raises(CatalogueError, match=r"part is among those of targetTables and references item, which is not"):
        catalogue_of(load(path))


@pytest.mark.parametrize("pattern", ["orders", "public.orders", "pub*", "ord*"])
def test_a_table_is_named_as_in_deltas_or_with_its_schema(tmp_path: Path, pattern: str) -> None:
    tables = {"orders": Table("orders", "public", {}), "crm.item": Table("crm.item", "crm", {})}
    (tmp_path / "app.properties").write_text(f"applicationName = app\ntargetTables = {pattern}\n")
    settings = load(tmp_path / "app.properties", needs=())
    assert list(own_tables(settings, Catalogue(tables, "public")).tables) == ["orders"]
