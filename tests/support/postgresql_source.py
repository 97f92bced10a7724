"""A PostgreSQL server that decodes logically, and a database with a slot for each test."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kainite.capture.postgresql.replication import SourceSlot
from kainite_demo.postgres_server import postgres

_DROP_SLOT = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
_numbers = itertools.count()


@pytest.fixture(scope="session")
def logical_server() -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="kainite-source-"))
    with postgres(folder / "pg", wal_level="logical", max_replication_slots="50") as url:
        yield url
    shutil.rmtree(folder)


@pytest.fixture
def source(logical_server: str) -> Iterator[SourceSlot]:
    """A database with two tables and a publication of them; the slot is not made yet."""
    name = f"source_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(logical_server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    url = make_conninfo(logical_server, dbname=name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, name text, price numeric)")
        connection.execute("CREATE TABLE note (text text)")
        connection.execute("CREATE PUBLICATION changes FOR ALL TABLES")
    yield SourceSlot(url, slot=name, publication="changes")
    with psycopg.connect(logical_server, autocommit=True) as admin:
        _drop_slot(admin, name)
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _drop_slot(admin: psycopg.Connection, slot: str, limit: float = 10.0) -> None:
    """A reader that has just gone may hold its slot a moment longer."""
    deadline = time.monotonic() + limit
    while True:
        try:
            admin.execute(_DROP_SLOT, [slot])
            return
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
