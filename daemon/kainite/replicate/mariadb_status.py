"""Tells how far the load of a MariaDB target has come, from its ledger."""

from __future__ import annotations

from dataclasses import replace

import pymysql

from kainite.replicate import mariadb_ledger as ledger
from kainite.replicate.mariadb_load_ledger import found_mariadb_load
from kainite.replicate.status import ReplicaStatus, copied_table, status_with
from kainite.replicate.verify_ledger import latest_outcome
from kainite.targets.mariadb.rows import rows_of


def mariadb_status(connection: pymysql.connections.Connection, log_partition: str) -> ReplicaStatus:
    """Returns the status of a target.

    Args:
        connection: a session with the target.
        log_partition: the log's name there.
    """
    load, verified = found_mariadb_load(connection, log_partition), latest_outcome(connection, log_partition)
    if load is None:
        return ReplicaStatus(None, consistent=False, verified=verified)
    tables = [copied_table(load.state, *row) for row in rows_of(connection, ledger.COPIED, log_partition)]
    checks = rows_of(connection, ledger.CHECKED, log_partition)
    refused = [f"{schema}.{name}: {cause}" for schema, name, _, cause in checks if cause is not None]
    found = status_with(load, tables, len(checks), sum(bool(done) for _, _, done, _ in checks), refused)
    return replace(found, verified=verified)
