"""``kainite replicate add`` and ``reload`` with wrong input, and from MariaDB; test_replicate_cli.py has more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kainite.capture.mysql import command as mysql
from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.replication import SourceSlot
from kainite.cli.main import main
from support.live_binlog import live_binlog
from support.live_mariadb import FOREIGN_KEYS, live_from_mariadb
from support.live_replica import DRIFT, LiveReplica
from support.mariadb_source import source_database
from support.postgresql_source import source
from support.waiting import eventually

__all__ = ["source"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reload", "none"], "the source has no table public.none"),
        (["add", "own.item"], "the source has no table own.item"),
        (["reload", "item"], "the target has no table public.item: kainite replicate add"),
        (["reload"], "Missing argument 'TABLE...'"),
    ],
)
def test_a_table_that_is_not_there_is_told_before_spark_starts(
    source: SourceSlot, postgres: str, tmp_path: Path, words: list[str], said: str
) -> None:
    path = tmp_path / "shop.properties"
    path.write_text(
        "applicationName = shop\nstreamName = shop\nextractorMode = cyclic\nextractorOffsets = kainite\n"
        f"target = {postgres}\nextractorName = {PROGRAM} --source {source.url!r} --slot shop --publication changes\n"
    )
    result = CliRunner().invoke(main, ["replicate", *words, "-p", str(path)])
    assert result.exit_code != 0
    assert said in result.output


def file_of(live: LiveReplica, folder: Path) -> Path:
    """Writes the settings file of a live replica; returns its path."""
    path = folder / "shop.properties"
    path.write_text(
        "applicationName = shop\nstreamName = stream\nextractorMode = cyclic\nextractorOffsets = kainite\n"
        f"extractorOffsetFile = {folder}/offset\nlogTableName = log\ntarget = {live.loading.ends.target}\n"
        f"extractorName = {mysql.PROGRAM} --source {live.loading.ends.source.url}\n"
    )
    return path


def kainite(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["replicate", *words])
    return result.exit_code, result.output


def test_tables_of_mariadb_are_loaded_again_and_one_that_fails_keeps_no_other_waiting(
    mariadb_source_server: str, postgres: str, tmp_path: Path
) -> None:
    with source_database(mariadb_source_server) as url, live_binlog(url, postgres, tmp_path) as live:
        file = str(file_of(live, tmp_path))
        live.traffic.go(10)
        eventually(lambda: live.applied(10))
        live.loading.in_target(DRIFT, "DELETE FROM entry WHERE n % 3 = 0")
        live.loading.in_target("ALTER TABLE account ADD CONSTRAINT few CHECK (id < 1000) NOT VALID")
        code, told = kainite("reload", "account", "public.entry", "-p", file)
        assert code == 1
        assert "public.account: " in told
        assert "few" in told
        assert {one.table: str(one.state) for one in live.loading.status().tables} == {
            "public.account": "failed", "public.counter": "live", "public.entry": "live", "public.journal": "live"
        }  # fmt: skip
        live.loading.in_target("ALTER TABLE account DROP CONSTRAINT few")
        code, told = kainite("reload", "account", "-p", file, "--json")
        assert code == 0, told
        assert json.loads(told.splitlines()[-1])["consistent"]
        live.settle()
        for words, said in (
            (("add", "entry"), "public.entry is live already: kainite replicate reload"),
            (("reload", "none"), "the source has no table none"),
        ):
            code, told = kainite(*words, "-p", file)
            assert code == 1
            assert said in told


def test_tables_of_mariadb_are_loaded_again_into_mariadb(
    mariadb_source_server: str, mariadb_server: str, tmp_path: Path
) -> None:
    with (
        source_database(mariadb_source_server) as url,
        live_from_mariadb(url, mariadb_server, tmp_path) as live,
    ):
        file = str(file_of(live, tmp_path))
        live.traffic.go(10)
        eventually(lambda: live.applied(10))
        live.loading.in_target(DRIFT, "DELETE FROM entry WHERE n % 3 = 0")
        code, told = kainite("reload", "account", "public.entry", "-p", file, "--json")
        assert code == 0, told
        assert json.loads(told.splitlines()[-1])["consistent"]
        live.settle()
        for words, said in (
            (("add", "entry"), "public.entry is live already: kainite replicate reload"),
            (("reload", "none"), "the source has no table none"),
        ):
            code, told = kainite(*words, "-p", file)
            assert code == 1
            assert said in told


def test_a_table_that_another_log_writes_is_refused_before_anything_is_changed(
    mariadb_source_server: str, mariadb_server: str, tmp_path: Path
) -> None:
    with (
        source_database(mariadb_source_server) as url,
        live_from_mariadb(url, mariadb_server, tmp_path) as live,
    ):
        path = file_of(live, tmp_path)
        live.loading.in_target("INSERT INTO kainite_log_table VALUES ('public.entry', 'other/0', 'other/0')"
                               " ON DUPLICATE KEY UPDATE log = 'other/0'")  # fmt: skip
        code, told = kainite("reload", "entry", "-p", str(path))
        assert code == 1
        assert "public.entry of the target is written by the log other/0" in told
        assert live.state("entry") == "live"
        live.loading.in_target("DELETE FROM kainite_log_table")
        with path.open("a") as file:
            file.write("targetSharedTables = entry\n")
        before = live.loading.in_target("SELECT COUNT(*) FROM entry")
        live.loading.in_target("SET SESSION foreign_key_checks = 0; INSERT INTO entry VALUES (4711, 1, 1)")
        for words in (("reload", "entry"), ("load", "--anew")):
            code, told = kainite(*words, "-p", str(path))
            assert code == 1
            assert "public.entry is named in targetSharedTables" in told
        assert live.loading.in_target("SELECT COUNT(*) FROM entry") == [(before[0][0] + 1,)]
        assert live.state("entry") == "live"
        assert live.loading.in_target(FOREIGN_KEYS) == [("entry_giver",)]
        assert live.loading.status().consistent
