"""Compares a MariaDB source with its PostgreSQL target while both live: what differs is found, and nothing else is."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from kainite.capture.mysql import same_place, snapshot_tables
from kainite.replicate.verify_report import ShownValues, VerifyReport
from kainite_spark.verify.row_compare import RowCompareSource
from support.binlog_loading import BinlogLoading, Following, binlog_loading, following
from support.comparisons import compared_by
from support.mariadb_source import session, source_database

SOURCE = (
    "CREATE TABLE customer (id INT PRIMARY KEY, name VARCHAR(40), balance DECIMAL(12,4), since TIMESTAMP(3) NULL,"
    " note VARBINARY(20), weight DOUBLE, open TIME(2), about JSON, flags BIT(4), small FLOAT, member TINYINT(1),"
    " told DATETIME(6), born DATE, address INET6)",
    "CREATE TABLE word (word VARCHAR(20) COLLATE utf8mb4_general_ci, `per cent%` BIGINT UNSIGNED, n INT,"
    " PRIMARY KEY (word, `per cent%`))",
)
FILL = (
    "SET time_zone = '+00:00'",
    "INSERT INTO customer SELECT seq, CONCAT('customer ', seq), seq / 4, FROM_UNIXTIME(1700000000 + seq * 3600),"
    ' UNHEX(MD5(seq)), seq / 7, SEC_TO_TIME(seq * 100), CONCAT(\'{"b": \', seq, \'.50, "a": [1e2, "x"]}\'), seq % 16,'
    " seq / 3, seq % 2, FROM_UNIXTIME(1700000000 + seq / 8), '2024-02-29' + INTERVAL seq DAY, '::ffff:1.2.3.4'"
    " FROM seq_1_to_1500",
    "INSERT INTO customer (id) VALUES (0)",
    "INSERT INTO word SELECT CONCAT(ELT(1 + seq % 4, 'a', 'B', 'ä', 'Z '), seq), 18446744073709551615 - seq, seq"
    " FROM seq_1_to_1500",
    "ANALYZE TABLE customer, word",
)
TARGET = (
    "CREATE TABLE customer (id int PRIMARY KEY, name text, balance numeric(14,6), since timestamptz, note bytea,"
    " weight float8, open interval, about jsonb, flags bit(4), small real, member boolean, told timestamp, born date,"
    " address inet)",
    'CREATE TABLE word (word text, "per cent%" numeric(20), n bigint, PRIMARY KEY (word, "per cent%"))',
)
DAMAGES = {
    "a changed byte": ("note = set_byte(note, 3, get_byte(note, 3) # 1)", "note"),
    "a truncated text": ("name = left(name, -1)", "name"),
    "a rounded numeric": ("balance = round(balance, 1)", "balance"),
    "a rounded float": ("weight = weight::real", "weight"),
    "a smaller float": ("small = small - small / 1000000", "small"),
    "a wrong time zone": ("since = since + interval '2 h'", "since"),
    "a wrong hour": ("told = told - interval '1 h'", "told"),
    "a wrong day": ("born = born + 1", "born"),
    "a time without its fraction": ("open = open + interval '0.01 s'", "open"),
    "an empty text for NULL": ("note = ''", "note"),
    "a text for a number": ("about = jsonb_set(about, '{b}', to_jsonb(about ->> 'b'))", "about"),
    "another number": ("about = jsonb_set(about, '{a,0}', '100.1')", "about"),
    "a bit": ("flags = ~flags", "flags"),
    "the other truth": ("member = NOT member", "member"),
    "another address": ("address = '::1'", "address"),
}


PAIRS: Final[Sequence[tuple[str, str, Sequence[str]]]] = (
    ("BIGINT", "bigint", ["-9223372036854775808", "0"]), ("BIGINT UNSIGNED", "numeric(20)", ["18446744073709551615"]),
    ("TINYINT(1)", "boolean", ["1", "0"]), ("BIT(1)", "boolean", ["1", "0"]), ("YEAR", "smallint", ["2024", "0"]),
    ("FLOAT", "real", ["0.1", "1e-45", "3.4028235e38", "-0", "16777217", "1.17549435e-38", "123456789"]),
    ("FLOAT", "numeric", ["16777217", "0.1", "1e-20", "1e30"]), ("FLOAT", "float8", ["0.1", "1e-45", "3.4e38"]),
    ("DOUBLE", "float8", ["0.30000000000000004", "1e308", "5e-324", "-0.0", "1e15", "1e16", "123456789012345680",
                          "1e-5", "0.0001", "2.2250738585072014e-308"]),
    ("DOUBLE", "numeric", ["0.30000000000000004", "1e100", "1e-30"]), ("DOUBLE", "text", ["1e30", "0.1"]),
    ("DECIMAL(30,10)", "numeric", ["-12345678901234567890.0123456789", "0"]), ("BIGINT", "float8", ["100000"]),
    ("DECIMAL(10,4)", "float8", ["1.5", "-0.0001"]), ("DECIMAL(10,4)", "text", ["1.5"]), ("INT", "real", ["65536"]),
    ("DECIMAL(65,30)", "numeric", ["12345678901234567890123456789012345.123456789012345678901234567890"]),
    ("DECIMAL(9,2) ZEROFILL", "numeric(12,5)", ["4.2"]), ("INT(5) ZEROFILL", "char(7)", ["42"]),
    ("LONGTEXT", "text", ["'ä\\\\x\t\n\r𝄞'", "''", "' a '"]), ("VARCHAR(5)", "char(5)", ["'a '", "'bcdef'"]),
    ("VARCHAR(5) CHARACTER SET latin1", "varchar(5)", ["'€ä'", "'a  '"]), ("BLOB", "bytea", ["X'00ff5c'", "''"]),
    ("BINARY(4)", "bytea", ["'a'", "X'00'"]), ("ENUM('a','b')", "varchar(3)", ["'b'"]), ("TEXT", "varchar(1)", ["''"]),
    ("SET('x','y')", "varchar(9)", ["'x,y'", "''"]), ("BIT(10)", "bit(10)", ["b'1000000001'", "0"]),
    ("DATE", "date", ["'2024-02-29'", "'0001-01-01'", "'9999-12-31'"]), ("DATE", "timestamp", ["'2024-02-29'"]),
    ("DATE", "timestamptz", ["'2024-02-29'"]), ("DATETIME", "date", ["'2024-02-29'"]),
    ("DATETIME(6)", "timestamp", ["'2024-02-29 23:59:59.987654'", "'9999-12-31 23:59:59.999999'", "'2024-01-01'"]),
    ("DATETIME(1)", "timestamptz", ["'2024-02-29 01:00:00.5'"]), ("DATETIME(3)", "text", ["'2024-01-01 01:02:03.1'"]),
    ("TIMESTAMP(6) NULL", "timestamptz", ["'2024-02-29 23:59:59.98765'", "'1970-01-01 00:00:01'"]),
    ("TIMESTAMP NULL", "timestamp", ["'2024-02-29 01:00:00'"]),
    ("TIMESTAMP(2) NULL", "text", ["'2024-01-01 01:02:03.1'"]),
    ("TIME(6)", "interval", ["'-838:59:58.5'", "'838:59:59'", "'00:00:00'", "'-00:00:00.000001'", "'24:00:00'"]),
    ("TIME(2)", "time", ["'10:00:00.10'"]), ("UUID", "uuid", ["'11223344-5566-1788-99AA-bbccddeeff00'"]),
    ("JSON", "jsonb", ["'{\"a\": 1.50}'", "'[]'", "'\"x\\\\u00e4\"'", "'1e3'", "'-0.0'", "'12345678901234567890123'",
                       "'1E-10'", "'{\"b\":1,\"a\":{\"c\":[true,false,null]}}'", "'{\"a\":1, \"a\":2}'", "'0.1e1'"]),
    ("ENUM('Y','N')", "boolean", ["'Y'", "'N'"]), ("CHAR(36)", "uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    ("CHAR(32)", "uuid", ["'A0EEBC999C0B4EF8BB6D6BB9BD380A11'"]),
    ("JSON", "json", ["'{ \"a\":  1.50}'"]), ("INET6", "text", ["'::ffff:1.2.3.4'"]), ("INET4", "inet", ["'1.2.3.4'"]),
    ("INET6", "inet", ["'::ffff:1.2.3.4'", "'::'", "'fe80::1'", "'1:0:0:2::3'", "'::1.2.3.4'", "'64:ff9b::1.2.3.4'"]),
)  # fmt: skip


@pytest.fixture
def world(
    mariadb_source_server: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BinlogLoading]:
    monkeypatch.setattr(snapshot_tables, "RANGE_BYTES", 64 * 1024)
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)  # other tests of the server may have
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, SOURCE, TARGET) as made,
    ):
        yield made


@contextmanager
def living(world: BinlogLoading, *, loaded: bool = False) -> Iterator[Following]:
    """Fills the source, and lets the target follow; or loads it first."""
    if loaded:
        world.in_source(*FILL)
        world.load()
    with following(world) as follower, follower.living():
        if not loaded:
            world.in_source(*FILL)
        yield follower


def stuck(follower: Following) -> list[str]:
    """Returns the units that are not applied, but those under way."""
    return [cause for cause in follower.failed().values() if not cause.startswith("in progress")]


def compared(world: BinlogLoading, **more: object) -> VerifyReport:
    return compared_by(RowCompareSource(world.ends), **more)


def found_in(report: VerifyReport) -> set[tuple[str, str, tuple[tuple[str, str], ...], tuple[str, ...]]]:
    """Returns the rows of a report, each with how it differs, its key, and the columns that do."""
    return {(row.how.value, row.table, tuple(row.key.items()), row.columns) for row in report.rows}


def test_each_damage_is_found_to_the_row(world: BinlogLoading) -> None:
    with living(world, loaded=True) as follower:
        world.in_source(
            "INSERT INTO customer (id, name) VALUES (-7, 'ü \\t\\n')", "DELETE FROM word WHERE n = 5",
            "UPDATE customer SET weight = 1e300, small = 1.4e-45, balance = -0.5 WHERE id = 1",
        )  # fmt: skip
        clean = compared(world)
        assert (clean.verdict, clean.rows, clean.units) == ("equal", (), ())
        assert {table.table: table.rows_source for table in clean.tables} == {
            "public.customer": 1502, "public.word": 1499,
        }  # fmt: skip
        assert clean.position.startswith("transaction ")
        numbers = range(101, 101 + len(DAMAGES))
        for number, (damage, _) in zip(numbers, DAMAGES.values(), strict=True):
            world.in_target(f"UPDATE customer SET {damage} WHERE id = {number}")
        world.in_target(
            "UPDATE customer a SET name = b.name FROM customer b WHERE (a.id, b.id) IN ((5, 6), (6, 5))",
            "INSERT INTO word VALUES ('zz', 1, 2)", "DELETE FROM word WHERE n = 44", "DELETE FROM customer WHERE id = 0"
        )  # fmt: skip
        report = compared(world)
        assert stuck(follower) == []
    changed = {("changed", "public.customer", (("id", str(number)),), (column,))
               for number, (_, column) in zip(numbers, DAMAGES.values(), strict=True)}  # fmt: skip
    words, (wide,) = ("word", "per cent%", "n"), [row.columns for row in report.rows if row.key == {"id": "0"}]
    assert len(wide) == 14
    assert found_in(report) == changed | {
        ("changed", "public.customer", (("id", "5"),), ("name",)),
        ("changed", "public.customer", (("id", "6"),), ("name",)),
        ("missing", "public.customer", (("id", "0"),), wide),
        ("extra", "public.word", (("word", "zz"), ("per cent%", "1")), words),
        ("missing", "public.word", (("word", "a44"), ("per cent%", "18446744073709551571")), words),
    }  # fmt: skip
    assert report.verdict == "different"
    shown = {row.key.get("id"): row for row in report.rows}
    assert (shown["102"].source, shown["102"].target) == (("customer 102",), ("customer 10",))
    assert sum(table.different for table in report.tables) == len(DAMAGES) + 5
    assert "customer 102" not in "".join(report.lines(ShownValues.MASKED))


def test_rows_of_units_that_are_not_applied_are_known_and_hide_no_other(world: BinlogLoading) -> None:
    with living(world) as follower:
        world.in_target("ALTER TABLE customer ADD CHECK (id <> 9 OR name <> 'refused')")
        with closing(session(world.ends.source.url)) as writer:
            writer.begin()
            writer.query("UPDATE customer SET name = 'refused' WHERE id = 9")
            writer.query("UPDATE word SET n = 0 WHERE n = 3")
            writer.commit()
        world.in_source("UPDATE customer SET name = 'later' WHERE id = 9")
        found = compared(world)
        world.in_target("UPDATE customer SET name = 'damaged' WHERE id IN (11, 12)")
        damaged = compared(world, most_rows=1)
        assert len(stuck(follower)) == 2
    assert [(unit.status, unit.tables) for unit in found.units] == [
        ("failed", ("customer", "word")),
        ("blocked", ("customer",)),
    ]
    assert found.verdict == "known"
    assert sorted((row.table, row.why.value) for row in found.rows) == [
        ("public.customer", "known"), ("public.word", "known"),
    ]  # fmt: skip
    assert damaged.verdict == "different"
    assert [(table.different, table.known) for table in damaged.tables] == [(2, 1), (0, 1)]
    assert [row.why.value for row in damaged.rows] == ["different"]


def compare_under_load(world: BinlogLoading, times: int) -> None:
    """Compares while transactions change both tables in the source; every comparison must find both sides equal."""
    over = threading.Event()
    with living(world) as follower, ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(write, world.ends.source.url, seed, over) for seed in range(2)]
        try:
            reports = [compared(world) for _ in range(times)]
        finally:
            over.set()
        written = sum(each.result() for each in writing)
        assert stuck(follower) == []
    assert [(report.verdict, report.rows) for report in reports] == [("equal", ())] * times
    assert len({report.position for report in reports}) == times
    assert written > times


def write(url: str, seed: int, over: threading.Event) -> int:
    """Changes rows of both tables until it is told to end; returns in how many transactions."""
    chance, count = random.Random(seed), 0
    with closing(session(url)) as connection:
        connection.query("SET innodb_lock_wait_timeout = 20")
        while not over.is_set():
            one, other = sorted(chance.sample(range(1, 1500), 2))
            connection.begin()
            connection.query(f"UPDATE customer SET balance = balance - 1 WHERE id = {one}")
            connection.query(f"UPDATE customer SET balance = balance + 1, weight = RAND() WHERE id = {other}")
            new = 2000 + 2 * count + seed
            connection.query(f"DELETE FROM customer WHERE id = {new - 8}")
            connection.query(f"INSERT INTO customer (id, small, name) VALUES ({new}, RAND(), 'new')")
            connection.query(f"INSERT INTO word VALUES ('w{seed}', {count}, {count})")
            connection.commit()
            count += 1
            over.wait(0.01)
    return count


def test_nothing_is_found_while_both_sides_live(world: BinlogLoading) -> None:
    compare_under_load(world, 3)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_nothing_is_found_in_a_hundred_comparisons(world: BinlogLoading) -> None:
    compare_under_load(world, 100)


def test_a_value_of_each_type_is_what_the_target_has_made_of_it(world: BinlogLoading) -> None:
    here, there = (", ".join(f"v{place} {pair[side]}" for place, pair in enumerate(PAIRS)) for side in (0, 1))
    world.in_source(f"CREATE TABLE wide (id INT PRIMARY KEY, {here})")
    world.in_target(f"CREATE TABLE wide (id int PRIMARY KEY, {there})")
    turns = range(max(len(values) for *_, values in PAIRS))
    with following(world) as follower, follower.living():
        for turn in turns:
            row = ", ".join(values[turn % len(values)] for *_, values in PAIRS)
            world.in_source("SET time_zone = '+00:00'", f"INSERT INTO wide VALUES ({turn}, {row})")
        report = compared(world, only=["wide"])
        assert stuck(follower) == []
    assert [(row.key, row.columns, row.source, row.target) for row in report.rows] == []
    assert (report.verdict, report.tables[0].rows_source) == ("equal", len(turns))
