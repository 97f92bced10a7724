"""Gives commands that load tables the source of a load, and what runs its steps, by the source's kind."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.keeper import keeper_process
from kainite.settings import Settings
from kainite_spark.cli import stopping
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.process_items import ProcessItems
from kainite_spark.driver.session import local_parallelism, spark_context
from kainite_spark.driver.spark_items import SparkItems
from kainite_spark.load.binlog_copy import BinlogCopySource
from kainite_spark.load.copy_source import CopySource, PostgresCopySource
from kainite_spark.load.rounds import StepRunner
from kainite_spark.load.runner import run_steps
from kainite_spark.load.snapshot_readers import MOST_READERS, SnapshotReaders


@contextmanager
def copying(
    configured: Settings, ends: ReplicaEnds | BinlogEnds, stop: threading.Event
) -> Iterator[tuple[CopySource, StepRunner]]:
    """Gives the source of a load, and what runs its steps.

    From PostgreSQL these are Spark's tasks, or processes of this host where the master is local; from MariaDB processes
    that have sessions.
    """
    if isinstance(ends, BinlogEnds):
        yield BinlogCopySource(ends), SnapshotReaders(min(os.cpu_count() or 1, MOST_READERS))
        return
    with closing(keeper_process()) as keeper:
        keeper.begin()  # beside the start of what runs the steps
        with _runner(configured, stop) as runner:
            yield PostgresCopySource(ends, keeper=keeper), runner


@contextmanager
def _runner(configured: Settings, stop: threading.Event) -> Iterator[StepRunner]:
    """Gives what runs the steps of PostgreSQL; its processes load their modules beside the consistent point."""
    apply, grace = configured.apply, configured.child.shutdown_grace
    if (parallelism := local_parallelism(apply.master)) is not None:
        with closing(ProcessItems(parallelism, stop, grace, run_steps)) as processes:
            processes.begin()
            yield processes
        return
    name = f"kainite replicate {configured.leases.application}"
    with spark_context(apply.master, name, stop, apply.python) as context, stopping(stop):
        limits = SparkLimits(apply.stall, float("inf"), grace)
        runner = SparkItems(context, limits, stop, "kainite replicate load", run_steps)
        runner.begin()
        yield runner
