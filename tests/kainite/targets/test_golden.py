"""Every reader of a catalogue on a schema with everything in it: what it reads is in a file beside the schema.

Two readings of the same schema must be equal whatever reads it: the files of PostgreSQL and SQLite were written by
another implementation, which asked the databases through SQLAlchemy.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

from kainite.uow.catalogue.file import dumps, loads, read_catalogue
from kainite.uow.catalogue.reflection import reflect
from support.mariadb_server import run_script

GOLDEN = Path(__file__).parent / "golden"


def test_postgresql(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute((GOLDEN / "postgresql.sql").read_bytes())
    found = reflect(postgres, ["public", "sales", "Old Stuff"])
    assert found == read_catalogue(GOLDEN / "postgresql.json")
    assert loads(dumps(found)) == found
    assert dumps(found) == (GOLDEN / "postgresql.json").read_bytes()


def test_sqlite(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "target.db")) as connection:
        connection.executescript((GOLDEN / "sqlite.sql").read_text())
    found = reflect(f"sqlite:///{tmp_path / 'target.db'}")
    assert found == read_catalogue(GOLDEN / "sqlite.json")
    assert loads(dumps(found)) == found


def test_mariadb(mariadb: str) -> None:
    run_script(mariadb, (GOLDEN / "mariadb.sql").read_text())
    found = dumps(reflect(mariadb, []))
    name = mariadb.partition("?")[0].rpartition("/")[2]  # a database of the test's own
    assert found.replace(f'"{name}"'.encode(), b'"shop"') == (GOLDEN / "mariadb.json").read_bytes()
    assert dumps(loads(found)) == found
