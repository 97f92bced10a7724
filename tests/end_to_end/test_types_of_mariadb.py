"""A row of any type of MariaDB arrives in the target as the source has it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest

from kainite.capture.truncate import OnTruncate
from support.mariadb_source import execute, rows, source_database
from support.mariadb_values import MariadbType, types
from support.mysql_replica import mysql_replica

NAMES = {f"v{number}": kind for number, kind in enumerate(types())}


@pytest.fixture
def databases(mariadb_source_server: str) -> Iterator[tuple[str, str]]:
    """Gives a source and a target of one server, so that the server itself may compare their rows."""
    with source_database(mariadb_source_server) as source, source_database(mariadb_source_server) as target:
        yield source, target


def test_every_type_of_mariadb(databases: tuple[str, str]) -> None:
    run(*databases, seed=1, rounds=2)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_values_of_every_type_of_mariadb(databases: tuple[str, str], seed: int) -> None:
    run(*databases, seed, rounds=40)


def run(source: str, target: str, seed: int, rounds: int) -> None:
    """Changes rows of tables with a column of each type; lets the server compare what arrives."""
    chance = random.Random(seed)
    tables = [f"CREATE TABLE {name} (id int PRIMARY KEY, v {kind.type} NULL)" for name, kind in NAMES.items()]
    execute(target, *tables)
    with mysql_replica(source, target, tables) as copied:
        for _ in range(rounds):
            execute(source, *changes(chance))
            copied.catch_up(1)
            assert copied.failed() == {}, f"seed {seed}"
        for name, kind in NAMES.items():
            assert different(source, target, name) == [], f"{kind.type} of seed {seed}"


def changes(chance: random.Random) -> list[str]:
    """Returns a transaction that changes some rows of each table."""
    found = ["BEGIN"]
    for name, kind in NAMES.items():
        found += [
            f"DELETE FROM {name} WHERE id = {chance.randrange(6)}",
            f"REPLACE INTO {name} VALUES ({chance.randrange(6)}, {value(kind, chance)})",
            f"UPDATE {name} SET v = {value(kind, chance)} WHERE id = {chance.randrange(6)}",
        ]
    return [*found, "COMMIT"]


def value(kind: MariadbType, chance: random.Random) -> str:
    return "NULL" if chance.random() < 0.1 else kind.value(chance)


def different(source: str, target: str, table: str) -> list[object]:
    """Returns the rows that one of the databases does not have, with the very same value."""
    first, second = (url.split("/")[3].split("?")[0] for url in (source, target))
    return [
        row
        for one, other in ((first, second), (second, first))
        for row in rows(
            source,
            f"SELECT id, v FROM {one}.{table} a WHERE NOT EXISTS (SELECT 1 FROM {other}.{table} b"
            " WHERE b.id = a.id AND b.v <=> a.v AND HEX(b.v) <=> HEX(a.v))",
        )
    ]


def test_sensible_types_arrive_in_postgresql(mariadb_source_server: str, postgres: str) -> None:
    pairs = {
        "bigint": ("BIGINT", "-9223372036854775808"), "numeric(20)": ("BIGINT UNSIGNED", "18446744073709551615"),
        "boolean": ("TINYINT(1)", "1"), "numeric(30,10)": ("DECIMAL(30,10)", "-12345678901234567890.0123456789"),
        "real": ("FLOAT", "0.1"), "double precision": ("DOUBLE", "0.30000000000000004"),
        "bit(10)": ("BIT(10)", "b'1000000001'"),
        "text": ("LONGTEXT", "'ä\\\\x𝄞'"), "bytea": ("BLOB", "X'00ff5c'"), "date": ("DATE", "'2024-02-29'"),
        "timestamp(6)": ("DATETIME(6)", "'2024-02-29 23:59:59.987654'"), "interval": ("TIME(6)", "'-838:59:58.5'"),
        "timestamptz(6)": ("TIMESTAMP(6)", "'2024-02-29 23:59:59.987654'"), "smallint": ("YEAR", "2024"),
        "jsonb": ("JSON", "'{\"a\": 1.50}'"), "uuid": ("UUID", "'11223344-5566-1788-99aa-bbccddeeff00'"),
        "inet": ("INET6", "'2001:db8::1'"),
        "varchar(3)": ("ENUM('a','b')", "'b'"), "varchar(9)": ("SET('x','y')", "'x,y'"),
    }  # fmt: skip
    wide = ", ".join(f"v{n} {kind}" for n, (kind, _) in enumerate(pairs.values()))
    with psycopg.connect(postgres, autocommit=True, options="-c timezone=UTC") as connection:
        columns = ", ".join(f"v{n} {kind}" for n, kind in enumerate(pairs))
        connection.execute(f"CREATE TABLE wide (id int PRIMARY KEY, {columns})".encode())
        with (
            source_database(mariadb_source_server) as source,
            mysql_replica(source, postgres, [f"CREATE TABLE wide (id int PRIMARY KEY, {wide})"]) as copied,
        ):
            values = ", ".join(value for _, value in pairs.values())
            execute(source, "SET time_zone = '+00:00'", f"INSERT INTO wide VALUES (1, {values})")
            copied.catch_up(1)
            assert copied.failed() == {}
        found = connection.execute("SELECT to_jsonb(w) - 'id' FROM wide w").fetchone()
    assert found is not None
    assert list(found[0].values()) == [
        -(2**63), 18446744073709551615, True, pytest.approx(-12345678901234567890.0123456789), 0.1,
        0.30000000000000004, "1000000001",
        "ä\\x𝄞", "\\x00ff5c", "2024-02-29", "2024-02-29T23:59:59.987654", "-838:59:58.5",
        "2024-02-29T23:59:59.987654+00:00", 2024, {"a": 1.5}, "11223344-5566-1788-99aa-bbccddeeff00", "2001:db8::1",
        "b", "x,y",
    ]  # fmt: skip


def test_a_truncate_of_the_source_empties_the_targets_table_in_its_place(databases: tuple[str, str]) -> None:
    source, target = databases
    table = "CREATE TABLE item (id int PRIMARY KEY, other int, FOREIGN KEY (other) REFERENCES item (id))"
    execute(target, table)
    with mysql_replica(source, target, [table], on_truncate=OnTruncate.APPLY) as made:
        execute(source, "INSERT INTO item VALUES (1, 1), (2, 1)", "TRUNCATE item", "INSERT INTO item VALUES (2, NULL)")
        made.catch_up(3)
        assert made.failed() == {}
        assert rows(target, "SELECT id, other FROM item") == [(2, None)]
