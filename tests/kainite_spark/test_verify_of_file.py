"""The comparison that a settings file describes: what it refuses, what runs it, what it tells and what it leaves."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from kainite import settings
from kainite.base.errors import SettingsError, SparkUnavailableError, StoppedError, TargetError
from kainite.capture.mysql import same_place
from kainite.capture.mysql.command import PROGRAM as BINLOG_PROGRAM
from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.replication import SourceSlot
from kainite.operations.carrying_out import Operations
from kainite.replicate.repaired_rows import to_repair
from kainite.replicate.replica_facts import read_replica
from kainite.replicate.verify_ledger import NO_OUTCOME, VerifyLedger
from kainite.settings import Settings
from kainite_spark.verify.job import VerifyProgress
from kainite_spark.verify.runners import ThreadItems
from kainite_spark.verify_of_file import SMALL_BYTES, FileComparison, RepeatedFileComparison, _Runners, _Told
from support.binlog_loading import binlog_loading, following
from support.mariadb_source import source_database
from support.pgbouncer import pgbouncer
from support.postgresql_source import source
from support.replica import replica
from support.replicas import LOG, run

__all__ = ["source"]
TABLES = """
    CREATE TABLE account (id int PRIMARY KEY, owner text);
    CREATE TABLE line (id int PRIMARY KEY, v text);
"""
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
        assert found.connection.execute("SELECT current_setting('application_name')").fetchone() == ("kainite verify",)
    assert found.connection.closed


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
        ExitStack() as opened,
    ):
        options = {"extractorName": f"{BINLOG_PROGRAM} --source {url!r}", "extractorOffsetFile": "offset"}
        made = configured(NOWHERE, postgres, tmp_path, streamName="stream", **options)
        world.in_source("INSERT INTO account VALUES (1, 'one'), (2, 'two')")
        found = comparison(made, opened)
        assert found.run(10).verdict == "equal"
        found.connection.close()  # which holds the comparisons' lock
        world.in_target("UPDATE account SET owner = 'else' WHERE id = 2")
        report = repeated(made).compare()
        assert (report.verdict, report.tables[0].changed) == ("different", 1)
        monkeypatch.setattr(Operations, "log", property(lambda _: (follower.store, "0")))
        with ExitStack() as again:
            one = comparison(made, again, "account")
            outcome = one.repair(to_repair(one.run(10)), "by hand")
            assert (outcome.rows, outcome.status, one.run(10).verdict) == (1, "committed", "equal")
        assert repeated(made).age() is not None


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
