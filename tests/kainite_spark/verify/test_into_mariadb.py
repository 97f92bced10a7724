"""Compares sources with a MariaDB target while both live: what differs is found, and nothing else is."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import psycopg
import pytest

from kainite.capture.mysql import same_place, snapshot_tables
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.mariadb_types import mariadb_type
from kainite.replicate.verify_report import ShownValues, VerifyReport
from kainite_spark.verify.row_compare import RowCompareSource
from support.binlog_loading import Following, binlog_loading, following
from support.comparisons import compared_by
from support.mariadb_loading import MariadbFollower, mariadb_following, mariadb_loading
from support.mariadb_server import rows_of
from support.mariadb_source import execute, session, source_database
from support.mariadb_values import types
from support.replicas import run
from support.waiting import eventually

POSTGRESQL: Final = (
    "CREATE TABLE customer (id int PRIMARY KEY, name text, balance numeric(12,4), since timestamptz(3), note bytea,"
    " weight float8, open time(2), about jsonb, flags bit(4), small real, member boolean, told timestamp(6), born date,"
    " code char(6), uid uuid, free numeric, word varchar(30), big bigint, tags text[], agreed boolean)",
    'CREATE TABLE word (word text, "per cent%" numeric(20), n int, PRIMARY KEY (word, "per cent%"))',
    "CREATE TABLE journal (what text, n int)", "ALTER TABLE journal REPLICA IDENTITY FULL",
)  # fmt: skip
FILL_POSTGRESQL: Final = (
    "INSERT INTO customer SELECT n, 'customer ' || n, n / 4.0, '2026-01-01 12:00Z'::timestamptz + n * interval '1.5 h',"
    " decode(md5(n::text), 'hex'), n / 7.0, time '00:00' + n * interval '1.25 s', "
    " jsonb_build_object('b', n, 'a', '[1]'), (n % 16)::bit(4), n / 3.0, n % 2 = 0,"
    " timestamp '2024-01-01' + n * interval '0.125 s', date '2024-02-29' + n,"
    " 'c' || n % 100, overlay(overlay(md5(n::text) placing '4' from 13) placing '8' from 17)::uuid,"
    " n / 8.0, 'it''s \\ ' || chr(200 + n % 20), n * 1000000007::bigint,"
    " ARRAY['x', n::text], n % 3 = 0 FROM generate_series(1, 1500) n",
    "INSERT INTO customer (id) VALUES (0)",
    "INSERT INTO word SELECT (ARRAY['a', 'B', 'ä', 'Z '])[1 + n % 4] || n, 18446744073709551615 - n, n"
    " FROM generate_series(1, 1500) n",
    "INSERT INTO journal SELECT 'line ' || n % 10, n % 10 FROM generate_series(1, 300) n",
)
FROM_POSTGRESQL: Final = (
    "CREATE TABLE customer (id INT PRIMARY KEY, name LONGTEXT, balance DECIMAL(14,6), since DATETIME(6), note LONGBLOB,"
    " weight DOUBLE, open TIME(6), about JSON, flags BIT(4), small FLOAT, member BOOLEAN, told DATETIME(6), born DATE,"
    " code CHAR(6), uid UUID, free DECIMAL(30,10), word VARCHAR(30), big BIGINT, tags LONGTEXT, agreed VARCHAR(5))"
    " COLLATE utf8mb4_nopad_bin",
    "CREATE TABLE word (word VARCHAR(100) COLLATE utf8mb4_nopad_bin, `per cent%` BIGINT UNSIGNED, n BIGINT,"
    " PRIMARY KEY (word, `per cent%`))",
    "CREATE TABLE journal (what VARCHAR(30), n INT)",
)
MARIADB: Final = (
    "CREATE TABLE customer (id INT PRIMARY KEY, name VARCHAR(40), balance DECIMAL(12,4), since TIMESTAMP(3) NULL,"
    " note VARBINARY(20), weight DOUBLE, open TIME(2), about JSON, flags BIT(4), small FLOAT, member TINYINT(1),"
    " told DATETIME(6), born DATE, code CHAR(6), uid UUID, free DECIMAL(30,10), word VARCHAR(30) CHARACTER SET latin1,"
    " big BIGINT UNSIGNED, tags ENUM('x','y'), agreed SET('a','b'), address INET6, raw BINARY(4))",
    "CREATE TABLE word (word VARCHAR(20) COLLATE utf8mb4_nopad_bin, `per cent%` BIGINT UNSIGNED, n INT,"
    " PRIMARY KEY (word, `per cent%`))",
    "CREATE TABLE journal (id INT PRIMARY KEY, what VARCHAR(30), n INT)",
)
FILL_MARIADB: Final = (
    "SET time_zone = '+00:00'",
    "INSERT INTO customer SELECT seq, CONCAT('customer ', seq), seq / 4, FROM_UNIXTIME(1700000000 + seq * 5400),"
    ' UNHEX(MD5(seq)), seq / 7, SEC_TO_TIME(seq * 1.25), CONCAT(\'{"b": \', seq, \'.50, "a": [1e2, "x"]}\'), seq % 16,'
    " seq / 3, seq % 2, FROM_UNIXTIME(1700000000 + seq / 8), "
    " IF(seq % 9, '2024-02-29' + INTERVAL seq DAY, '0000-00-00'), CONCAT('c', seq % 100, ' '), UUID(),"
    " seq / 8, CONCAT('it''s \\\\ ', CHAR(200 + seq % 20 USING latin1)),"
    " 18446744073709551615 - seq, ELT(1 + seq % 2, 'x', 'y'), seq % 4, '::ffff:1.2.3.4', CHAR(seq % 200)"
    " FROM seq_1_to_1500",
    "INSERT INTO customer (id) VALUES (0)",
    "INSERT INTO word SELECT CONCAT(ELT(1 + seq % 4, 'a', 'B', 'ä', 'Z '), seq), 18446744073709551615 - seq, seq"
    " FROM seq_1_to_1500",
    "INSERT INTO journal SELECT seq, CONCAT('line ', seq % 10), seq % 10 FROM seq_1_to_300",
)
FROM_MARIADB: Final = (
    MARIADB[0].replace("CHARACTER SET latin1", "").replace("DECIMAL(12,4)", "DECIMAL(14,6)"),
    *MARIADB[1:],
)

DAMAGES: Final = {
    "a changed byte": ("note = CONCAT(LEFT(note, 3), X'01', SUBSTR(note, 5))", "note"),
    "a truncated text": ("name = LEFT(name, CHAR_LENGTH(name) - 1)", "name"),
    "a space at the end": ("name = CONCAT(name, ' ')", "name"),
    "another case": ("name = UPPER(name)", "name"),
    "a rounded numeric": ("balance = ROUND(balance)", "balance"),
    "a rounded float": ("weight = CAST(weight AS FLOAT)", "weight"),
    "a smaller float": ("small = small - small / 1000000", "small"),
    "a wrong time zone": ("since = since + INTERVAL 2 HOUR", "since"),
    "a moment without its fraction": ("told = told - INTERVAL 125000 MICROSECOND", "told"),
    "a wrong day": ("born = '2023-01-01'", "born"),
    "no day": ("born = '2024-00-00'", "born"),
    "a time without its fraction": ("open = ADDTIME(open, '00:00:00.01')", "open"),
    "an empty text for NULL": ("note = ''", "note"),
    "NULL for a value": ("word = NULL", "word"),
    "another document": ("about = JSON_SET(about, '$.b', 'x')", "about"),
    "a bit": ("flags = ~flags & 15", "flags"),
    "the other truth": ("member = NOT member", "member"),
    "neither true nor false": ("member = 2", "member"),
    "another code": ("code = 'x'", "code"),
    "another UUID": ("uid = '00000000-0000-0000-0000-000000000001'", "uid"),
    "a last digit": ("free = free + 0.0000000001", "free"),
    "a number one above": ("big = big - 1", "big"),
}


Pairs: TypeAlias = Sequence[tuple[str, str, Sequence[str]]]
"""Types of a column in the source and in the target, and values."""

OF_POSTGRESQL: Final[Pairs] = (
    ("bigint", "BIGINT", ["-9223372036854775808", "0"]), ("oid", "INT UNSIGNED", ["4294967295"]),
    ("smallint", "SMALLINT", ["-32768"]), ("boolean", "BOOLEAN", ["true", "false"]), ("boolean", "TEXT", ["true"]),
    ("boolean", "BIT(1)", ["true", "false"]), ("boolean", "BIT(8)", ["true", "false"]),
    ("numeric(38,10)", "DECIMAL(38,10)",
     ["-12345678901234567890.0123456789", "0", "1.5"]), ("numeric", "DECIMAL(65,30)", ["0.1", "1.50"]),
    ("numeric", "DOUBLE", ["0.1", "1e30"]), ("numeric", "LONGTEXT", ["0.10"]), ("int", "DECIMAL(12,2)", ["-7"]),
    ("real", "FLOAT", ["0.1", "1e38", "'-0'", "16777217", "123456789", "'1.17549435e-38'"]),
    ("real", "DOUBLE", ["0.1"]), ("float8", "DOUBLE", ["0.30000000000000004", "1e308", "'-0'", "1e15", "1e16", "0.0001",
     "123456789012345680", "'2.2250738585072014e-308'"]), ("float8", "TEXT", ["1e30"]),
    ("text", "LONGTEXT", ["E'ä\\\\x\\t\\n\\r𝄞'", "''", "' a '"]), ("varchar(5)", "VARCHAR(5)", ["'€ä'", "'a  '"]),
    ("char(5)", "CHAR(5)", ["'a'", "'bcdef'"]), ("char(5)", "VARCHAR(5)", ["'a'"]),
    ("text", "CHAR(9)", ["'a '", "'b'"]),
    ("bytea", "LONGBLOB", ["'\\x00ff5c'", "''"]), ("bytea", "BINARY(4)", ["'\\x6100'", "'\\x0001'"]),
    ("text", "BLOB", ["'ä'"]), ("date", "DATE", ["'2024-02-29'", "'9999-12-31'", "'1000-01-01'"]),
    ("timestamp", "DATETIME(6)", ["'2024-02-29 23:59:59.987654'", "'9999-12-31 23:59:59.999999'", "'2024-01-01'"]),
    ("timestamptz", "DATETIME(6)", ["'2024-02-29 01:00:00.5+05'"]), ("timestamp", "DATE", ["'2024-02-29'"]),
    ("timestamptz", "TIMESTAMP(6) NULL", ["'2024-02-29 01:00:00.5+05'"]), ("date", "DATETIME", ["'2024-02-29'"]),
    ("time", "TIME(6)", ["'10:00:00.5'", "'24:00:00'", "'00:00:00'"]), ("interval", "LONGTEXT", ["'1 day 2 hours'"]),
    ("json", "JSON", ["'{ \"a\":  1.50}'"]), ("jsonb", "JSON", ["'{\"b\":1,\"a\":[1e2]}'", "'\"x\"'"]),
    ("uuid", "UUID", ["'11223344-5566-4788-99AA-bbccddeeff00'"]),
    ("uuid", "CHAR(36)", ["'11223344-5566-4788-99AA-bbccddeeff00'"]),
    ("bit(10)", "BIT(10)", ["B'1000000001'", "B'0000000000'"]), ("bit(64)", "BIT(64)", [f"B'{'1' * 64}'"]),
    ("inet", "INET4", ["'1.2.3.4'"]), ("inet", "INET6", ["'fe80::1'"]), ("int[]", "LONGTEXT", ["'{1,NULL}'"]),
    ("timetz", "VARCHAR(30)", ["'10:00:00+02'"]),
)  # fmt: skip
OF_MARIADB: Final[Pairs] = (
    ("FLOAT", "DOUBLE", ["0.1"]), ("DECIMAL(10,2)", "DECIMAL(12,4)", ["1.5", "-0.01"]), ("YEAR", "INT", ["2024", "0"]),
    ("DATETIME(3)", "DATETIME(6)", ["'2024-02-29 01:00:00.5'", "'0000-00-00'"]), ("DATE", "DATETIME", ["'2024-02-29'"]),
    ("TIMESTAMP(2) NULL", "DATETIME(6)", ["'2024-01-01 01:02:03.1'", "'0000-00-00 00:00:00'"]),
    ("VARCHAR(5)", "CHAR(5)", ["'a '"]), ("CHAR(5)", "VARCHAR(5)", ["'a '"]),
    ("VARBINARY(4)", "BINARY(4)", ["X'6100'"]),
    ("BINARY(4)", "VARBINARY(4)", ["X'6100'"]), ("BIT(4)", "BIT(8)", ["b'0101'", "0"]),
    ("TINYINT(1)", "INT", ["1", "2"]),
    ("ENUM('a','b')", "VARCHAR(3)", ["'b'"]), ("SET('a','b')", "TEXT", ["'a,b'", "''"]),
    ("INET4", "VARCHAR(20)", ["'1.2.3.4'"]),
    ("CHAR(36)", "UUID", ["'11223344-5566-4788-99AA-BBCCDDEEFF00'"]), ("INT(5) ZEROFILL", "INT UNSIGNED", ["42"]),
    ("INT", "FLOAT", ["16777216"]), ("FLOAT", "DECIMAL(20,5)", ["0.5"]), ("TEXT", "VARBINARY(9)", ["'ä'"]),
    ("TIME(2)", "TIME(6)", ["'-10:00:00.10'"]), ("LONGTEXT", "JSON", ["'{ \"a\":  1.50}'"]),
    ("VARCHAR(9) CHARACTER SET latin1", "VARCHAR(9) CHARACTER SET utf8mb4", ["'€ä'"]),
)  # fmt: skip


class World:
    """A source of either kind, and a MariaDB target that follows it.

    Args:
        ends: both databases.
        follower: applies.
        fill: what fills the source.
    """

    def __init__(
        self, ends: ReplicaEnds | BinlogEnds, follower: MariadbFollower | Following, fill: Sequence[str]
    ) -> None:
        self.ends = ends
        self.follower = follower
        self.fill = fill

    @property
    def keyless(self) -> bool:
        """Tells whether a table without a primary key is carried."""
        return isinstance(self.ends, ReplicaEnds)

    @property
    def schema(self) -> str:
        return str(self.in_target("SELECT DATABASE()")[0][0])

    def in_source(self, *statements: str) -> None:
        if isinstance(self.ends, BinlogEnds):
            execute(self.ends.source.url, *statements)
        else:
            run(self.ends.source.url, *statements)

    def change_target(self, *statements: str) -> None:
        execute(self.ends.target, *statements)

    def in_target(self, query: str) -> list[tuple[Any, ...]]:
        return rows_of(self.ends.target, query)

    def compared(self, **more: object) -> VerifyReport:
        return compared_by(RowCompareSource(self.ends), **more)

    def stuck(self) -> list[str]:
        """Returns the units that are not applied, but those under way."""
        return [cause for cause in self.follower.failed().values() if not cause.startswith("in progress")]


@contextmanager
def from_postgresql(
    request: pytest.FixtureRequest, ours: Sequence[str] = (), theirs: Sequence[str] = ()
) -> Iterator[World]:
    """Gives a replica of PostgreSQL, with more tables of its source and of its target."""
    source, server = request.getfixturevalue("source"), request.getfixturevalue("mariadb_server")
    with (
        mariadb_loading(source, server, [*POSTGRESQL, *ours], [*FROM_POSTGRESQL, *theirs]) as loading,
        mariadb_following(loading) as follower,
        follower.living(),
    ):
        yield World(loading.ends, follower, FILL_POSTGRESQL)


@contextmanager
def from_mariadb(
    request: pytest.FixtureRequest, ours: Sequence[str] = (), theirs: Sequence[str] = ()
) -> Iterator[World]:
    """Gives a replica of MariaDB, with more tables of its source and of its target."""
    folder = request.getfixturevalue("tmp_path")
    server, target = request.getfixturevalue("mariadb_source_server"), request.getfixturevalue("mariadb")
    with (
        source_database(server) as source,
        binlog_loading(source, target, folder, [*MARIADB, *ours], [*FROM_MARIADB, *theirs]) as loading,
        following(loading) as follower,
        follower.living(),
    ):
        yield World(loading.ends, follower, FILL_MARIADB)


SOURCES: Final = {"postgresql": from_postgresql, "mariadb": from_mariadb}


@pytest.fixture(params=SOURCES)
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(snapshot_tables, "RANGE_BYTES", 64 * 1024)
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)  # other tests of the server may have
    with SOURCES[request.param](request) as made:
        yield made


def found_in(report: VerifyReport) -> set[tuple[str, str, tuple[tuple[str, str], ...], tuple[str, ...]]]:
    """Returns the rows of a report, each with how it differs, its table, its key, and the columns that do."""
    return {(row.how.value, row.table.split(".")[1], tuple(row.key.items()), row.columns) for row in report.rows}


def test_each_damage_is_found_to_the_row(world: World) -> None:
    world.in_source(*world.fill)
    clean = world.compared()
    assert world.stuck() == []
    assert [(row.key, row.columns, row.source, row.target) for row in clean.rows] == []
    assert (clean.verdict, clean.units) == ("equal", ())
    assert {table.table: table.rows_source for table in clean.tables} == {
        f"{world.schema}.customer": 1501, f"{world.schema}.word": 1500, f"{world.schema}.journal": 300,
    }  # fmt: skip
    numbers = range(101, 101 + len(DAMAGES))
    for number, (damage, _) in zip(numbers, DAMAGES.values(), strict=True):
        world.change_target(f"UPDATE customer SET {damage} WHERE id = {number}")
    order = "" if world.keyless else " ORDER BY id"
    world.change_target(
        "UPDATE customer a JOIN customer b ON (a.id, b.id) IN ((5, 6), (6, 5)) SET a.code = CONCAT('c', b.id)",
        "INSERT INTO word VALUES ('zz', 1, 2)", "DELETE FROM word WHERE n = 44", "DELETE FROM customer WHERE id = 0",
        "UPDATE word SET word = 'A52' WHERE n = 52", f"DELETE FROM journal WHERE n = 4{order} LIMIT 2",
    )  # fmt: skip
    report = world.compared()
    journal = {("missing", "journal", (), ("what", "n"))} if world.keyless else {
        ("missing", "journal", (("id", number),), ("id", "what", "n")) for number in ("4", "14")
    }  # fmt: skip
    changed = {("changed", "customer", (("id", str(number)),), (column,))
               for number, (_, column) in zip(numbers, DAMAGES.values(), strict=True)}  # fmt: skip
    words, (wide,) = ("word", "per cent%", "n"), [row.columns for row in report.rows if row.key == {"id": "0"}]
    assert found_in(report) == changed | {
        ("changed", "customer", (("id", "5"),), ("code",)),
        ("changed", "customer", (("id", "6"),), ("code",)),
        ("missing", "customer", (("id", "0"),), wide),
        ("extra", "word", (("word", "zz"), ("per cent%", "1")), words),
        ("missing", "word", (("word", "a44"), ("per cent%", "18446744073709551571")), words),
        ("missing", "word", (("word", "a52"), ("per cent%", "18446744073709551563")), words),
        ("extra", "word", (("word", "A52"), ("per cent%", "18446744073709551563")), words),
        *journal,
    }  # fmt: skip
    assert report.verdict == "different"
    assert [row.times for row in report.rows if not row.key] == ([2] if world.keyless else [])
    shown = {row.key.get("id"): row for row in report.rows}
    assert (shown["102"].source, shown["102"].target) == (("customer 102",), ("customer 10",))
    assert "customer 102" not in "".join(report.lines(ShownValues.MASKED))
    only = world.compared(only=["word"])
    assert [(table.table, table.missing, table.extra) for table in only.tables] == [(f"{world.schema}.word", 2, 2)]


def test_rows_of_units_that_are_not_applied_are_known_and_hide_no_other(world: World) -> None:
    world.in_source(*world.fill)
    clean = world.compared()
    assert (world.stuck(), clean.verdict) == ([], "equal")
    world.change_target("ALTER TABLE customer ADD CHECK (id <> 9 OR name <> 'refused')")
    world.in_source("UPDATE customer SET name = 'refused' WHERE id = 9")
    world.in_source("UPDATE customer SET code = 'later' WHERE id = 9")
    found = world.compared()
    world.change_target("UPDATE customer SET name = 'damaged' WHERE id IN (11, 12)")
    damaged = world.compared(most_rows=1)
    assert [(unit.status, unit.tables) for unit in found.units] == [
        ("failed", (found.units[0].tables[0],)), ("blocked", (found.units[0].tables[0],)),
    ]  # fmt: skip
    assert found.verdict == "known"
    assert [(row.key, row.why.value) for row in found.rows] == [({"id": "9"}, "known")]
    assert damaged.verdict == "different"
    assert [(table.different, table.known) for table in damaged.tables] == [(0, 0), (2, 1), (0, 0)] or [
        (table.different, table.known) for table in damaged.tables
    ] == [(2, 1), (0, 0), (0, 0)]
    assert [row.why.value for row in damaged.rows] == ["different"]
    assert len(world.stuck()) == 2


def compare_under_load(world: World, times: int) -> None:
    """Compares while transactions change tables in the source; every comparison must find both sides equal."""
    world.in_source(*world.fill)
    over = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(write, world.ends, seed, over) for seed in range(2)]
        try:
            reports = [world.compared() for _ in range(times)]
        finally:
            over.set()
        written = sum(each.result() for each in writing)
    assert world.stuck() == []
    assert [(report.verdict, report.rows) for report in reports] == [("equal", ())] * times
    assert len({report.position for report in reports}) == times
    assert written > times
    assert world.in_target("SELECT state FROM kainite_verify") == [("over",)]
    assert all(report.held_ms is not None and report.held_ms < 5_000 for report in reports)


def write(ends: ReplicaEnds | BinlogEnds, seed: int, over: threading.Event) -> int:
    """Changes rows of tables until it is told to end; returns in how many transactions."""
    chance, count = random.Random(seed), 0
    opened = session(ends.source.url) if isinstance(ends, BinlogEnds) else psycopg.connect(ends.source.url)
    with closing(opened) as connection, connection.cursor() as cursor:
        if isinstance(ends, BinlogEnds):
            cursor.execute("SET autocommit = 0, innodb_lock_wait_timeout = 20")
        while not over.is_set():
            one, other = sorted(chance.sample(range(1, 1500), 2))
            new = 2000 + 2 * count + seed
            cursor.execute(f"UPDATE customer SET balance = balance - 1 WHERE id = {one}")
            cursor.execute(f"UPDATE customer SET balance = balance + 1, weight = {chance.random()} WHERE id = {other}")
            cursor.execute(f"DELETE FROM customer WHERE id = {new - 8}")
            cursor.execute(f"INSERT INTO customer (id, small, name) VALUES ({new}, {chance.random()}, 'new')")
            cursor.execute(f"INSERT INTO word VALUES ('w{seed}', {count}, {count})")
            connection.commit()
            count += 1
            over.wait(0.01)
    return count


def test_nothing_is_found_while_both_sides_live(world: World) -> None:
    compare_under_load(world, 3)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_nothing_is_found_in_a_hundred_comparisons(world: World) -> None:
    compare_under_load(world, 100)


@pytest.mark.parametrize("kind", SOURCES)
def test_a_value_of_each_type_is_what_the_target_has_made_of_it(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)  # other tests of the server may have
    pairs, zone = (
        (OF_MARIADB, "SET time_zone = '+05:00'")
        if kind == "mariadb"
        else (OF_POSTGRESQL, "SET TIME ZONE 'Asia/Karachi'")
    )
    here, there = (", ".join(f"v{place} {pair[side]}" for place, pair in enumerate(pairs)) for side in (0, 1))
    ours = [f"CREATE TABLE wide (id int PRIMARY KEY, {here})"]
    theirs = [f"CREATE TABLE wide (id int PRIMARY KEY, {there}) COLLATE utf8mb4_nopad_bin"]
    turns = range(max(len(values) for *_, values in pairs))
    with SOURCES[kind](request, ours, theirs) as world:
        for turn in turns:
            row = ", ".join(values[turn % len(values)] for *_, values in pairs)
            world.in_source(zone, f"INSERT INTO wide VALUES ({turn}, {row})")
        report = world.compared(only=["wide"])
        assert world.stuck() == []
    assert [(row.key, row.columns, row.source, row.target) for row in report.rows] == []
    assert (report.verdict, report.tables[0].rows_source) == ("equal", len(turns))


def test_values_of_all_types_of_mariadb_are_equal_in_a_table_of_the_same_types(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)  # other tests of the server may have
    chance, known = random.Random(7), types()
    parts = {f"types{first}": known[first : first + 15] for first in range(0, len(known), 15)}
    made = [
        f"CREATE TABLE {name} (id INT PRIMARY KEY, "
        + ", ".join(f"v{place} {kind.type} NULL" for place, kind in enumerate(some))
        + ") CHARACTER SET utf8mb4"
        for name, some in parts.items()
    ]
    with from_mariadb(request, made, made) as world:
        for name, some in parts.items():
            rows = [f"({row}, {', '.join(kind.value(chance) for kind in some)})" for row in range(12)]
            world.in_source("SET time_zone = '-08:00'", *(f"INSERT INTO {name} VALUES {row}" for row in rows))
        report = world.compared(only=list(parts))
        assert world.stuck() == []
        assert [(row.table, row.key, row.columns, row.source, row.target) for row in report.rows] == []
        assert (report.verdict, {table.rows_source for table in report.tables}) == ("equal", {12})


def test_what_the_server_has_rounded_is_different(request: pytest.FixtureRequest) -> None:
    ours = ["CREATE TABLE fine (id int PRIMARY KEY, v numeric, at timestamp(6), w float8, s time(6))"]
    theirs = ["CREATE TABLE fine (id int PRIMARY KEY, v DECIMAL(9,2), at DATETIME(3), w FLOAT, s TIME)"]
    with from_postgresql(request, ours, theirs) as world:
        world.in_source("INSERT INTO fine VALUES (1, 1.255, '2024-01-01 00:00:00.0005', 0.123456789012, '10:00:00.5'),"
                        " (2, 1.25, '2024-01-01 00:00:00.5', 0.5, '10:00:00')")  # fmt: skip
        report = world.compared(only=["fine"])
        assert world.stuck() == []
    assert [(row.key, row.columns) for row in report.rows] == [({"id": "1"}, ("v", "at", "w", "s"))]
    assert report.rows[0].target == ("1.26", "2024-01-01 00:00:00.000", "0.12345679", "10:00:00")


_CHILD = """
import os, pickle, signal, sys
from kainite_spark.verify.row_compare import RowCompareSource
from support.comparisons import compared_by

ends, sign, when = pickle.load(open(sys.argv[1], "rb"))
sent = []

def at(doing):
    if not sent and doing.startswith(when):
        sent.append(doing)
        os.kill(os.getpid(), sign)

report = compared_by(RowCompareSource(ends), look=lambda progress: at(progress.doing), before=lambda: at("before"))
print(report.verdict)
"""


@contextmanager
def comparing(ends: ReplicaEnds, folder: Path, sign: signal.Signals, when: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a comparison in a process that sends itself a signal once it does something."""
    path = folder / "child"
    path.write_bytes(pickle.dumps((ends, sign, when)))
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(path)], stdout=subprocess.PIPE, text=True, env=env
    ) as made:
        try:
            yield made
        finally:
            made.kill()


@pytest.mark.parametrize("when", ["before", "adding up", "waiting for the apply job to come to"])
def test_a_comparison_that_is_killed_leaves_nothing(when: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with from_postgresql(request) as world:
        world.in_source(*world.fill)
        assert isinstance(world.ends, ReplicaEnds)
        with comparing(world.ends, tmp_path, signal.SIGKILL, when) as child:
            assert child.wait(120) == -signal.SIGKILL
        held = (
            "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON"
            " p.id = t.trx_mysql_thread_id WHERE p.db = 'public' AND p.command = 'Sleep'"
        )
        eventually(lambda: world.in_target(held) == [(0,)])
        eventually(lambda: world.in_target("SELECT state FROM kainite_verify") == [("over",)])
        world.in_source("UPDATE customer SET name = 'later' WHERE id = 1")
        eventually(lambda: world.in_target("SELECT name FROM customer WHERE id = 1") == [("later",)])
        assert world.compared().verdict == "equal"


def test_a_comparison_that_is_frozen_at_the_point_holds_the_apply_job_for_seconds_alone(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with from_postgresql(request) as world:
        world.in_source(*world.fill)
        assert isinstance(world.ends, ReplicaEnds)
        with comparing(world.ends, tmp_path, signal.SIGSTOP, "waiting for the apply job to come to") as child:
            assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
            world.in_source("UPDATE customer SET name = 'later' WHERE id = 1")
            eventually(lambda: world.in_target("SELECT name FROM customer WHERE id = 1") == [("later",)], 60)
            os.kill(child.pid, signal.SIGCONT)
            assert child.communicate(timeout=120)[0] == "equal\n"


def test_a_row_whose_key_is_padded_in_the_source_is_found_by_changes(request: pytest.FixtureRequest) -> None:
    ours = ["CREATE TABLE padded (k char(5) PRIMARY KEY, v int)"]
    theirs = [f"CREATE TABLE padded (k {mariadb_type('character(5)', keyed=True)} PRIMARY KEY, v INT)"]
    with from_postgresql(request, ours, theirs) as world:
        world.in_source("INSERT INTO padded VALUES ('a', 1), ('b', 1), ('cdefg', 1)")
        world.in_source("UPDATE padded SET v = 2", "DELETE FROM padded WHERE k = 'b'")
        assert (world.compared(only=["padded"]).verdict, world.stuck()) == ("equal", [])
        assert world.in_target("SELECT k, v FROM padded ORDER BY k") == [("a", 2), ("cdefg", 2)]
