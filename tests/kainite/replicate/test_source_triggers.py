"""Which of a source's triggers its MariaDB target lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pymysql
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.source_triggers import (
    lacking_triggers,
    look_at_triggers,
    triggers_of_binlog,
    triggers_of_postgresql,
)
from kainite.targets.mariadb.connection import connect
from kainite.uow.catalogue.reflection import reflect
from support.binlog_loading import binlog_loading
from support.mariadb_server import run_script
from support.mariadb_source import source_database
from support.replicas import run

TABLES = "CREATE TABLE item (id INT PRIMARY KEY, v INT); CREATE TABLE other (id INT PRIMARY KEY, v INT)"
TRIGGER = "CREATE TRIGGER {0} BEFORE INSERT ON {1} FOR EACH ROW SET NEW.v = 1"


@pytest.fixture
def target(mariadb: str) -> Iterator[pymysql.connections.Connection]:
    run_script(mariadb, TABLES)
    with closing(connect(mariadb)) as connection:
        yield connection


def test_of_postgresql_the_enabled_triggers_of_published_tables_count(source: SourceSlot) -> None:
    run(
        source.url,
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER loud BEFORE INSERT OR UPDATE ON item FOR EACH ROW EXECUTE FUNCTION nothing()",
        "CREATE TRIGGER off BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION nothing()",
        "ALTER TABLE item DISABLE TRIGGER off",
        "CREATE TABLE child (id INT REFERENCES item)",
    )  # fmt: skip
    with psycopg.connect(source.url) as connection:
        assert triggers_of_postgresql(connection, source.publication) == [("public.item", "loud")]
        assert triggers_of_postgresql(connection, "none") == []


def test_of_mariadb_the_triggers_of_tables_that_are_read_count(
    mariadb_source_server: str, postgres: str, tmp_path: Path
) -> None:
    with (
        source_database(mariadb_source_server) as url,
        binlog_loading(url, postgres, tmp_path, [*TABLES.split("; ")], []) as world,
    ):
        world.in_source(TRIGGER.format("loud", "item"), TRIGGER.format("quiet", "other"))
        assert triggers_of_binlog(world.ends) == [("item", "loud"), ("other", "quiet")]
        alone = replace(world.ends, source=replace(world.ends.source, tables=("item",)))
        assert triggers_of_binlog(alone) == [("item", "loud")]


def test_what_the_target_lacks_is_named_by_the_sources_table(
    target: pymysql.connections.Connection, mariadb: str
) -> None:
    run_script(mariadb, TRIGGER.format("loud", "item") + "; " + TRIGGER.format("astray", "other"))
    wanted = [("item", "loud"), ("item", "quiet"), ("other", "loud"), ("nowhere", "loud")]
    assert lacking_triggers(target, reflect(mariadb), wanted) == ["item: quiet", "other: loud"]
    assert lacking_triggers(target, reflect(mariadb), []) == []


def test_a_finding_names_them_and_says_what_to_do() -> None:
    assert list(look_at_triggers([])) == []
    [found] = look_at_triggers(["item: quiet"])
    assert (found.verdict, found.found) == ("warning", "the target lacks triggers of the source: item: quiet")
    assert "CREATE TRIGGER" in found.mend
