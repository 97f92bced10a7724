"""SQLite alone: its types and locks."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.opening import open_target
from support.stores import Database, Stores


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    path = tmp_path / "target.db"
    sqlite3.connect(path).close()
    opened = Stores(Database(f"sqlite:///{path}"))
    yield opened
    opened.close()


def test_values_are_kept_as_sqlite_keeps_them(stores: Stores) -> None:
    store = stores.open(
        "CREATE TABLE v (id integer PRIMARY KEY, b boolean, j json, y blob, t text, n numeric, big integer)"
    )
    row = store.insert("v", id=1, b=True, j={"a": [1]}, y="\\x00ff", t="\\x00 ü", n="12.50", big=2**63 - 1)
    empty = store.insert("v", id=2, b=None, j=None, y=None, t=None, n=None, big=None)
    assert store.statuses(store.unit(1, row, empty)) == ["committed"]
    assert store.rows("v") == [(1, 1, '{"a":[1]}', b"\x00\xff", "\\x00 ü", 12.5, 2**63 - 1), (2, *[None] * 6)]


@pytest.mark.parametrize(("column", "value"), [("n", 2**63), ("y", "\\xzz"), ("t", "\ud800"), ("i", "not a number")])
def test_a_value_that_does_not_fit_fails_its_unit_alone(stores: Stores, column: str, value: object) -> None:
    store = stores.open("CREATE TABLE v (id integer PRIMARY KEY, n integer, y blob, t text, i integer) STRICT")
    units = [store.unit(tid, store.insert("v", id=tid)) for tid in (1, 2, 3)]
    units[1] = store.unit(2, store.insert("v", id=2, **{column: value}))
    assert store.statuses(*units) == ["committed", "failed", "committed"]


def test_an_update_that_spells_the_key_anew_is_not_taken_for_one_that_leaves_it(stores: Stores) -> None:
    store = stores.open("CREATE TABLE v (id text COLLATE NOCASE PRIMARY KEY, n integer)")
    units = [store.unit(1, store.insert("v", id="b", n=1)), store.unit(2, store.update("v", {"id": "B"}, id="B", n=2))]
    assert store.statuses(*units, group_units=1) == ["committed"] * 2
    assert store.rows("v") == [("B", 2)]


def test_a_locked_database_is_unavailable(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite_spark.targets.sqlite.target._BUSY_SECONDS", 0.05)
    store = stores.open()
    path = store.database.url.removeprefix("sqlite:///")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    unit = store.unit(1, store.insert("audit", what="x", at=1))
    with pytest.raises(TargetUnavailableError, match="locked"):
        store.session.apply(store.fence, [unit])
    holder.execute("ROLLBACK")
    holder.close()
    assert store.statuses(unit) == ["committed"]


def test_a_missing_file_is_unavailable_and_not_created(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    with pytest.raises(TargetUnavailableError):
        open_target(f"sqlite:///{path}", Catalogue({})).connect()
    assert not path.exists()


def test_a_target_travels_to_tasks(stores: Stores) -> None:
    store = stores.open()
    session = stores.session(pickle.loads(pickle.dumps(store.target)))
    session.apply(store.fence, [store.unit(1, store.insert("audit", what="x", at=1))])
    assert store.rows("audit") == [("x", 1)]
