"""Each of several targets is opened by its own lines; where one cannot be, no other one stays open."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kainite.base.errors import MissingExtraError
from kainite.settings import load
from kainite_spark.targets.mariadb.target import MariadbTarget
from kainite_spark.targets.several_opening import open_each
from kainite_spark.targets.sqlite.target import SqliteTarget
from support.tables import INTEGER, catalogue, columns, table

TABLES = catalogue(*(table(name, columns(id=INTEGER), ("id",)) for name in ("item", "contact", "line")))
LEVELS = {"item": 0, "line": 1, "contact": 0}


def test_each_has_the_tables_that_are_assigned_to_it_and_its_own_kind(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(
        "applicationName = app\nexecutableName = a\nstreamName = s\n"
        f"target.shop = sqlite:///{tmp_path}/shop.db\n"
        "target.crm = mariadb://u@h/crm\ntarget.crm.tables = contact\n"
    )
    opened = open_each(load(path), TABLES, LEVELS)
    shop, crm = opened["shop"], opened["crm"]
    assert isinstance(shop, SqliteTarget)
    assert isinstance(crm, MariadbTarget)
    assert set(shop.schema.catalogue.tables) == {"item", "line"}
    assert shop.schema.levels == {"item": 0, "line": 1}
    for target in opened.values():
        target.close()


def test_where_one_cannot_be_opened_the_others_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr(SqliteTarget, "close", lambda target: closed.append(str(target.path)))
    monkeypatch.setitem(sys.modules, "kainite_spark.targets.postgresql.opening", None)
    path = tmp_path / "app.properties"
    path.write_text(
        "applicationName = app\nexecutableName = a\nstreamName = s\n"
        f"target.shop = sqlite:///{tmp_path}/shop.db\n"
        "target.crm = postgresql://u@h/crm\ntarget.crm.tables = contact\n"
    )
    with pytest.raises(MissingExtraError):
        open_each(load(path), TABLES, LEVELS)
    assert [Path(one).name for one in closed] == ["shop.db"]
