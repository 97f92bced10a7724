"""Opening all targets of a settings file as one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError
from kainite.settings import Settings, load
from kainite.store.memory import MemoryStore
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, Table, TypeFamily
from kainite.uow.precedence.load import load_levels
from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.atomic.opening import open_atomic
from kainite_spark.targets.postgresql.target import PostgresTarget

LINES = (
    "applicationName = app", "executableName = a", "streamName = s", "targetCommit = atomic",
    "target.shop = postgresql://u@h/shop", "target.crm = postgresql://u@h/crm", "target.crm.tables = contact",
)  # fmt: skip


def read(folder: Path) -> Settings:
    path = folder / "app.properties"
    path.write_text("\n".join(LINES))
    return load(path)


def table(name: str, *parents: str) -> Table:
    keys = tuple(ForeignKey(f"{name}_{parent}", ("id",), parent, ("id",)) for parent in parents)
    return Table(name, None, {"id": Column("id", "bigint", TypeFamily.INTEGER)}, ("id",), (), keys)


def test_each_target_has_its_own_tables_and_their_precedence(tmp_path: Path) -> None:
    catalogue = Catalogue({one.name: one for one in (table("item"), table("line", "item"), table("contact"))})
    opened = open_atomic(read(tmp_path), catalogue, load_levels(catalogue, None), Decisions(MemoryStore(), "0"))
    with closing(opened):
        found = {name: target for name, target in opened.targets.items() if isinstance(target, PostgresTarget)}
        assert {name: set(target.schema.catalogue.tables) for name, target in found.items()} == {
            "shop": {"item", "line"}, "crm": {"contact"},
        }  # fmt: skip
        assert found["shop"].schema.levels["item"] < found["shop"].schema.levels["line"]
        assert [found["shop"].url, found["crm"].url] == ["postgresql://u@h/shop", "postgresql://u@h/crm"]


def test_a_foreign_key_that_leaves_its_target_is_refused(tmp_path: Path) -> None:
    catalogue = Catalogue({one.name: one for one in (table("item"), table("contact", "item"))})
    with pytest.raises(CatalogueError, match="a foreign key cannot leave the tables of its log, or of its target"):
        open_atomic(read(tmp_path), catalogue, {}, Decisions(MemoryStore(), "0"))
