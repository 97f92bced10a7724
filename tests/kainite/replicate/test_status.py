"""The status of a target, from its ledger."""

from __future__ import annotations

import psycopg
import pytest

from kainite.replicate import ledger
from kainite.replicate.ledger import LoadState
from kainite.replicate.status import ReplicaStatus, TableState, one_line, status_of


def filled(connection: psycopg.Connection, state: str) -> None:
    for statement in ledger.CREATE:
        connection.execute(statement)
    connection.execute(
        "INSERT INTO kainite_load (log_partition, generation, state, position, source, began_at)"
        " VALUES ('log/0', 1, %s, '0/10', '7/shop', CURRENT_TIMESTAMP - interval '10 s')",
        [state],
    )
    connection.execute("""
        INSERT INTO kainite_load_step VALUES
            ('log/0', 1, 1, 's', 'copied', '', 10, 1000, NULL, CURRENT_TIMESTAMP),
            ('log/0', 2, 1, 's', 'half', '', 10, 1000, NULL, CURRENT_TIMESTAMP),
            ('log/0', 3, 1, 's', 'half', '', NULL, NULL, NULL, NULL),
            ('log/0', 4, 1, 's', 'bad', '', NULL, NULL, 'no such column', NULL),
            ('log/0', 5, 1, 's', 'waits', '', NULL, NULL, NULL, NULL),
            ('log/0', 1000000000, 1000000, 's', 'key', '', NULL, NULL, 'is not unique', NULL),
            ('log/0', 1000000001, 1000000, 's', 'key', '', 0, 0, NULL, CURRENT_TIMESTAMP)""")


def test_tables_and_sums_are_told(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        assert status_of(connection, "log/0") == ReplicaStatus(None, consistent=False)
        filled(connection, "loading")
        found = status_of(connection, "log/0")
    assert {table.table: table.state for table in found.tables} == {
        "s.copied": TableState.COPIED, "s.half": TableState.LOADING, "s.bad": TableState.FAILED,
        "s.waits": TableState.WAITING,
    }  # fmt: skip
    assert (found.ranges, found.ranges_done, found.rows, found.bytes) == (5, 2, 20, 2000)
    assert (found.statements, found.statements_done, found.refused) == (2, 1, ("s.key: is not unique",))
    assert (found.consistent, found.position, found.source) == (False, "0/10", "7/shop")
    assert found.seconds is not None
    assert found.seconds_left == pytest.approx(found.seconds * 3 / 2)
    assert one_line(found).startswith("loading: 2 of 5 ranges, 20 rows, 0.0 MiB, 1 of 2 keys and indexes in 1")
    assert found.as_json()["tables"][0]["table"] == "s.bad"


def test_a_live_target_is_consistent(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        filled(connection, "live")
        connection.execute("UPDATE kainite_load SET live_at = began_at + interval '4 s'")
        found = status_of(connection, "log/0")
    assert (found.state, found.consistent, found.seconds, found.seconds_left) == (LoadState.LIVE, True, 4.0, None)
    assert {table.state for table in found.tables} == {TableState.LIVE}
    assert one_line(ReplicaStatus(None, consistent=False)) == "not loaded"
