"""Fixtures that run the same tests on every kind of target."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from kainite.settings.kinds import target_kinds
from kainite_spark.targets.statements import planner
from support.loaders import documented_loader
from support.made_up_kind import KIND
from support.stores import Database, Store, Stores


@pytest.fixture(autouse=True, scope="module")
def few_layers_are_folded() -> Iterator[None]:
    """Lets groups of a few units be folded, too."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planner, "FOLDED_LAYERS", 1)
        yield


@pytest.fixture(params=["postgresql", "sqlite", "mariadb", "exec", "made up"])
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Gives an empty database of each kind; "exec" is SQLite behind the loader that docs/targets.md shows."""
    if request.param == "postgresql":
        return Database(request.getfixturevalue("postgres"))
    if request.param == "mariadb":
        return Database(request.getfixturevalue("mariadb"))
    path = tmp_path / "target.db"
    sqlite3.connect(path).close()
    url = f"sqlite:///{path}"
    if request.param == "made up":
        monkeypatch.setattr(target_kinds, "TARGET_KINDS", (*target_kinds.TARGET_KINDS, KIND))
        return Database(url, f"shelf:{path}")
    return Database(url, documented_loader(tmp_path, path)) if request.param == "exec" else Database(url)


@pytest.fixture
def stores(database: Database) -> Iterator[Stores]:
    opened = Stores(database)
    yield opened
    opened.close()


@pytest.fixture
def shop(stores: Stores) -> Store:
    """Gives the shop's tables with one region, one customer and one order in them."""
    store = stores.open()
    seed = (
        store.insert("region", id=1, name="north"),
        store.insert("customer", id=1, region_id=1, email="a@x"),
        store.insert("orders", id=1, customer_id=1),
    )
    assert store.statuses(store.unit(0, *seed)) == ["committed"]
    return store
