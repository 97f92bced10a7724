"""The way of rows by the kind of the source; test_replicate_cli.py goes that of PostgreSQL, with Spark."""

from __future__ import annotations

import threading
from pathlib import Path

from kainite import settings
from kainite.capture.mysql import command as mysql
from kainite.capture.postgresql import command as postgresql
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.ends import ReplicaEnds
from kainite.settings import Settings
from kainite_spark.load.binlog_copy import BinlogCopySource
from kainite_spark.load.snapshot_readers import SnapshotReaders
from kainite_spark.replicate_way import configured_source, copying


def configured(folder: Path, extractor: str) -> Settings:
    path = folder / "shop.properties"
    path.write_text(
        "applicationName = shop\nstreamName = shop\nextractorMode = cyclic\nextractorOffsets = kainite\n"
        f"extractorOffsetFile = shop.offset\ntarget = postgresql:///b\nextractorName = {extractor}\n"
    )
    return settings.load(path, needs=("applicationName",))


def test_the_extractor_says_the_kind_of_the_source(tmp_path: Path) -> None:
    ends = configured_source(
        configured(tmp_path, f"{postgresql.PROGRAM} --source postgresql:///a --slot s --publication p")
    )
    assert isinstance(ends, ReplicaEnds)
    found = configured(tmp_path, f"{mysql.PROGRAM} --source mariadb://a/shop")
    other = configured_source(found)
    assert isinstance(other, BinlogEnds)
    with copying(found, other, threading.Event()) as (source, runner):
        assert isinstance(source, BinlogCopySource)
        assert isinstance(runner, SnapshotReaders)
        assert source.ends is other
