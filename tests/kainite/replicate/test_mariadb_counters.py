"""Which counters of a MariaDB target can be set, and to what; tests/kainite_spark/load has cut-overs that set them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pymysql
import pytest

from kainite.base.errors import TargetError
from kainite.replicate.counters import CountingColumn, SourceCounters
from kainite.replicate.mariadb_counters import TargetCounter, look_at_counters, set_counters, target_counters
from kainite.replicate.sequences import column_counters
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import rows_of
from support.mariadb_server import run_script
from support.replicas import run, tables_of


def column(next_value: int, place: tuple[str, str] = ("d", "t")) -> CountingColumn:
    return CountingColumn("item.id", place, "id", next_value)


@pytest.fixture
def target(mariadb: str) -> Iterator[pymysql.connections.Connection]:
    with closing(connect(mariadb)) as connection:
        yield connection


@pytest.mark.parametrize(
    ("kind", "most"),
    [("tinyint(4)", 127), ("smallint(5) unsigned", 65_535), ("mediumint(9)", 8_388_607), ("int(11)", 2_147_483_647),
     ("int(10) unsigned zerofill", 4_294_967_295), ("bigint(20)", 2**63 - 1), ("bigint unsigned", 2**64 - 1)],
)  # fmt: skip
def test_a_column_counts_as_far_as_its_type(kind: str, most: int) -> None:
    assert TargetCounter(column(most), kind, counts=True).problem == ""
    assert TargetCounter(column(most + 1), kind, counts=True).problem.endswith(f"and the target's column is {kind}")
    assert TargetCounter(column(most + 1), kind, counts=False).problem == ""
    assert TargetCounter(column(most + 1), "double", counts=True).problem == ""


def test_a_counter_is_set_forward_alone(target: pymysql.connections.Connection, mariadb: str) -> None:
    run_script(mariadb, "CREATE TABLE `t t` (id INT AUTO_INCREMENT PRIMARY KEY, v INT) AUTO_INCREMENT = 7")
    place = (rows_of(target, "SELECT DATABASE()")[0][0], "t t")
    assert set_counters(target, target_counters(target, [column(7, place)])) == []
    assert set_counters(target, target_counters(target, [column(3, place)])) == []
    assert set_counters(target, target_counters(target, [column(12, place)])) == ["item.id"]
    run_script(mariadb, "INSERT INTO `t t` (v) VALUES (1)")
    assert rows_of(target, "SELECT id FROM `t t`") == [(12,)]
    bare = target_counters(target, [CountingColumn("x.v", place, "v", 1), CountingColumn("x.no", place, "no", 1)])
    assert [(one.type, one.counts) for one in bare] == [("int(11)", False), ("", False)]
    assert set_counters(target, bare) == []
    with pytest.raises(TargetError, match=r"item.id comes to 3,000,000,000, and the target's column is int\(11\)"):
        set_counters(target, target_counters(target, [column(3_000_000_000, place)]))
    found = target_counters(target, [column(12, place)])
    run_script(mariadb, "DROP TABLE `t t`; CREATE TABLE `t t` (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE = Memory")
    assert set_counters(target, found) == ["item.id"]


def test_what_cannot_be_set_is_told() -> None:
    source = SourceCounters((), ("ticket",), ('"s"."hidden"',))
    found = [TargetCounter(column(1), "int(11)", counts=False), TargetCounter(column(300), "tinyint(4)", counts=True)]
    told = [(one.verdict.value, one.found, one.mend) for one in look_at_counters(source, found)]
    assert told == [
        ("wrong", "the source's role may not read \"s\".\"hidden\"",
         'GRANT SELECT ON SEQUENCE "s"."hidden" TO the role of --source'),
        ("warning", "the target does not count item.id",
         "ALTER TABLE `d`.`t` MODIFY `id` INT(11) NOT NULL AUTO_INCREMENT, if it is needed"),
        ("wrong", "item.id comes to 300, and the target's column is tinyint(4)",
         "ALTER TABLE `d`.`t` MODIFY `id` BIGINT NOT NULL AUTO_INCREMENT"),
        ("warning", "the source's own sequences are not set: ticket",
         "CREATE SEQUENCE and SETVAL in the target, if something there needs them"),
    ]  # fmt: skip
    assert [one.found for one in look_at_counters(SourceCounters(()), ())] == []


def test_sequences_of_columns_give_what_comes_next(postgres: str) -> None:
    run(postgres, "CREATE TABLE item (id serial PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY (INCREMENT BY 10))",
        "CREATE TABLE other (id serial PRIMARY KEY)", "CREATE SEQUENCE ticket", "CREATE SEQUENCE round CYCLE",
        "ALTER SEQUENCE round OWNED BY item.id", "CREATE SEQUENCE down INCREMENT BY -1 OWNED BY item.n",
        "INSERT INTO item DEFAULT VALUES", "INSERT INTO item DEFAULT VALUES")  # fmt: skip
    catalogue = tables_of(postgres)
    run(postgres, "CREATE TABLE unknown (id serial PRIMARY KEY)", "ALTER SEQUENCE ticket OWNED BY NONE")
    with psycopg.connect(postgres, autocommit=True) as source:
        found = column_counters(source, catalogue)
    assert {(one.name, one.place, one.next) for one in found.columns} == {
        ("id", ("public", "item"), 3), ("n", ("public", "item"), 21), ("id", ("public", "other"), 1),
    }  # fmt: skip
    assert set(found.others) == {'"public"."ticket"', '"public"."round"', '"public"."down"'}
    assert found.hidden == ()
