"""Kills the workers of a Spark cluster, starts new ones, and tells when the driver has executors on them."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))  # the cluster is the one of the tests

from support.spark_cluster import SparkCluster, spark_cluster

__all__ = ["SparkCluster", "has_executor", "kill_workers", "spark_cluster"]

_REGISTERED: Final = "Successfully registered with driver"


def kill_workers(cluster: SparkCluster) -> None:
    """Kills all workers with their executors, and the Python processes of these, as if their hosts had died."""
    python = [child for pid in cluster.executors() for child in psutil.Process(pid).children(recursive=True)]
    for name in cluster.workers():
        cluster.kill(name)
    for process in python:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def has_executor(folder: Path, workers: list[str]) -> bool:
    """Returns whether the driver has an executor of one of these workers.

    Args:
        folder: the cluster's folder.
        workers: their names.
    """
    said = (path for name in workers for path in (folder / name).glob("app-*/*/stderr"))
    return any(_REGISTERED in path.read_text(errors="replace") for path in said)
