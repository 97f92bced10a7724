"""A kind of target needs nothing outside its own folder and its line in the list: one that is made up is served.

The conformance suite (``conformance``) runs on it, too.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kainite.base.errors import MissingExtraError, SettingsError
from kainite.cli.main import main
from kainite.settings import ApplySettings, load
from kainite.settings.kinds import target_kinds
from kainite.settings.kinds.target_kinds import driver_packages, extra_with
from kainite.settings.kinds.values import show_target, target
from kainite.uow.catalogue.file import read_catalogue
from kainite.uow.catalogue.load import load_catalogue
from kainite_spark.targets.opening import most_units, open_target
from kainite_spark.targets.sqlite.target import SqliteTarget
from support.made_up_kind import KIND
from support.tables import SHOP

NEEDED = "applicationName = shop\nstreamName = shop\nexecutableName = cat\nregionName = eu-west-1\n"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_kinds, "TARGET_KINDS", (*target_kinds.TARGET_KINDS, KIND))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "books.db")) as connection:
        connection.executescript("""
            CREATE TABLE author (id INTEGER PRIMARY KEY);
            CREATE TABLE book (id INTEGER PRIMARY KEY, author INTEGER REFERENCES author);
            CREATE TABLE hidden_index (id INTEGER PRIMARY KEY);
        """)
    (tmp_path / "app.properties").write_text(NEEDED + "target = shelf:books.db?key=geheimnis\n")
    return tmp_path


def precedence(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["precedence", "-p", str(folder / "app.properties"), *options])


@pytest.mark.usefixtures("registered")
class TestRegistered:
    def test_its_address_is_read_from_the_settings_folder(self, folder: Path) -> None:
        assert load(folder / "app.properties").apply.target == f"shelf:{folder / 'books.db'}"

    def test_its_secrets_are_hidden(self) -> None:
        assert show_target("shelf:books.db?key=geheimnis") == "shelf:books.db"
        assert list(target().secrets("shelf:books.db?key=geheimnis")) == ["geheimnis"]

    def test_messages_that_list_the_kinds_name_it(self, tmp_path: Path) -> None:
        named = "sqlite:///file, mariadb://user@host/database, exec:COMMAND or shelf:FILE"
        assert target().allowed.endswith(named)
        with pytest.raises(ValueError, match=named):
            target().parse("oracle://host", tmp_path)
        with pytest.raises(SettingsError, match=named):
            open_target("oracle://host", SHOP)
        with pytest.raises(SettingsError, match=named):
            load_catalogue(None, "oracle://host")

    def test_its_tables_are_read(self, folder: Path) -> None:
        shown = precedence(folder, "--format", "json", "--write", str(folder / "c.json"))
        assert shown.exit_code == 0, shown.output
        assert shown.stdout.split() == ["{", '"author":', "1,", '"book":', "2", "}"]
        assert set(read_catalogue(folder / "c.json").tables) == {"author", "book"}

    def test_it_is_opened(self, folder: Path) -> None:
        url = f"shelf:{folder / 'books.db'}"
        opened = open_target(url, load_catalogue(None, url))
        assert isinstance(opened, SqliteTarget)
        assert opened.path == str(folder / "books.db")
        assert most_units(ApplySettings(target=url)) == 7
        opened.close()

    def test_its_driver_is_named_with_its_extra(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert extra_with("shelf_driver") == "shelf"
        assert "shelf_driver" in driver_packages()
        monkeypatch.setitem(sys.modules, "support.made_up_kind.catalogue", None)
        with pytest.raises(MissingExtraError, match=r"a shelf target needs shelf_driver .* kainite\[shelf\]"):
            load_catalogue(None, f"shelf:{folder / 'books.db'}")


def test_without_its_line_it_is_unknown(folder: Path) -> None:
    refused = precedence(folder)
    assert refused.exit_code == 1
    assert "target: must be postgresql://user@host/database, sqlite:///file, mariadb://" in refused.stderr
    assert "geheimnis" not in refused.stderr
