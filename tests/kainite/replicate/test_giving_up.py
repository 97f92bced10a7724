"""Tables that are given up because too much is held of them, on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from kainite.base.errors import TargetFencedError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate import table_ledger
from kainite.replicate.giving_up import give_up_full
from kainite.replicate.ledger import CopyStep, LoadStep
from kainite.replicate.status import TableState, status_of
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.table_load import OwnLoad, TableLoad
from kainite.replicate.tables import ReplicaTable

LOG = "log/0"
PLACE = ("public", "item")
POINT = ConsistentPoint(0x10, "00000003-00000001-1", SourceIdentity("7", 1, "shop"))
ITEM = ReplicaTable(*PLACE, "public.item", (), (), "d", 0, ())
HELD = 8_192


@pytest.fixture
def target(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("""
            CREATE TABLE item (id int PRIMARY KEY);
            CREATE TABLE kainite_fence (log_partition text PRIMARY KEY, generation bigint, micro_batch bigint,
                                        tables bigint DEFAULT 0)""")
        yield connection


@pytest.fixture
def load(target: psycopg.Connection, postgres: str) -> Iterator[TableLoad]:
    """Gives a load of the table that failed, with changes that are held; its driver lives."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield failed(TableLoad(connection, LOG, PLACE))


def failed(load: TableLoad) -> TableLoad:
    load.steps.create()
    load.begin()
    load.plan(POINT, [LoadStep(1, 1, *PLACE, CopyStep((), ""))])
    hold(load.steps.rows, b"x" * HELD)
    load.enter(OwnLoadState.FAILED, "no room")
    return load


def hold(rows: Callable[..., list[Any]], piece: bytes, log: str = LOG) -> None:
    values = (log, ["public"], ["item"], [1], ["pg-1-0/10"], [True], [piece])
    rows(f"{table_ledger.HOLD} RETURNING 1", *values)


def end_driver(load: TableLoad) -> None:
    """Takes the driver's lock away while its session lives, as a server does that has lost it."""
    load.steps.rows("SELECT pg_advisory_unlock_all()")


def state_of(target: psycopg.Connection) -> str:
    [(state,)] = target.execute("SELECT state FROM kainite_load_table").fetchall()
    return str(state)


def held(target: psycopg.Connection, log: str = LOG) -> int:
    [(count,)] = target.execute("SELECT count(*) FROM kainite_held_delta WHERE log_partition = %s", [log]).fetchall()
    return int(count)


def test_a_table_is_given_up_when_too_much_is_held_and_its_driver_is_gone(
    target: psycopg.Connection, postgres: str, load: TableLoad
) -> None:
    hold(load.steps.rows, b"x" * HELD, "log/1")
    give_up_full(postgres, LOG, 1)
    assert (state_of(target), held(target)) == ("failed", 1)  # the driver lives
    end_driver(load)
    give_up_full(postgres, LOG, HELD)
    assert (state_of(target), held(target)) == ("failed", 1)  # no more is held than may be
    before = target.execute(table_ledger.VERSION, [LOG]).fetchone()
    give_up_full(postgres, LOG, HELD - 1)
    assert (state_of(target), held(target), held(target, "log/1")) == ("given up", 0, 1)
    after = target.execute(table_ledger.VERSION, [LOG]).fetchone()
    assert before is not None
    assert after == (before[0] + 1,)
    target.execute("INSERT INTO kainite_load (log_partition, generation, state) VALUES (%s, 1, 'live')", [LOG])
    [table] = status_of(target, LOG).tables
    told = "8,192 bytes of changes were held, more than targetHeldBytes; before that: no room"
    assert (table.state, table.cause) == (TableState.GIVEN_UP, told)


def test_a_driver_without_its_lock_changes_nothing_any_more_and_the_next_one_begins_anew(
    target: psycopg.Connection, postgres: str, load: TableLoad
) -> None:
    end_driver(load)
    give_up_full(postgres, LOG, 1)
    tries: list[Callable[[], object]] = [
        lambda: load.enter(OwnLoadState.CATCHING_UP),
        lambda: load.plan(POINT, []),
        load.go_live,
        load.steps.go_on,
    ]
    for late in tries:
        with pytest.raises(TargetFencedError):
            late()
    again = TableLoad(target, LOG, PLACE)
    again.begin()
    assert again.found() == OwnLoad(OwnLoadState.LOADING, None, None, None)
    hold(again.steps.rows, b"x" * HELD)
    give_up_full(postgres, LOG, 1)
    assert (state_of(target), held(target)) == ("loading", 1)


def test_what_a_crash_left_of_a_table_that_was_given_up_is_dropped_later(
    target: psycopg.Connection, postgres: str, load: TableLoad
) -> None:
    end_driver(load)
    target.execute("UPDATE kainite_load_table SET state = 'given up'")
    give_up_full(postgres, LOG, 2**30)
    assert (state_of(target), held(target)) == ("given up", 0)


def test_a_target_without_loads_or_that_is_away_is_left_alone(postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    give_up_full(postgres, LOG, 0)
    assert not caplog.records
    give_up_full("host=127.0.0.1 port=1 user=u dbname=d", LOG, 0)
    assert "tables that are not live were not looked at" in caplog.text


def test_a_locked_fence_is_not_waited_for(
    target: psycopg.Connection,
    postgres: str,
    load: TableLoad,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kainite.replicate.giving_up.LOCK_WAIT_S", 0.1)
    end_driver(load)
    with target.transaction():
        target.execute("SELECT FROM kainite_fence FOR SHARE")
        give_up_full(postgres, LOG, 1)
    assert "tables that are not live were not looked at" in caplog.text
    assert (state_of(target), held(target)) == ("failed", 1)
