"""A row of any type arrives in the target as the source has it, whatever the two databases have set."""

from __future__ import annotations

import random
from contextlib import suppress

import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from support.postgresql_source import source
from support.replica import replica
from support.type_values import MADE, Kind, array_of, basic, made, of_extensions, optional

__all__ = ["source"]

HOSTILE = {
    "DateStyle": "SQL, DMY", "IntervalStyle": "sql_standard", "TimeZone": "America/St_Johns",
    "extra_float_digits": "-15", "bytea_output": "escape", "xmloption": "document",
    "quote_all_identifiers": "on",
}  # fmt: skip
OTHERS = {
    "DateStyle": "German, YMD", "IntervalStyle": "iso_8601", "TimeZone": "Asia/Kathmandu", "array_nulls": "off",
    "xmloption": "document", "search_path": '"$user", public, somewhere',
}  # fmt: skip
WRITER = "-c lc_monetary=C -c xmloption=content"
"""So that the statements of the test itself mean the same everywhere."""


def hostile(url: str, settings: dict[str, str]) -> None:
    """Has every session of a database begin with such settings."""
    with psycopg.connect(url, autocommit=True) as connection:
        for name, value in settings.items():
            setting = value if name == "search_path" else f"'{value}'"
            connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {name} = {setting}".encode())


@pytest.fixture
def kinds(postgres_server: str) -> list[Kind]:
    beside = [*of_extensions(postgres_server), *optional(postgres_server)]
    return [*basic(), *made(), *beside, *map(array_of, beside)]


def test_every_type(source: SourceSlot, postgres: str, kinds: list[Kind]) -> None:
    run(source, postgres, kinds, seed=1, rounds=6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_values_of_every_type(source: SourceSlot, postgres: str, kinds: list[Kind], seed: int) -> None:
    run(source, postgres, kinds, seed, rounds=60)


def run(
    source: SourceSlot,
    target: str,
    kinds: list[Kind],
    seed: int,
    rounds: int,
    monetary: tuple[str, str] = ("C", "C"),
) -> None:
    """Changes rows with columns of all types, and rows whose keys have each of the types; compares what arrives.

    Args:
        source, target: the databases.
        kinds: the types.
        seed: what the values are drawn from.
        rounds: how many times rows are changed.
        monetary: ``lc_monetary`` of source and target.
    """
    extensions = [f"CREATE EXTENSION {kind.type}" for kind in of_extensions(target)]
    keys = {f"k{number}": kind for number, kind in enumerate(kinds) if kind.ordered and "[]" not in kind.type}
    chance = random.Random(seed)
    hostile(source.url, HOSTILE | {"lc_monetary": monetary[0]})
    hostile(target, OTHERS | {"lc_monetary": monetary[1]})
    scripts = [
        *extensions,
        MADE,
        wide(kinds),
        *(f"CREATE TABLE {k} (v {keys[k].type} PRIMARY KEY, n int)" for k in keys),
    ]
    with replica(source, target, *scripts) as copied, psycopg.connect(source.url, options=WRITER) as connection:
        for _ in range(rounds):
            change_wide(connection, kinds, chance)
            for table, kind in keys.items():
                change_key(connection, table, kind, chance)
            connection.commit()
            copied.catch_up(1)
            assert copied.failed() == {}, f"seed {seed}"
        for number, kind in enumerate(kinds):
            expected, found = copied.values("wide", f"v{number}")
            assert found == expected, f"{kind.type} of seed {seed}"
        for table, kind in keys.items():
            expected, found = copied.values(table)
            assert found == expected, f"a key of {kind.type} of seed {seed}"


def wide(kinds: list[Kind]) -> str:
    """Returns the table that has a column of each type."""
    return f"CREATE TABLE wide (id integer PRIMARY KEY, {', '.join(f'v{n} {k.type}' for n, k in enumerate(kinds))})"


def change_wide(connection: psycopg.Connection, kinds: list[Kind], chance: random.Random) -> None:
    """Writes values of all types by inserts, and of some types by updates."""
    row = chance.randrange(4)
    names = ", ".join(f"v{number}" for number in range(len(kinds)))
    values = [kind.value(chance) for kind in kinds]
    run_sql(connection, f"DELETE FROM wide WHERE id = {row}")
    run_sql(connection, f"INSERT INTO wide (id, {names}) VALUES ({row}, {', '.join(values)})")
    some = [f"v{n} = {kind.value(chance)}" for n, kind in enumerate(kinds) if chance.random() < 0.5]
    run_sql(connection, f"UPDATE wide SET {', '.join(some)} WHERE id = {chance.randrange(4)}")


def change_key(connection: psycopg.Connection, table: str, kind: Kind, chance: random.Random) -> None:
    """Inserts a key, writes beside a key, changes a key, deletes a key."""
    value, other = kind.value(chance), kind.value(chance)
    run_sql(connection, f"INSERT INTO {table} VALUES ({value}, 0) ON CONFLICT (v) DO UPDATE SET n = {table}.n + 1")
    with suppress(psycopg.errors.UniqueViolation), connection.transaction():
        run_sql(connection, f"UPDATE {table} SET v = {other}, n = n + 10 WHERE v = {value}")
    if chance.random() < 0.3:
        run_sql(connection, f"DELETE FROM {table} WHERE v = {kind.value(chance)}")


def run_sql(connection: psycopg.Connection, script: str) -> None:
    connection.execute(script.encode())
