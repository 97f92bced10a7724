"""The way of rows by the kind of the source; test_replicate_cli.py goes that of PostgreSQL, with Spark."""

from __future__ import annotations

import threading
from pathlib import Path

from kainite import settings
from kainite.capture.mysql import command as mysql
from kainite.replicate.any_ends import any_ends_of
from kainite.settings import Settings
from kainite_spark.load.binlog_copy import BinlogCopySource
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
