"""Tells how far the load of a MariaDB target has come, and those of single tables, from its ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pymysql

from kainite.capture.places import format_place
from kainite.replicate import mariadb_ledger as ledger
from kainite.replicate import mariadb_table_ledger as table_ledger
from kainite.replicate.mariadb_load_ledger import found_mariadb_load
from kainite.replicate.status import ReplicaStatus, TableState, TableStatus, copied_table, status_with
from kainite.replicate.verify_ledger import latest_outcome
from kainite.targets.mariadb.rows import rows_if_there, rows_of


def mariadb_status(connection: pymysql.connections.Connection, log_partition: str) -> ReplicaStatus:
    """Returns the status of a target.

    Args:
        connection: a session with the target.
        log_partition: the log's name there.
    """
    load, verified = found_mariadb_load(connection, log_partition), latest_outcome(connection, log_partition)
    if load is None:
        return ReplicaStatus(None, consistent=False, verified=verified)
    copied = rows_of(connection, ledger.COPIED, log_partition)
    loaded = {f"{row[0]}.{row[1]}": copied_table(load.state, *row) for row in copied}
    tables = loaded | _own_tables(connection, log_partition, load.source)
    checks = rows_of(connection, ledger.CHECKED, log_partition)
    refused = [f"{schema}.{name}: {cause}" for schema, name, _, cause in checks if cause is not None]
    keys = rows_if_there(connection, table_ledger.FOREIGN_KEYS_LEFT, log_partition)
    found = status_with(
        load, [tables[name] for name in sorted(tables)], len(checks), sum(bool(done) for _, _, done, _ in checks),
        [*refused, *(f"{name}: {cause}" for name, cause in keys if cause)],
    )  # fmt: skip
    return replace(found, foreign_keys=tuple(name for name, _ in keys), verified=verified)


def _own_tables(
    connection: pymysql.connections.Connection, log_partition: str, source: str | None
) -> dict[str, TableStatus]:
    """Returns the tables that were loaded by themselves, or are being, by their names."""
    steps = {
        (row[0], row[1]): row[2:]
        for row in rows_of(connection, table_ledger.COPIED_BY_THEMSELVES, *table_ledger.own_loads(log_partition))
    }
    return {
        f"{schema}.{name}": _own_table(f"{schema}.{name}", TableState(state), position, cause, held,
                                       steps.get((schema, name), (0, 0, 0, 0)), source)
        for schema, name, state, position, _, cause, held in rows_if_there(
            connection, table_ledger.READ_ALL, log_partition)
        if state != TableState.LIVE or (schema, name) in steps
    }  # fmt: skip


def _own_table(
    name: str, state: TableState, position: Any, cause: str | None, held: int, steps: Sequence[int], source: str | None
) -> TableStatus:
    place = None if position is None else format_place(int(position), source)
    ranges, done, rows, size = steps
    return TableStatus(name, state, ranges, done, rows, size, cause, held, place)
