"""The comparison that a settings file describes: what it refuses, what runs it, what it tells and what it leaves."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from kainite import settings
from kainite.base.errors import (
    LogRequestError,
    SettingsError,
    SourceError,
    SparkUnavailableError,
    StoppedError,
    TargetError,
)
from kainite.capture.mysql import same_place
from kainite.capture.mysql.command import PROGRAM as BINLOG_PROGRAM
from kainite.capture.mysql.snapshot_tables import SnapshotColumn, SnapshotTable
from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.replication import SourceSlot
from kainite.cli.main import main
from kainite.operations.carrying_out import Operations
from kainite.replicate.known_rows import Explanation
from kainite.replicate.load_target import load_session, status_in
from kainite.replicate.mariadb_texts import kind_into_mariadb
from kainite.replicate.paired_rows import MariadbRows, PairedRows, PostgresRows, paired_rows
from kainite.replicate.repaired_rows import alone, read_deltas, to_repair
from kainite.replicate.replica_facts import read_replica
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.tables import ReplicaColumn, ReplicaTable
from kainite.replicate.verify_ledger import NO_OUTCOME, VerifyLedger, first_row, latest_outcome
from kainite.replicate.verify_report import RowReport
from kainite.settings import Settings
from kainite_spark.verify.job import VerifyProgress
from kainite_spark.verify.runners import ThreadItems
from kainite_spark.verify_of_file import SMALL_BYTES, FileComparison, RepeatedFileComparison, _Runners, _Told
from support.binlog_loading import binlog_loading, following
from support.mariadb_loading import mariadb_following, mariadb_loading
from support.mariadb_source import execute, source_database
from support.pgbouncer import pgbouncer
from support.postgresql_source import source
from support.replica import replica
from support.replicas import LOG, run

__all__ = ["source"]
TABLES = """
    CREATE TABLE account (id int PRIMARY KEY, owner text);
    CREATE TABLE line (id int PRIMARY KEY, v text);
"""
INTO_MARIADB_POSTGRESQL = (
    "CREATE TABLE account (id numeric(9,3) PRIMARY KEY, owner text)",
    "CREATE TABLE line (at timestamptz(3) PRIMARY KEY, v text)",
)
INTO_MARIADB = (
    "CREATE TABLE account (id decimal(9,3) PRIMARY KEY, owner longtext)",
    "CREATE TABLE line (at datetime(3) PRIMARY KEY, v varchar(20) COLLATE utf8mb4_nopad_bin)",
)
FILL = "INSERT INTO account SELECT n, 'owner ' || n FROM generate_series(1, 100) n"
NOWHERE = SourceSlot("postgresql://nobody@127.0.0.1:1/shop", "s", "changes")


def configured(source: SourceSlot, target: str, folder: Path, **more: str) -> Settings:
    values = {
        "applicationName": "shop", "streamName": "shop", "target": target, "logTableName": "log", "unitsOfWork": "true",
        "extractorName": f"{PROGRAM} --source {source.url!r} --slot {source.slot} --publication changes",
        "extractorMode": "cyclic", "extractorOffsets": "kainite", "uowOrder": "dense", "regionName": "us-east-1",
        "applyMaster": "local[2]",
    } | more  # fmt: skip
    path = folder / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return settings.load(path, needs=())


def comparison(found: Settings, opened: ExitStack, *tables: str) -> FileComparison:
    return FileComparison.of(found, tables, 60.0, threading.Event(), opened)


def repeated(found: Settings) -> RepeatedFileComparison:
    return RepeatedFileComparison(found, 60.0, threading.Event())


def test_settings_under_which_the_log_tells_no_point_are_refused_before_a_database_is_asked(tmp_path: Path) -> None:
    found = configured(NOWHERE, NOWHERE.url, tmp_path, uowOrder="arrival")
    with ExitStack() as opened, pytest.raises(SettingsError, match="needs uowOrder = dense"):
        comparison(found, opened)


def test_a_pooler_that_shares_sessions_is_refused(source: SourceSlot, postgres: str, tmp_path: Path) -> None:
    with pgbouncer(source.url) as pooled, ExitStack() as opened:
        found = configured(replace(source, url=pooled), postgres, tmp_path)
        with pytest.raises(SettingsError, match=r"source's .*own port"):
            comparison(found, opened)


def test_the_session_with_the_target_ends_with_the_comparison(
    source: SourceSlot, postgres: str, tmp_path: Path
) -> None:
    run(postgres, TABLES)
    with ExitStack() as opened:
        found = comparison(configured(source, postgres, tmp_path), opened)
        assert set(found.catalogue.tables) == {"account", "line"}
        assert (found.ends.source, found.ends.log_partition) == (source, LOG)
        told = first_row(found.connection, "SELECT current_setting('application_name')")
        assert told == ("kainite verify",)
    with pytest.raises(psycopg.OperationalError, match="closed"):
        first_row(found.connection, "SELECT 1")


def test_rows_are_compared_and_repaired_in_the_named_tables_alone(
    source: SourceSlot, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = configured(source, postgres, tmp_path)
    with replica(source, postgres, TABLES) as made:
        monkeypatch.setattr(Operations, "log", property(lambda _: (made.store, "0")))
        run(source.url, FILL)
        made.catch_up(1)
        with made.living():
            run(postgres, "UPDATE account SET owner = 'x' WHERE id = 9", "DELETE FROM account WHERE id = 7",
                "INSERT INTO line VALUES (1, 'extra')")  # fmt: skip
            with ExitStack() as opened:
                one = comparison(found, opened, "account")
                report = one.run(1_000)
                assert [(table.table, table.different) for table in report.tables] == [("public.account", 2)]
                assert len(one.run(1).rows) == 1
                outcome = one.repair(to_repair(report), "by hand")
                assert (outcome.rows, outcome.status) == (2, "committed")
                assert one.run(0).verdict == "equal"
            with ExitStack() as opened:
                all_tables = comparison(found, opened).run(1_000)
    assert [(table.table, table.different) for table in all_tables.tables] == [
        ("public.account", 0),
        ("public.line", 1),
    ]


def test_two_comparisons_of_a_log_exclude_each_other(source: SourceSlot, postgres: str, tmp_path: Path) -> None:
    run(postgres, TABLES)
    with psycopg.connect(postgres, autocommit=True) as connection:
        VerifyLedger(connection, LOG).begin()
        with pytest.raises(TargetError, match="another kainite verify of log/0 runs"):
            repeated(configured(source, postgres, tmp_path)).compare()


def test_a_mariadb_source_is_compared_and_its_replica_repaired(
    mariadb_source_server: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)  # other tests of the server may have
    tables = ["CREATE TABLE account (id int PRIMARY KEY, owner text)", "CREATE TABLE more (id int PRIMARY KEY)"]
    with (
        source_database(mariadb_source_server) as url,
        binlog_loading(url, postgres, tmp_path, tables, tables) as world,
        following(world) as follower,
        follower.living(),
    ):
        options = {"extractorName": f"{BINLOG_PROGRAM} --source {url!r}", "extractorOffsetFile": "offset"}
        made = configured(NOWHERE, postgres, tmp_path, streamName="stream", **options)
        world.in_source("INSERT INTO account VALUES (1, 'one'), (2, 'two')")
        with ExitStack() as opened:
            assert comparison(made, opened).run(10).verdict == "equal"
        world.in_target("UPDATE account SET owner = 'else' WHERE id = 2")
        report = repeated(made).compare()
        assert (report.verdict, report.tables[0].changed) == ("different", 1)
        monkeypatch.setattr(Operations, "log", property(lambda _: (follower.store, "0")))
        with ExitStack() as again:
            one = comparison(made, again, "account")
            outcome = one.repair(to_repair(one.run(10)), "by hand")
            assert (outcome.rows, outcome.status, one.run(10).verdict) == (1, "committed", "equal")
        assert repeated(made).age() is not None


@contextmanager
def from_postgresql_into_mariadb(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[Settings, Any, Any]]:
    """Gives settings, what executes in the source, and what applies."""
    one: SourceSlot = request.getfixturevalue("source")
    server = request.getfixturevalue("mariadb_server")
    with (
        mariadb_loading(one, server, INTO_MARIADB_POSTGRESQL, INTO_MARIADB) as world,
        mariadb_following(world) as follower,
        follower.living(),
    ):
        yield configured(one, world.ends.target, folder), world.in_source, follower


@contextmanager
def from_mariadb_into_mariadb(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[Settings, Any, Any]]:
    """Gives settings, what executes in the source, and what applies."""
    server, target = request.getfixturevalue("mariadb_source_server"), request.getfixturevalue("mariadb")
    with (
        source_database(server) as url,
        binlog_loading(url, target, folder, INTO_MARIADB, INTO_MARIADB) as world,
        following(world) as follower,
        follower.living(),
    ):
        options = {"extractorName": f"{BINLOG_PROGRAM} --source {url!r}", "extractorOffsetFile": "offset"}
        yield configured(NOWHERE, target, folder, streamName="stream", **options), world.in_source, follower


@pytest.mark.parametrize("opened", [from_postgresql_into_mariadb, from_mariadb_into_mariadb])
def test_a_mariadb_target_is_compared_repaired_and_its_result_kept(
    opened: Callable[..., Any], request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)  # other tests of the server may have
    with opened(request, tmp_path) as (made, in_source, follower):
        target = str(made.apply.target)
        monkeypatch.setattr(Operations, "log", property(lambda _: (follower.store, "0")))
        in_source("INSERT INTO account VALUES (1.5, 'one'), (2.25, 'two'), (3, 'three'), (4, 'four')",
                  "INSERT INTO line VALUES ('2026-01-01 00:00:00.5', 'a '), ('2026-01-02 00:00:00', 'b')")  # fmt: skip
        first = repeated(made)
        first.note(60.0, "away")
        assert first.age() is None
        report = first.compare()
        assert (report.verdict, report.rows) == ("equal", ())
        assert first.age() is not None
        execute(
            target, "UPDATE account SET owner = 'else' WHERE id = 2.25", "DELETE FROM account WHERE id = 1.5",
            "INSERT INTO account VALUES (9.5, 'nobody')", "UPDATE line SET v = 'a' WHERE at < '2026-01-02'",
        )  # fmt: skip
        with ExitStack() as stack:
            one = comparison(made, stack)
            found = one.run(10)
            assert [(table.missing, table.extra, table.changed) for table in found.tables] == [(1, 1, 1), (0, 0, 1)]
            in_source("UPDATE account SET owner = 'later' WHERE id = 2.25", "DELETE FROM account WHERE id = 4")
            outcome = one.repair(to_repair(found), "by hand")
            assert (outcome.rows, outcome.status) == (4, "committed")
            again = one.run(10)
            assert [(row.key, row.source, row.target) for row in again.rows] == []
            assert again.verdict == "equal"
        with load_session(target, "a test") as session:
            told = latest_outcome(session, LOG)
            status = status_in(session, LOG)
        assert told is not None
        assert (told.verdict, told.every, told.tables) == ("equal", 60.0, 2)
        assert status.verified == told


def test_rows_that_the_target_takes_for_one_are_named_and_none_is_written_over_another(
    source: SourceSlot, mariadb_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = ["CREATE TABLE word (w text PRIMARY KEY, v text)"]
    theirs = ["CREATE TABLE word (w varchar(20) COLLATE utf8mb4_bin PRIMARY KEY, v varchar(20))"]
    with (
        mariadb_loading(source, mariadb_server, ours, theirs) as world,
        mariadb_following(world) as follower,
        follower.living(),
    ):
        made = configured(source, world.ends.target, tmp_path)
        monkeypatch.setattr(Operations, "log", property(lambda _: (follower.store, "0")))
        world.in_source("INSERT INTO word VALUES ('a ', 'padded'), ('b', 'b')")
        assert repeated(made).compare().verdict == "equal"
        world.change_target("UPDATE word SET w = 'x' WHERE w = 'a'", "DELETE FROM word WHERE w = 'b'")
        world.in_source("INSERT INTO word VALUES ('a', 'bare')")
        with ExitStack() as stack:
            one = comparison(made, stack)
            found = one.run(10)
            assert {(row.how.value, row.key["w"]) for row in found.rows} == {
                ("missing", "a "), ("missing", "b"), ("extra", "x"),
            }  # fmt: skip
            wanted, merged = one.apart(to_repair(found))
            assert [(row.table, row.key, row.other) for row in merged] == [("public.word", {"w": "a "}, {"w": "a"})]
            assert {row.key["w"] for row in wanted} == {"b", "x"}
        dry = CliRunner().invoke(main, ["verify", "-p", str(made.path), "--repair", "--dry-run"])
        assert "not repaired: public.word {'w': 'a '}: to the target it is the row {'w': 'a'}; give" in dry.stdout
        assert "would delete 1 row of public.word\nwould insert 1 row of" in dry.stdout
        with ExitStack() as stack:
            one = comparison(made, stack)
            outcome = one.repair(to_repair(found), "by hand")
            assert (outcome.rows, outcome.status) == (2, "committed")
            assert [(row.how.value, row.key["w"]) for row in one.run(10).rows] == [("missing", "a ")]
        assert world.in_target("SELECT w, v FROM word ORDER BY w") == [("a", "bare"), ("b", "b")]
    assert follower.failed() == {}


def read_by_key(ours: str, theirs: str) -> None:
    """Reads a row for a repair, by a key of a type in the source and of one in the target; no source answers."""
    table = ReplicaTable("public", "t", "t", (ReplicaColumn("k", ours),), ("k",), "d", 0, ())
    kind = theirs.partition("(")[0]
    its = SnapshotTable("t", (SnapshotColumn("k", kind, theirs, False, "", ""),), ("k",), 0, 0)
    pair = paired_rows("public.t", PostgresRows(table), MariadbRows(its, ("TRUE",)), kind_into_mariadb)
    assert isinstance(pair, PairedRows)
    row = RowReport("public.t", {"k": "1"}, RowDifference.CHANGED, Explanation.NONE, 1, (), (), ())
    read_deltas("postgresql://nobody@127.0.0.1:1/x", "", {"public.t": alone(pair)}, [row], {"public.t": pair})


@pytest.mark.parametrize(("ours", "theirs"), [
    ("boolean", "tinyint(1)"), ("boolean", "varchar(5)"), ("bit(4)", "bit(4)"), ("text", "char(9)"),
    ("character varying(9)", "char(9)"), ("text", "varbinary(9)"), ("bytea", "binary(4)"), ("text", "uuid"),
    ("text", "int(11)"), ("text", "datetime(6)"), ("text", "date"), ("text", "inet6"), ("text", "double"),
])  # fmt: skip
def test_rows_whose_key_the_source_does_not_find_by_a_text_are_not_repaired(ours: str, theirs: str) -> None:
    told = rf"public\.t: rows are not repaired whose key .* by its text in the target \(k: {re.escape(ours)}\)"
    with pytest.raises(LogRequestError, match=told):
        read_by_key(ours, theirs)


@pytest.mark.parametrize(("ours", "theirs"), [
    ("integer", "int(11)"), ("numeric(9,3)", "decimal(9,3)"), ("real", "float"), ("real", "double"),
    ("text", "varchar(9)"), ("double precision", "double"), ("date", "datetime"),
    ("timestamp(3) with time zone", "datetime(3)"),
    ("timestamp without time zone", "date"), ("time without time zone", "time(6)"), ("uuid", "uuid"), ("inet", "inet6"),
    ("bytea", "varbinary(9)"), ("character(9)", "char(9)"), ("character(9)", "varchar(9)"), ("jsonb", "varchar(99)"),
])  # fmt: skip
def test_a_row_is_looked_for_by_a_key_that_the_source_finds_by_its_text(ours: str, theirs: str) -> None:
    with pytest.raises(SourceError):
        read_by_key(ours, theirs)


def test_a_comparison_that_is_stopped_has_no_result(source: SourceSlot, postgres: str, tmp_path: Path) -> None:
    one = repeated(configured(source, postgres, tmp_path))
    with replica(source, postgres, TABLES) as made, made.living():
        one.stop.set()
        with pytest.raises((StoppedError, TargetError), match="stopped"):
            one.compare()
    assert one.age() is None


def test_the_age_of_the_latest_result_follows_from_what_the_target_keeps(
    source: SourceSlot, postgres: str, tmp_path: Path
) -> None:
    one = repeated(configured(source, postgres, tmp_path))
    assert one.age() is None
    one.note(60.0, "away")
    assert one.age() is None
    keep(postgres, time.time() - 3_600)
    age = one.age()
    assert age is not None
    assert 3_590 < age < 3_900
    keep(postgres, time.time() + 3_600)
    assert one.age() == 0.0  # the clock of another host is ahead


def test_a_result_is_kept_beside_the_interval_and_the_trouble(
    source: SourceSlot, postgres: str, tmp_path: Path
) -> None:
    one = repeated(configured(source, postgres, tmp_path))
    one.note(60.0, "away")
    facts = read_replica(postgres, LOG)
    assert (facts.every, facts.trouble, facts.verdict) == (60.0, "away", "")
    with replica(source, postgres, TABLES) as made:
        run(source.url, FILL)
        made.catch_up(1)
        with made.living():
            report = one.compare()
    assert (report.verdict, report.rows) == ("equal", ())
    assert one.age() is not None
    facts = read_replica(postgres, LOG)
    assert (facts.every, facts.trouble, facts.verdict) == (60.0, "", "equal")
    one.note(None, None)
    facts = read_replica(postgres, LOG)
    assert (facts.every, facts.verdict) == (None, "equal")


def keep(url: str, ended: float) -> None:
    """Keeps a result in the target that ended at a time, in seconds since the epoch."""
    with psycopg.connect(url, autocommit=True) as connection:
        ledger = VerifyLedger(connection, LOG)
        ledger.begin()
        ledger.ask()
        ledger.note(replace(NO_OUTCOME, ended_at=datetime.fromtimestamp(ended, UTC).isoformat(), verdict="equal"))


def test_spark_is_started_only_for_what_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # without a Java, so that a start is refused at once
    with ExitStack() as opened:
        runners = _Runners(configured(NOWHERE, NOWHERE.url, tmp_path), threading.Event(), opened)
        assert isinstance(runners.of(0), ThreadItems)
        assert isinstance(runners.of(SMALL_BYTES), ThreadItems)
        with pytest.raises(SparkUnavailableError, match="Java 17 or newer is missing"):
            runners.of(SMALL_BYTES + 1)


def test_progress_is_told_now_and_then_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    told = _Told()
    told.look(VerifyProgress("comparing", 1, 7, 10))
    assert capsys.readouterr() == ("", "")
    told.next = 0.0
    told.look(VerifyProgress("comparing", 3, 7, 12_000))
    told.look(VerifyProgress("comparing", 4, 7, 13_000))
    assert capsys.readouterr() == ("", "comparing: 3 of 7 ranges, 12,000 rows\n")
    told.next = 0.0
    told.look(VerifyProgress("waiting"))
    assert capsys.readouterr() == ("", "waiting\n")
