from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError, TargetUnavailableError
from kainite.uow.catalogue.load import load_catalogue
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, ReferentialAction, TypeFamily, UniqueKey
from kainite.uow.precedence.levels import precedence_map
from kainite.uow.precedence.load import load_levels

SCHEMA = """
CREATE TABLE Country (Code TEXT PRIMARY KEY, name VARCHAR(80) NOT NULL UNIQUE);
CREATE TABLE customer (
    id INTEGER PRIMARY KEY, country TEXT REFERENCES country,
    email TEXT COLLATE NOCASE UNIQUE, boss INTEGER REFERENCES CUSTOMER (ID),
    born DATE, active BOOLEAN, credit DECIMAL(10, 2), photo BLOB, at TIMESTAMP, loose,
    shout TEXT GENERATED ALWAYS AS (upper(email))
);
CREATE UNIQUE INDEX one_active ON customer (country) WHERE active;
CREATE UNIQUE INDEX lower_email ON customer (lower(email));
CREATE INDEX plain ON customer (born);
CREATE TABLE hen (id INTEGER PRIMARY KEY, egg INTEGER REFERENCES egg);
CREATE TABLE egg (id INTEGER PRIMARY KEY, hen INTEGER, FOREIGN KEY (hen) REFERENCES hen (id));
CREATE TABLE line (b INT, a INT, qty INT, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE history (note TEXT);
CREATE TABLE kainite_fence (id INTEGER PRIMARY KEY);
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    path = tmp_path / "target.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
    return f"sqlite:///{path}"


@pytest.fixture
def found(url: str) -> Catalogue:
    return reflect(url)


def test_tables_have_no_schema_but_may_be_called_with_it(found: Catalogue) -> None:
    assert set(found.tables) == {"Country", "customer", "egg", "hen", "history", "line"}
    assert {table.schema for table in found.tables.values()} == {None}
    assert found.find("main.line") is found.tables["line"]


def test_the_main_schema_may_be_named(url: str, found: Catalogue) -> None:
    assert reflect(url, ["main"]) == found
    with pytest.raises(CatalogueError, match="no schema 'public'"):
        reflect(url, ["public"])


def test_columns_and_families(found: Catalogue) -> None:
    columns = found.tables["customer"].columns
    assert {name: column.family for name, column in columns.items()} == {
        "id": TypeFamily.INTEGER,
        "country": TypeFamily.TEXT,
        "email": TypeFamily.OPAQUE,
        "boss": TypeFamily.INTEGER,
        "born": TypeFamily.DATE,
        "active": TypeFamily.BOOLEAN,
        "credit": TypeFamily.OPAQUE,
        "photo": TypeFamily.OPAQUE,
        "at": TypeFamily.OPAQUE,
        "loose": TypeFamily.OPAQUE,
        "shout": TypeFamily.TEXT,
    }
    assert columns["credit"] == Column("credit", "DECIMAL(10, 2)", TypeFamily.OPAQUE)
    assert columns["shout"].generated
    assert not columns["id"].nullable


def test_keys(found: Catalogue) -> None:
    assert found.tables["line"].primary_key == ("a", "b")
    assert found.tables["history"].primary_key == ()
    assert [key.columns for key in found.tables["Country"].unique_keys] == [("name",)]
    keys = found.tables["customer"].unique_keys
    assert set(keys) >= {UniqueKey("lower_email", ()), UniqueKey("one_active", ())}
    assert {key.columns for key in keys} == {(), ("email",)}


def test_foreign_keys_are_spelled_as_the_tables_that_they_name(found: Catalogue) -> None:
    assert found.tables["customer"].foreign_keys == (
        ForeignKey("customer_boss_fkey", ("boss",), "customer", ("id",), deferrable=True),
        ForeignKey("customer_country_fkey", ("country",), "Country", ("Code",), deferrable=True),
    )


def test_what_foreign_keys_do(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.executescript("""
            CREATE TABLE p (id INTEGER PRIMARY KEY);
            CREATE TABLE c (a INTEGER REFERENCES p ON DELETE CASCADE ON UPDATE SET NULL,
                b INTEGER REFERENCES p ON DELETE SET DEFAULT ON UPDATE RESTRICT);
        """)
    assert reflect(f"sqlite:///{tmp_path / 't.db'}").tables["c"].foreign_keys == (
        ForeignKey("c_a_fkey", ("a",), "p", ("id",), True, ReferentialAction.CASCADE, ReferentialAction.SET_NULL),
        ForeignKey("c_b_fkey", ("b",), "p", ("id",), True, ReferentialAction.SET_DEFAULT, ReferentialAction.NO_ACTION),
    )


def test_a_cycle_shares_a_level_for_it_can_always_be_deferred(found: Catalogue) -> None:
    assert precedence_map(found) == {"Country": 1, "egg": 1, "hen": 1, "history": 1, "line": 1, "customer": 2}


def test_a_file_that_is_missing_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    with pytest.raises(CatalogueError, match="does not exist"):
        reflect(f"sqlite:///{path}")
    assert not path.exists()


class TestLoading:
    def test_the_file_comes_before_the_target(self, url: str, tmp_path: Path, found: Catalogue) -> None:
        from kainite.uow.catalogue.file import write_catalogue

        fewer = Catalogue({"line": found.tables["line"]}, "main")
        write_catalogue(fewer, tmp_path / "c.json")
        assert load_catalogue(tmp_path / "c.json", url) == fewer
        assert load_catalogue(None, url) == found
        assert load_catalogue(None, None) is None

    def test_pairs_come_before_the_catalogue(self, tmp_path: Path, found: Catalogue) -> None:
        (tmp_path / "pairs").write_text("line customer\n")
        assert load_levels(found, tmp_path / "pairs") == {"line": 1, "customer": 2}
        assert load_levels(found, None)["customer"] == 2
        assert load_levels(None, None) == {}


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database at all, whatever its name may say" * 100)
    with pytest.raises(TargetUnavailableError, match="not a database"):
        reflect(f"sqlite:///{tmp_path / 'text.db'}")


@pytest.mark.parametrize(
    ("ddl", "judged"),
    [
        ("CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer)", ()),
        ("CREATE TABLE t (id integer PRIMARY KEY, a integer CHECK ((a > 0)), b integer)", ("a",)),
        ("CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer, CHECK (a < B))", ("a", "b")),
        ("CREATE TABLE t (a integer PRIMARY KEY, abc text, check (length(abc) < 3))", ("abc",)),
        ("CREATE TABLE t (id integer PRIMARY KEY, a text CHECK (a <> ')'), b text)", ("id", "a", "b")),
        ("CREATE TABLE t (id integer PRIMARY KEY, a integer); CREATE INDEX i ON t (a)", ()),
        ("CREATE TABLE t (id integer PRIMARY KEY, a integer); CREATE INDEX i ON t (a + 1)", None),
        ("CREATE TABLE t (id integer PRIMARY KEY, a integer); CREATE INDEX i ON t (a) WHERE a > 1", None),
        ("CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer AS (a + 1))", None),
        (
            "CREATE TABLE t (id integer PRIMARY KEY, a integer);CREATE TRIGGER g AFTER UPDATE ON T BEGIN SELECT 1; END",
            (),
        ),
    ],
)
def test_columns_that_are_judged_by_more_than_type_and_keys(
    tmp_path: Path, ddl: str, judged: tuple[str, ...] | None
) -> None:
    path = tmp_path / "judged.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(ddl)
    assert reflect(f"sqlite:///{path}").tables["t"].judged == judged


def test_columns_that_an_insert_need_not_tell(tmp_path: Path) -> None:
    path = tmp_path / "defaults.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE t (id integer PRIMARY KEY, a integer DEFAULT 1, b integer, c integer AS (a + 1));
            CREATE TABLE keyed (id text PRIMARY KEY, a integer);
        """)
    tables = reflect(f"sqlite:///{path}").tables
    assert (tables["t"].defaults, tables["keyed"].defaults) == (("id", "a"), ())
