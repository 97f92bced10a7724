"""Lets a load of everything take the place of a target that went back, or that is another one.

The log has units as committed that such a target lacks, so every apply job refuses it
(:mod:`kainite_spark.targets.mark`). A load of everything brings their rows: what is committed in the log committed in
the source before the load's consistent point, provided that nobody says so of further units after that. An apply job
that still writes to the former target would. So the load first mounts the outcomes partition, which shuts out every
apply job of before, then closes the target's fence under the generation of that mount, and only then makes its point.

What a crash leaves:

* before the mount        nothing has happened;
* behind the mount        the target is behind the mark, so the next load does the same; units that a job of before has
                          committed unsaid are in progress in the log, and left out or applied as all others;
* behind the fence        a load that has begun, as any other.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psycopg

from kainite.base.errors import LogUnavailableError, TargetWentBackError
from kainite.log.contract import LogStore
from kainite.log.state.outcomes import outcomes_partition
from kainite_spark.driver.outcomes import latest_mark, mount_outcomes
from kainite_spark.targets.mark import TargetMark, check_mark
from kainite_spark.targets.postgresql import ledger

if TYPE_CHECKING:
    import pymysql

    from kainite.replicate.load_target import LoadSession


def take_over(
    store: LogStore,
    partition: str,
    connection: LoadSession,
    ledger_name: str,
    owner: str,
    lease: float,
    stop: threading.Event,
) -> int | None:
    """Shuts out every apply job of before, if the target is behind what the log has as committed.

    Args:
        store, partition: the log.
        connection: a session with the target, which has Kainite's tables.
        ledger_name: the log's name in the target.
        owner: the name of this process, which no other has.
        lease: seconds without a heartbeat after which an apply job is taken for dead.
        stop: ends the wait for one.

    Returns:
        The generation under which the target's fence is to be closed; None where the target is not behind.

    Raises:
        LogUnavailableError: the log's store does not answer, or ``stop`` was set.
    """
    name = outcomes_partition(partition)
    head = store.read_head(name)
    mark = None if head is None else latest_mark(store, name, head.low_water_mark)[0]
    if mark is None or not _is_behind(connection, ledger_name, mark):
        return None
    mounted = mount_outcomes(store, name, owner, lease, stop)
    if mounted is None:
        raise LogUnavailableError("stopped while an apply job held the log's outcomes")
    with mounted as outcomes:
        return outcomes.generation


def _is_behind(connection: LoadSession, ledger_name: str, mark: TargetMark) -> bool:
    if isinstance(connection, psycopg.Connection):
        found = connection.execute("SELECT generation, micro_batch FROM kainite_fence WHERE log_partition = %s",
                                   (ledger_name,)).fetchone()  # fmt: skip
        acknowledged = connection.execute(ledger.APPLIED, (ledger_name, list(mark.tids))).rowcount
    else:
        found, acknowledged = _of_mariadb(connection, ledger_name, mark)
    try:
        check_mark(ledger_name, mark, found, acknowledged)
    except TargetWentBackError:
        return True
    return False


def _of_mariadb(
    connection: pymysql.connections.Connection, ledger_name: str, mark: TargetMark
) -> tuple[tuple[int, int] | None, int]:
    """Returns the fence of a MariaDB target, and how many of a mark's units it has acknowledged."""
    from kainite_spark.targets.mariadb import ledger as of_mariadb

    with connection.cursor() as cursor:
        cursor.execute(of_mariadb.FENCE, (ledger_name,))
        row = cursor.fetchone()
        acknowledged = cursor.execute(of_mariadb.APPLIED, (ledger_name, tuple(mark.tids))) if mark.tids else 0
    return None if row is None else (int(row[0]), int(row[1])), acknowledged
