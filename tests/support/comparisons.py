"""Compares a source with its target as ``kainite verify`` does it, with threads in the place of Spark."""

from __future__ import annotations

from typing import Any

from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S
from kainite.replicate.ends import ReplicaEnds, is_mariadb
from kainite.replicate.load_target import load_session
from kainite.replicate.verify_report import VerifyReport
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.verify.compare_source import CompareSource, PostgresCompareSource
from kainite_spark.verify.job import VerifyJob
from kainite_spark.verify.runners import ItemRunner, ThreadItems
from support.replicas import tables_of


def compared(
    ends: ReplicaEnds, runner: ItemRunner | None = None, lock_wait: float = LOCK_WAIT_S, **more: Any
) -> VerifyReport:
    """Returns what a comparison finds."""
    given = runner or ThreadItems()
    return compared_by(PostgresCompareSource(ends, lambda _: given, lock_wait), **more)


def compared_by(source: CompareSource, **more: Any) -> VerifyReport:
    """Returns what a comparison of a source with its target finds."""
    url = source.ends.target
    tables = reflect(url) if is_mariadb(url) else tables_of(url)
    with load_session(url, "kainite verify") as connection:
        return VerifyJob(source, connection, tables, **({"wait": 60.0} | more)).run()
