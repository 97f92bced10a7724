"""Kainite's own tables in a target: the fence's statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from kainite_spark.targets.sqlite import ledger


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for create in (ledger.CREATE_APPLIED, ledger.CREATE_FENCE) * 2:
            connection.execute(create)
        yield connection


def take_over(database: sqlite3.Connection, generation: int) -> bool:
    return database.execute(ledger.RAISE_GENERATION, ("0", generation)).rowcount == 1


def begin(database: sqlite3.Connection, generation: int, micro_batch: int) -> bool:
    values = (micro_batch, "0", generation, micro_batch)
    return database.execute(ledger.BEGIN_MICRO_BATCH, values).rowcount == 1


def fence(database: sqlite3.Connection) -> tuple[int, int]:
    found: tuple[int, int] = database.execute("SELECT generation, micro_batch FROM kainite_fence").fetchone()
    return found


def test_a_higher_generation_takes_over_and_begins_anew(database: sqlite3.Connection) -> None:
    assert take_over(database, 1)
    assert begin(database, 1, 7)
    assert take_over(database, 2)
    assert fence(database) == (2, -1)
    assert not take_over(database, 1)
    assert not begin(database, 1, 8)
    assert fence(database) == (2, -1)


def test_the_same_generation_retains_its_micro_batch(database: sqlite3.Connection) -> None:
    assert take_over(database, 1)
    assert begin(database, 1, 7)
    assert take_over(database, 1)
    assert fence(database) == (1, 7)


@pytest.mark.parametrize(("micro_batch", "allowed"), [(6, False), (7, True), (8, True)])
def test_micro_batches_never_go_back(database: sqlite3.Connection, micro_batch: int, allowed: bool) -> None:
    take_over(database, 1)
    begin(database, 1, 7)
    assert begin(database, 1, micro_batch) is allowed


def test_trim_deletes_only_below_and_only_in_its_log_partition(database: sqlite3.Connection) -> None:
    rows = [("0", 1, "a"), ("0", 2, "b"), ("0", 3, "c"), ("1", 1, "d")]
    database.executemany("INSERT INTO kainite_applied (log_partition, transaction_id, uow) VALUES (?, ?, ?)", rows)
    assert database.execute(ledger.TRIM, ("0", 3)).rowcount == 2
    left = database.execute("SELECT log_partition, transaction_id FROM kainite_applied ORDER BY 1, 2").fetchall()
    assert left == [("0", 3), ("1", 1)]
