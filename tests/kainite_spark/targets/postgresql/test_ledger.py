"""Kainite's own tables in PostgreSQL: the fence's statements and the acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from kainite_spark.targets.postgresql import ledger


@pytest.fixture
def database(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres) as connection:
        for create in (ledger.CREATE_APPLIED, ledger.CREATE_FENCE) * 2:
            connection.execute(create)
        yield connection


def take_over(database: psycopg.Connection, generation: int) -> bool:
    return database.execute(ledger.RAISE_GENERATION, ("0", generation)).rowcount == 1


def advance(database: psycopg.Connection, sql: bytes, generation: int, micro_batch: int) -> bool:
    return database.execute(sql, (micro_batch, "0", generation, micro_batch)).rowcount == 1


def begin(database: psycopg.Connection, generation: int, micro_batch: int) -> bool:
    return advance(database, ledger.BEGIN_MICRO_BATCH.encode(), generation, micro_batch)


def fence(database: psycopg.Connection) -> list[tuple[int, int]]:
    return database.execute("SELECT generation, micro_batch FROM kainite_fence").fetchall()


def test_a_higher_generation_takes_over_and_begins_anew(database: psycopg.Connection) -> None:
    assert take_over(database, 1)
    assert begin(database, 1, 7)
    assert take_over(database, 1)
    assert fence(database) == [(1, 7)]
    assert take_over(database, 2)
    assert fence(database) == [(2, -1)]
    assert not take_over(database, 1)
    assert not begin(database, 1, 8)


@pytest.mark.parametrize(("micro_batch", "begins", "closes"), [(6, False, False), (7, True, False), (8, True, True)])
def test_micro_batches_never_go_back(
    database: psycopg.Connection, micro_batch: int, begins: bool, closes: bool
) -> None:
    take_over(database, 1)
    begin(database, 1, 7)
    assert advance(database, ledger.CLOSE_MICRO_BATCH.encode(), 1, micro_batch) is closes
    assert begin(database, 1, micro_batch) is begins


@pytest.mark.parametrize(("held", "written"), [((1, 7, 0), 2), ((1, 6, 0), 0), ((2, 7, 0), 0), ((1, 7, 1), 0)])
def test_only_the_holder_of_the_fence_acknowledges(
    database: psycopg.Connection, held: tuple[int, int, int], written: int
) -> None:
    take_over(database, 1)
    begin(database, 1, 7)
    units = ledger.array_of_numbers((3, 4)), ledger.array_of_texts(("a", "b"))
    assert database.execute(ledger.ACKNOWLEDGE, ("0", *held, "0", *units)).rowcount == written
    assert len(database.execute(ledger.APPLIED, ("0", ledger.array_of_numbers((3, 4, 5)))).fetchall()) == written


@pytest.mark.parametrize("texts", [(), ("",), ('a"b', "\\", '\\"', "{,}", "NULL", " \n\t ", "%s", "é €")])
def test_an_array_has_whatever_texts_it_was_made_of(database: psycopg.Connection, texts: tuple[str, ...]) -> None:
    row = database.execute("SELECT %s::text[]", (ledger.array_of_texts(texts),)).fetchone()
    assert row == (list(texts),)


def test_trim_deletes_only_below_and_only_in_its_log_partition(database: psycopg.Connection) -> None:
    rows = [("0", 1, "a"), ("0", 2, "b"), ("0", 3, "c"), ("1", 1, "d")]
    sql = "INSERT INTO kainite_applied (log_partition, transaction_id, uow) VALUES (%s, %s, %s)"
    database.cursor().executemany(sql, rows)
    assert database.execute(ledger.TRIM, ("0", 3)).rowcount == 2
    left = database.execute("SELECT log_partition, transaction_id FROM kainite_applied ORDER BY 1, 2").fetchall()
    assert left == [("0", 3), ("1", 1)]
