"""The row of the fence in MariaDB, as the driver of an apply job changes it, in a transaction of its own.

Whoever advances the fence locks its row, which waits for the transactions that tasks have open, and then the rows of
``kainite_prepared``, which waits for those that are prepared (:mod:`~kainite_spark.targets.mariadb.prepared`).
"""

from __future__ import annotations

from collections.abc import Collection

import pymysql

from kainite_spark.targets.fence import Fence, fence_lost, outranked
from kainite_spark.targets.mariadb import ledger
from kainite_spark.targets.mark import TargetMark, check_mark


def raise_generation(
    connection: pymysql.connections.Connection, log_partition: str, generation: int, mark: TargetMark | None
) -> None:
    """Takes the target over for a generation; raises TargetFencedError if a higher one has it."""
    found = _locked(connection, log_partition, mark)
    if found is None:
        execute(connection, ledger.NEW_FENCE, log_partition, generation)
    elif found[0] > generation:
        raise outranked(log_partition, generation)
    elif found[0] < generation:  # the same generation comes again when its driver lost the answer
        execute(connection, ledger.ADVANCE, generation, -1, log_partition)


def advance(connection: pymysql.connections.Connection, fence: Fence, mark: TargetMark | None, *, lowest: int) -> None:
    """Advances the fence if its micro-batch is not above ``lowest``; raises TargetFencedError if it is."""
    found = _locked(connection, fence.log_partition, mark)
    if found is None or found[0] != fence.generation or found[1] > lowest:
        raise fence_lost(fence)
    execute(connection, ledger.ADVANCE, fence.generation, fence.micro_batch, fence.log_partition)


def applied(connection: pymysql.connections.Connection, log_partition: str, tids: Collection[int]) -> set[int]:
    """Returns which of these units are acknowledged."""
    if not tids:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(ledger.APPLIED, (log_partition, tuple(tids)))
        return {tid for (tid,) in cursor.fetchall()}


def execute(connection: pymysql.connections.Connection, sql: str, *values: object) -> int:
    """Executes a statement; returns how many rows it met."""
    with connection.cursor() as cursor:
        return cursor.execute(sql, values)


def _locked(
    connection: pymysql.connections.Connection, log_partition: str, mark: TargetMark | None
) -> tuple[int, int] | None:
    """Locks the fence's row, when nothing is open or prepared under it any more; returns it.

    Raises:
        TargetWentBackError: the target is behind the mark.
    """
    with connection.cursor() as cursor:
        cursor.execute(ledger.LOCK_FENCE, (log_partition,))
        row = cursor.fetchone()
    # Behind the fence's lock: whoever noted something after this has passed the fence after this, too.
    if execute(connection, ledger.HOLDERS, log_partition):
        execute(connection, ledger.FORGET_HOLDERS, log_partition)
    found = None if row is None else (int(row[0]), int(row[1]))
    if mark is not None:
        check_mark(log_partition, mark, found, len(applied(connection, log_partition, mark.tids)))
    return found
