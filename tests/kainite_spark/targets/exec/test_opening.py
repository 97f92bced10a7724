from __future__ import annotations

import sys

import pytest

from kainite.base.errors import CatalogueError, SettingsError
from kainite_spark.targets.exec.target import ExecTarget
from kainite_spark.targets.opening import open_target
from support.tables import INTEGER, catalogue, columns, foreign_key, table

LOADER = f"exec:{sys.executable} -c pass"


def test_a_loader_needs_no_catalogue() -> None:
    assert isinstance(open_target(LOADER, None), ExecTarget)


def test_a_loader_that_is_missing_is_named_with_its_key() -> None:
    with pytest.raises(SettingsError, match=r"^target: there is no program 'no-such-loader'"):
        open_target("exec:no-such-loader --fast", None)


def test_a_loaders_tables_that_have_no_order_are_refused() -> None:
    cyclic = catalogue(
        table("a", columns(id=INTEGER, b=INTEGER), ("id",), foreign_key(("b",), "b", ("id",))),
        table("b", columns(id=INTEGER, a=INTEGER), ("id",), foreign_key(("a",), "a", ("id",))),
    )
    with pytest.raises(CatalogueError):
        open_target(LOADER, cyclic)
