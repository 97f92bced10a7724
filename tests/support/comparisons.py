"""Compares a source with its target as ``kainite verify`` does it, with threads in the place of Spark."""

from __future__ import annotations

from typing import Any

import psycopg

from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.verify_report import VerifyReport
from kainite_spark.verify.job import VerifyJob
from kainite_spark.verify.runners import ItemRunner, ThreadItems
from support.replicas import tables_of


def compared(ends: ReplicaEnds, runner: ItemRunner | None = None, **more: Any) -> VerifyReport:
    """Returns what a comparison finds."""
    with psycopg.connect(ends.target, autocommit=True) as connection:
        given = runner or ThreadItems()
        return VerifyJob(ends, connection, lambda _: given, tables_of(ends.target), **({"wait": 60.0} | more)).run()
