from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError, MissingExtraError, SettingsError
from kainite.base.markers import Batching
from kainite.settings import ApplySettings
from kainite_spark.targets.contract import Target
from kainite_spark.targets.exec.target import ExecTarget
from kainite_spark.targets.opening import most_units, open_target
from kainite_spark.targets.postgresql.target import PostgresTarget
from kainite_spark.targets.sqlite.target import SqliteTarget
from support.tables import INTEGER, SHOP, catalogue, columns, foreign_key, table

LOADER = f"exec:{sys.executable} -c pass"


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("postgresql://host/shop", PostgresTarget),
        ("postgresql+psycopg://host/shop", PostgresTarget),
        ("postgres://host/shop", PostgresTarget),
        ("sqlite:///shop.db", SqliteTarget),
        (LOADER, ExecTarget),
    ],
)
def test_the_url_names_the_kind_of_target(url: str, kind: type[Target]) -> None:
    target = open_target(url, SHOP)
    assert isinstance(target, kind)
    target.close()


@pytest.mark.parametrize(
    "url", ["oracle://host/shop", "shop.db", "sqlite:shop.db", "sqlite+pysqlite:///shop.db", "postgresql:shop", ""]
)
def test_another_kind_of_target_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match=r"target must be postgresql://.*, sqlite:///file, .* or exec:COMMAND"):
        open_target(url, SHOP)


def test_a_cycle_that_cannot_be_deferred_is_refused(tmp_path: Path) -> None:
    cyclic = catalogue(
        table("a", columns(id=INTEGER, b=INTEGER), ("id",), foreign_key(("b",), "b", ("id",))),
        table("b", columns(id=INTEGER, a=INTEGER), ("id",), foreign_key(("a",), "a", ("id",))),
    )
    with pytest.raises(CatalogueError):
        open_target(f"sqlite:///{tmp_path / 'shop.db'}", cyclic)


def test_a_driver_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kainite_spark.targets.postgresql.opening", None)
    with pytest.raises(MissingExtraError, match=r"install kainite\[postgresql\]"):
        open_target("postgresql://host/shop", SHOP)


@pytest.mark.parametrize(
    ("target", "batching", "units"),
    [
        (None, Batching.WORKER, 500),
        ("sqlite:///shop.db", Batching.SINGLE, 500),
        (LOADER, Batching.SINGLE, 1),
        (LOADER, Batching.WORKER, 40),
        (LOADER, Batching.SUPERVISOR, 40),
    ],
)
def test_a_loaders_group_is_its_batch(target: str | None, batching: Batching, units: int) -> None:
    apply = ApplySettings(target=target, group_units=500, loader_batching=batching, loader_batch_size=40)
    assert most_units(apply) == units


def test_a_loaders_batch_is_no_larger_than_a_group() -> None:
    apply = ApplySettings(
        target=LOADER, group_units=10, loader_batching=Batching.SUPERVISOR, loader_batch_size=40
    )  # fmt: skip
    assert most_units(apply) == 10
