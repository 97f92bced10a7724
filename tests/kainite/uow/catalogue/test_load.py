from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError, SettingsError
from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.catalogue.load import load_catalogue
from support.tables import SHOP


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "catalogue.json"
    write_catalogue(SHOP, path)
    return path


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "target.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE in_the_target (id integer PRIMARY KEY)")
    return f"sqlite:///{path}"


@pytest.mark.parametrize("target", [None, "exec:loader", "postgresql://nobody.invalid/shop"])
def test_the_file_wins_and_the_target_is_not_asked(file: Path, target: str | None) -> None:
    assert load_catalogue(file, target) == SHOP


def test_the_target_is_read_where_there_is_no_file(database: str) -> None:
    found = load_catalogue(None, database)
    assert found is not None
    assert list(found.tables) == ["in_the_target"]


@pytest.mark.parametrize("target", [None, "exec:loader --fast"])
def test_without_a_file_and_a_database_there_is_no_catalogue(target: str | None) -> None:
    assert load_catalogue(None, target) is None


def test_a_file_that_cannot_be_read_is_an_error_even_with_a_target(tmp_path: Path, database: str) -> None:
    with pytest.raises(CatalogueError, match=r"none\.json cannot be read"):
        load_catalogue(tmp_path / "none.json", database)


def test_a_host_with_a_file_needs_no_database_driver(file: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from kainite.uow.catalogue.load import load_catalogue\n"
        "load_catalogue(Path(sys.argv[1]), 'postgresql://nobody.invalid/shop')\n"
        "assert not {'psycopg', 'kainite.targets.postgresql.catalogue'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(file)], check=True)


def test_a_target_of_no_kind_is_a_wrong_setting() -> None:
    with pytest.raises(SettingsError, match="target must be postgresql://"):
        load_catalogue(None, "oracle://host/shop")
