"""Gives each test a source database of its own, with a publication; the server is the one of ``postgres_server``."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kainite.capture.postgresql.replication import SourceSlot

_DROP_SLOT = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
_numbers = itertools.count()


@pytest.fixture
def source(postgres_server: str) -> Iterator[SourceSlot]:
    """Gives a database with two tables and a publication of them, without a slot."""
    name = f"source_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    url = make_conninfo(postgres_server, dbname=name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, name text, price numeric)")
        connection.execute("CREATE TABLE note (text text)")
        connection.execute("CREATE PUBLICATION changes FOR ALL TABLES")
    yield SourceSlot(url, slot=name, publication="changes")
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        drop_slot(admin, name)
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def drop_slot(admin: psycopg.Connection, slot: str, limit: float = 60.0) -> None:
    """Drops a slot, if it exists; waits up to ``limit`` seconds while a reader that has just gone still holds it."""
    deadline = time.monotonic() + limit
    while True:
        try:
            admin.execute(_DROP_SLOT, [slot])
            return
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
