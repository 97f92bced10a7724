"""Asks the MariaDB target of a replica for what ``kainite status``, ``/health`` and the metrics tell of it."""

from __future__ import annotations

import time
from contextlib import closing

import pymysql

from kainite.replicate import mariadb_ledger as ledger
from kainite.replicate.mariadb_status import mariadb_status
from kainite.replicate.replica_facts import ANSWER_S, facts_of
from kainite.replicate.status import ReplicaStatus
from kainite.replicate.verify_ledger import latest_outcome
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import line_of, rows_if_there
from kainite.verdict.facts import ReplicaFacts


def read_mariadb_replica(url: str, log_partition: str) -> ReplicaFacts:
    """Returns what a target tells of its load and of its latest comparison.

    Args:
        url: the target.
        log_partition: the log's name there.
    """
    try:
        with closing(connect(url, ANSWER_S, ANSWER_S)) as connection:
            # A role of an apply job alone need not see the ledger's other tables.
            if rows_if_there(connection, ledger.STATE, log_partition):
                status = mariadb_status(connection, log_partition)
            else:
                verified = latest_outcome(connection, log_partition)
                status = ReplicaStatus(None, consistent=False, verified=verified)
            return facts_of(status, time.time())
    except pymysql.Error as error:
        return ReplicaFacts(error=line_of(error))
