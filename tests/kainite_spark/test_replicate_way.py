"""The way of rows by the kind of the source; test_replicate_cli.py goes that of PostgreSQL to its end."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kainite import settings
from kainite.capture.mysql import command as mysql
from kainite.capture.postgresql import command as postgresql
from kainite.replicate.any_ends import any_ends_of
from kainite.settings import Settings
from kainite_spark.driver.process_items import ProcessItems
from kainite_spark.driver.spark_items import SparkItems
from kainite_spark.load.binlog_copy import BinlogCopySource
from kainite_spark.load.copy_source import PostgresCopySource
from kainite_spark.load.snapshot_readers import SnapshotReaders
from kainite_spark.replicate_way import copying


def configured(folder: Path, extractor: str) -> Settings:
    path = folder / "shop.properties"
    path.write_text(
        "applicationName = shop\nstreamName = shop\nextractorMode = cyclic\nextractorOffsets = kainite\n"
        f"extractorOffsetFile = shop.offset\ntarget = postgresql:///b\nextractorName = {extractor}\n"
    )
    return settings.load(path, needs=("applicationName",))


def test_tables_of_mariadb_are_copied_by_processes_that_have_sessions(tmp_path: Path) -> None:
    found = configured(tmp_path, f"{mysql.PROGRAM} --source mariadb://a/shop")
    ends = any_ends_of(found)
    with copying(found, ends, threading.Event()) as (source, runner):
        assert isinstance(source, BinlogCopySource)
        assert isinstance(runner, SnapshotReaders)
        assert source.ends is ends


POSTGRESQL = f"{postgresql.PROGRAM} --source postgresql:///a --slot shop --publication shop"


def test_tables_of_postgresql_are_copied_by_processes_where_the_master_is_local(tmp_path: Path) -> None:
    found = overridden(configured(tmp_path, POSTGRESQL), "local[3]")
    ends = any_ends_of(found)
    with copying(found, ends, threading.Event()) as (source, runner):
        assert isinstance(source, PostgresCopySource)
        assert isinstance(runner, ProcessItems)
        assert runner.parallelism == 3


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_they_are_copied_by_sparks_tasks_with_any_other_master(tmp_path: Path) -> None:
    found = overridden(configured(tmp_path, POSTGRESQL), "local[2,4]")
    with copying(found, any_ends_of(found), threading.Event()) as (_, runner):
        assert isinstance(runner, SparkItems)
        assert runner.parallelism == 2
        for thread in [one for one in threading.enumerate() if one.name == "workers"]:
            thread.join()


def overridden(found: Settings, master: str) -> Settings:
    return replace(found, apply=replace(found.apply, master=master))
