"""Torn transactions and differing rows fail the demo, on a real server."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kainite.base.errors import DemoError
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite_demo import invariant, pgbench
from kainite_demo.compare import compare
from kainite_demo.invariant import Invariant
from kainite_demo.latency import AppliedTimes, latencies, percentile
from kainite_demo.watching import Watching

LIMIT = 20.0


@pytest.fixture
def target(postgres_server: str, source: SourceSlot) -> Iterator[str]:
    """Gives a second database; source and target have pgbench's tables."""
    name = f"{source.slot}_target"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    url = make_conninfo(postgres_server, dbname=name)
    pgbench.create_tables(url)
    pgbench.create_tables(source.url)
    yield url
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.01)


def failure_of(watching: Watching) -> str:
    found: list[str] = []

    def failed() -> bool:
        try:
            watching.check()
        except DemoError as failure:
            found.append(str(failure))
        return bool(found)

    wait_for(failed)
    return found[0]


BRANCH = "INSERT INTO pgbench_branches VALUES (1, 0)"
TELLER = "INSERT INTO pgbench_tellers VALUES (1, 1, 0)"
ACCOUNT = "INSERT INTO pgbench_accounts VALUES (1, 1, 0)"
WHOLE = (
    "UPDATE pgbench_branches SET bbalance = bbalance + 7",
    "UPDATE pgbench_tellers SET tbalance = tbalance + 7",
    "UPDATE pgbench_accounts SET abalance = abalance + 7",
    "INSERT INTO pgbench_history VALUES (1, 1, 1, 7, now())",
)


def test_whole_transactions_keep_the_sums_equal(target: str) -> None:
    execute(target, BRANCH, TELLER, ACCOUNT)
    invariant.make_quick(target)
    seen = Invariant()
    with Watching(target, seen.look) as watching:
        for _ in range(5):
            execute(target, *WHOLE)
        wait_for(lambda: seen.latest.transactions == 5)
        watching.check()
    assert (seen.latest.accounts, seen.latest.history) == (35, 35)
    assert seen.looks > 0


@pytest.mark.parametrize("missing", range(4))
def test_a_transaction_applied_in_part_is_seen(target: str, missing: int) -> None:
    execute(target, BRANCH, TELLER, ACCOUNT)
    with Watching(target, Invariant().look) as watching:
        execute(target, *(statement for place, statement in enumerate(WHOLE) if place != missing))
        assert re.match(r"torn transaction .*accounts \d, tellers \d", failure_of(watching))


def test_a_target_that_goes_away_is_reported(target: str) -> None:
    def drop(connection: psycopg.Connection) -> None:
        connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with Watching(target, drop) as watching:
        assert failure_of(watching).startswith("the target cannot be read: ")


def test_the_copy_holds_what_the_slots_snapshot_sees(source: SourceSlot, target: str) -> None:
    execute(source.url, BRANCH, TELLER, ACCOUNT, *WHOLE)
    with create_slot(source) as slot:
        execute(source.url, *WHOLE)
        pgbench.copy_tables(source.url, target, slot.snapshot)
    with psycopg.connect(target) as connection:
        assert connection.execute("SELECT delta FROM pgbench_history").fetchall() == [(7,)]
        assert connection.execute("SELECT abalance FROM pgbench_accounts").fetchall() == [(7,)]
    with pytest.raises(DemoError, match="pgbench_branches differs"):
        compare(source.url, target, pgbench.TABLES)


def test_a_copy_that_fails_says_why(source: SourceSlot, target: str) -> None:
    with pytest.raises(DemoError, match="copying pgbench_branches failed: ERROR"):
        pgbench.copy_tables(source.url, target, "00000000-00000000-1")


def test_equal_tables_are_counted(source: SourceSlot, target: str) -> None:
    for url in (source.url, target):
        execute(url, BRANCH, *["INSERT INTO pgbench_history (bid, delta) VALUES (1, 5)"] * 2)
    assert compare(source.url, target, pgbench.TABLES) == 3


def test_rows_of_a_table_without_a_key_may_stand_in_any_order(source: SourceSlot, target: str) -> None:
    rows = [f"INSERT INTO pgbench_history (delta, filler) VALUES ({n}, 'a\tb\\\\')" for n in (1, 2, 2, 3)]
    execute(source.url, *rows)
    execute(target, *reversed(rows))
    assert compare(source.url, target, ["pgbench_history"]) == 4


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("UPDATE pgbench_accounts SET abalance = 1 WHERE aid = 70000", r"pgbench_accounts differs: .*'70000'.*'70000'"),
        ("DELETE FROM pgbench_accounts WHERE aid = 90000", r"the source has .*'90000'.*the target no more rows"),
        ("INSERT INTO pgbench_accounts VALUES (90001, 1, 0)", "the source has no more rows, the target .*'90001'"),
        ("UPDATE pgbench_accounts SET filler = NULL WHERE aid = 1", r"the source has \['0', '1', '1', 'x"),
    ],
)
def test_one_row_that_differs_among_many_is_shown(
    source: SourceSlot, target: str, statement: str, complaint: str
) -> None:
    for url in (source.url, target):
        execute(url, BRANCH, "INSERT INTO pgbench_accounts SELECT n, 1, 0, 'x' FROM generate_series(1, 90000) AS a (n)")
    execute(target, statement)
    with pytest.raises(DemoError, match=complaint):
        compare(source.url, target, ["pgbench_accounts"])


def test_a_table_that_cannot_be_read_is_reported(source: SourceSlot, target: str) -> None:
    execute(target, "DROP TABLE pgbench_history")
    with pytest.raises(DemoError, match=r"differs|reading for the comparison failed"):
        compare(source.url, target, ["pgbench_history"])


def test_latency_is_taken_from_commit_to_commit(target: str) -> None:
    times = AppliedTimes()
    before = time.time()
    with Watching(target, times.look) as watching:
        execute(target, "CREATE TABLE kainite_applied (uow text PRIMARY KEY)")
        for uow in ("a", "b"):
            execute(target, f"INSERT INTO kainite_applied VALUES ('{uow}')")
            wait_for(lambda uow=uow: uow in times.at_us)  # type: ignore[misc]
            execute(target, "TRUNCATE kainite_applied")
        watching.check()
    found = latencies({"b": int(before * 1e6), "never": 0}, times.at_us)
    assert set(times.at_us) == {"a", "b"}
    assert len(found) == 1
    assert 0 <= found[0] < LIMIT


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (99, 10), (100, 10), (1, 1)])
def test_percentiles_are_values_that_occurred(percent: float, expected: float) -> None:
    assert percentile([float(n) for n in range(1, 11)], percent) == expected
    assert percentile([], percent) is None
