"""Gives commands that load tables both ends of a settings file, and the way between them, by the source's kind."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kainite.replicate.binlog_ends import BinlogEnds, binlog_ends_of, has_binlog_source
from kainite.replicate.configured_ends import ends_of
from kainite.replicate.ends import ReplicaEnds
from kainite.settings import Settings
from kainite_spark.cli import stopping
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.session import spark_context
from kainite_spark.driver.spark_items import SparkItems
from kainite_spark.load.binlog_copy import BinlogCopySource
from kainite_spark.load.copy_source import CopySource, PostgresCopySource
from kainite_spark.load.rounds import StepRunner
from kainite_spark.load.runner import run_steps
from kainite_spark.load.snapshot_readers import MOST_READERS, SnapshotReaders


def configured_source(configured: Settings) -> ReplicaEnds | BinlogEnds:
    """Returns the source, and its target, that a settings file connects; raises SettingsError."""
    return binlog_ends_of(configured) if has_binlog_source(configured) else ends_of(configured)


@contextmanager
def copying(
    configured: Settings, ends: ReplicaEnds | BinlogEnds, stop: threading.Event
) -> Iterator[tuple[CopySource, StepRunner]]:
    """Gives the source of a load, and what runs its steps: Spark, or processes of this host that have sessions."""
    if isinstance(ends, BinlogEnds):
        yield BinlogCopySource(ends), SnapshotReaders(min(os.cpu_count() or 1, MOST_READERS))
        return
    apply, name = configured.apply, f"kainite replicate {configured.leases.application}"
    with spark_context(apply.master, name, stop, apply.python) as context, stopping(stop):
        limits = SparkLimits(apply.stall, float("inf"), configured.child.shutdown_grace)
        runner = SparkItems(context, limits, stop, "kainite replicate load", run_steps)
        runner.begin()  # meanwhile the driver makes the consistent point
        yield PostgresCopySource(ends), runner
