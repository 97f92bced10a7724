"""A transaction that was made for other states of the tables, or by a driver that was shut out, writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from kainite.base.errors import TargetFencedError
from kainite.log.format.deltas import dump_deltas
from kainite.replicate import ledger, table_ledger
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.held_deltas import NewUnits
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql.claims import claim_of
from kainite_spark.targets.postgresql.session import PostgresSession
from kainite_spark.targets.postgresql.target import PostgresTarget

FENCE = Fence("log/0", 1, 0)
PLACE = ("log/0", "public", "item")


def unit(tid: int) -> Unit:
    return Unit(tid, f"pg-7-0/{tid}0", tuple(Delta(name, Operation.INSERT, {"id": tid}, {"id": tid}, {})
                                             for name in ("item", "other")))  # fmt: skip


@pytest.fixture
def target(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)")
        for statement in (*ledger.CREATE, *table_ledger.CREATE):
            connection.execute(statement)
        yield connection


@pytest.fixture
def session(target: psycopg.Connection, postgres: str) -> Iterator[PostgresSession]:
    catalogue = reflect(postgres)
    with closing(open_target(postgres, catalogue)) as opened:
        assert isinstance(opened, PostgresTarget)
        opened.prepare("log/0", catalogue)
        opened.raise_generation("log/0", 1)
        opened.begin_micro_batch(FENCE)
        with closing(opened.connect()) as session:
            yield session


def rows(target: psycopg.Connection) -> tuple[list[int], list[int], list[str]]:
    items, others = ([row[0] for row in target.execute(f"SELECT id FROM {name} ORDER BY 1".encode())]
                     for name in ("item", "other"))  # fmt: skip
    return items, others, [row[0] for row in target.execute("SELECT uow FROM kainite_held_delta ORDER BY place")]


def test_a_session_that_knew_the_tables_before_holds_and_writes_as_they_are_now(
    target: psycopg.Connection, session: PostgresSession
) -> None:
    session.apply(FENCE, [unit(1)])
    with target.transaction():
        target.execute(table_ledger.RAISE_VERSION, ["log/0"])
        target.execute(table_ledger.SET_LOADING, PLACE)
    session.apply(FENCE, [unit(2)])
    session.apply_in_source_order(FENCE, unit(3))
    assert rows(target) == ([1], [1, 2, 3], ["pg-7-0/20", "pg-7-0/30"])
    with target.transaction():
        target.execute(table_ledger.RAISE_VERSION, ["log/0"])
        target.execute("UPDATE kainite_load_table SET state = 'live', position = '0/40'")
    session.apply(FENCE, [unit(4)])
    assert rows(target) == ([1, 4], [1, 2, 3, 4], ["pg-7-0/20", "pg-7-0/30"])
    assert session.applied("log/0", [1, 2, 3, 4, 5]) == {1, 2, 3, 4}


def test_states_do_not_change_under_a_transaction_that_was_made_for_them(
    target: psycopg.Connection, session: PostgresSession, postgres: str
) -> None:
    claim = claim_of(FENCE, [unit(1)], NewUnits([unit(1)]), 0)
    with psycopg.connect(postgres) as task:
        assert task.execute(*claim.statement).rowcount == claim.rows
        target.execute("SET lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            target.execute(table_ledger.RAISE_VERSION, ["log/0"])
    target.execute(table_ledger.RAISE_VERSION, ["log/0"])
    with psycopg.connect(postgres) as task:
        task.rollback()
        assert task.execute(*claim_of(FENCE, [unit(2)], NewUnits([unit(2)]), 0).statement).rowcount == 0


def test_what_is_held_is_taken_once_and_under_the_loads_generation_alone(
    target: psycopg.Connection, session: PostgresSession
) -> None:
    name = table_ledger.load_name("log/0", ("public", "item"))
    target.execute(ledger.BEGIN, [name])
    held = dump_deltas(unit(1).deltas[:1])
    target.execute(table_ledger.HOLD, ("log/0", ["public"], ["item"], [1], ["pg-7-0/10"], [True], [held]))
    one = Unit(1, "pg-7-0/10", unit(1).deltas[:1])
    with pytest.raises(TargetFencedError, match=r"generation 0 of log/0 table public\.item"):
        session.catch_up(name, 0, [1], [one])
    assert rows(target) == ([], [], ["pg-7-0/10"])
    session.catch_up(name, 1, [1], [one])
    assert rows(target) == ([1], [], [])
    with pytest.raises(TargetFencedError):
        session.catch_up(name, 1, [1], [one])
