"""Compares replicas whose source and target live: what differs is found to the row, and nothing else is."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from kainite.base.errors import SourceError, TargetError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from support.comparisons import compared
from support.replica import replica
from support.replicas import LOG, run
from support.waiting import eventually

TABLES = """
    CREATE TABLE customer (id int PRIMARY KEY, name text, balance numeric(12, 2), since timestamptz, note bytea);
    CREATE TABLE orders (customer int, number int, weight float8, tags text[], PRIMARY KEY (customer, number));
    CREATE TABLE journal (what text, n int);
"""
FILL = """
    INSERT INTO customer SELECT n, 'customer ' || n, n / 4.0, '2026-01-01 12:00Z'::timestamptz + n * interval '1 h',
                                decode(md5(n::text), 'hex') FROM generate_series(1, 3000) n;
    INSERT INTO orders SELECT n % 50, n, n / 7.0, ARRAY['a', n::text] FROM generate_series(1, 3000) n;
    INSERT INTO journal SELECT 'line ' || n % 10, n % 10 FROM generate_series(1, 500) n;
"""
DAMAGES = {
    "a changed byte": (
        "UPDATE customer SET note = set_byte(note, 3, get_byte(note, 3) # 1) WHERE id = 77",
        [("changed", "public.customer", {"id": "77"}, ("note",))],
    ),
    "a missing row": (
        "DELETE FROM orders WHERE number = 1234",
        [("missing", "public.orders", {"customer": "34", "number": "1234"}, ("customer", "number", "weight", "tags"))],
    ),
    "an extra row": (
        "INSERT INTO customer VALUES (0, 'nobody')",
        [("extra", "public.customer", {"id": "0"}, ("id", "name", "balance", "since", "note"))],
    ),
    "a swapped pair": (
        "UPDATE customer a SET name = b.name FROM customer b WHERE (a.id, b.id) IN ((5, 6), (6, 5))",
        [("changed", "public.customer", {"id": name}, ("name",)) for name in "56"],
    ),
    "a truncated text": (
        "UPDATE customer SET name = left(name, -1) WHERE id = 2999",
        [("changed", "public.customer", {"id": "2999"}, ("name",))],
    ),
    "a rounded numeric": (
        "UPDATE customer SET balance = round(balance, 1) WHERE id = 1001",
        [("changed", "public.customer", {"id": "1001"}, ("balance",))],
    ),
    "a rounded float": (
        "UPDATE orders SET weight = weight::real WHERE number = 13",
        [("changed", "public.orders", {"customer": "13", "number": "13"}, ("weight",))],
    ),
    "a wrong time zone": (
        "UPDATE customer SET since = since + interval '2 h' WHERE id = 3",
        [("changed", "public.customer", {"id": "3"}, ("since",))],
    ),
    "an empty text for NULL": (
        "UPDATE orders SET tags = '{}' WHERE number = 2222",
        [("changed", "public.orders", {"customer": "22", "number": "2222"}, ("tags",))],
    ),
    "rows without a key": (
        "DELETE FROM journal WHERE ctid IN (SELECT ctid FROM journal WHERE n = 4 LIMIT 2)",
        [("missing", "public.journal", {}, ("what", "n"))],
    ),
}


TRAFFIC_TABLES = """
    CREATE TABLE account (id int PRIMARY KEY, balance numeric NOT NULL, pad text);
    CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL);
    CREATE TABLE entry (n bigint PRIMARY KEY, giver int REFERENCES account, taker int REFERENCES account);
"""
TRAFFIC_FILL = """
    INSERT INTO account SELECT n, 100, repeat('x', 100) FROM generate_series(1, 2000) n;
    INSERT INTO counter VALUES (1, 0);
"""


def test_each_damage_is_found_to_the_row(source: SourceSlot, postgres: str) -> None:
    ends = ReplicaEnds(source, postgres, LOG)
    with replica(source, postgres, TABLES) as made:
        run(source.url, FILL)
        made.catch_up(1)
        with made.living():
            clean = compared(ends)
            assert (clean.verdict, clean.rows, clean.units) == ("equal", (), ())
            assert sum(table.rows_source for table in clean.tables) == 6500
            found = {name: rows_found(ends, damage) for name, (damage, _) in DAMAGES.items()}
            assert found == {name: expected for name, (_, expected) in DAMAGES.items()}
            assert compared(ends).verdict == "equal"


def rows_found(ends: ReplicaEnds, damage: str) -> list[tuple[str, str, dict[str, str], tuple[str, ...]]]:
    """Returns what a comparison finds while the target is damaged."""
    tables = ("customer", "orders", "journal")
    run(ends.target, *(f"CREATE TABLE kept_{table} AS TABLE {table}" for table in tables), damage)
    report = compared(ends)
    for table in tables:
        run(ends.target, f"DELETE FROM {table}", f"INSERT INTO {table} TABLE kept_{table}", f"DROP TABLE kept_{table}")
    assert report.verdict == "different"
    assert sum(table.different for table in report.tables) == sum(row.times for row in report.rows)
    return sorted(((str(row.how), row.table, row.key, row.columns) for row in report.rows), key=str)


def test_rows_of_units_that_are_not_applied_are_known_and_hide_no_other(source: SourceSlot, postgres: str) -> None:
    ends = ReplicaEnds(source, postgres, LOG)
    with replica(source, postgres, TABLES) as made:
        run(source.url, FILL)
        made.catch_up(1)
        run(postgres, "ALTER TABLE customer ADD CHECK (id <> 9 OR name <> 'refused')")
        refused = "UPDATE customer SET name = 'refused' WHERE id = 9; UPDATE orders SET weight = 0 WHERE number = 3"
        run(source.url, f"BEGIN; {refused}; COMMIT", "UPDATE customer SET name = 'later' WHERE id = 9")
        run(source.url, "UPDATE customer SET name = 'passes' WHERE id = 10")
        with made.living():
            found = compared(ends)
            run(postgres, "UPDATE customer SET name = 'damaged' WHERE id IN (11, 12)")
            damaged = compared(ends, most_rows=1)
        assert len(made.failed()) == 2
    assert [(unit.status, unit.tables) for unit in found.units] == [
        ("failed", ("customer", "orders")),
        ("blocked", ("customer",)),
    ]
    assert found.verdict == "known"
    rows = sorted((row.table, row.key, row.why.value) for row in found.rows)
    assert rows == [
        ("public.customer", {"id": "9"}, "known"),
        ("public.orders", {"customer": "3", "number": "3"}, "known"),
    ]
    assert damaged.verdict == "different"
    assert [(table.different, table.known) for table in damaged.tables] == [(2, 1), (0, 0), (0, 1)]
    assert [row.why.value for row in damaged.rows] == ["different"]


def test_a_replica_without_an_apply_job_is_not_compared(source: SourceSlot, postgres: str) -> None:
    with replica(source, postgres, TABLES), pytest.raises(TargetError, match="no apply job of this log has answered"):
        compared(ReplicaEnds(source, postgres, LOG), wait=0.2)


def test_a_transaction_in_the_way_of_the_point_is_named_and_the_apply_job_goes_on(
    source: SourceSlot, postgres: str
) -> None:
    ends = ReplicaEnds(source, postgres, LOG)
    with replica(source, postgres, TABLES) as made, made.living():
        with psycopg.connect(source.url) as writer:
            writer.execute("INSERT INTO customer VALUES (1)")
            with pytest.raises(SourceError, match=f"pid {writer.info.backend_pid} "):
                compared(ends, lock_wait=0.2)
        eventually(lambda: run(postgres, "SELECT id FROM customer") == [(1,)])
        assert compared(ends).verdict == "equal"


def compare_under_load(source: SourceSlot, postgres: str, times: int) -> None:
    """Compares while transactions move money in the source; every comparison must find both sides equal."""
    ends = ReplicaEnds(source, postgres, LOG)
    with replica(source, postgres, TRAFFIC_TABLES) as made:
        run(source.url, TRAFFIC_FILL)
        made.catch_up(1)
        over = threading.Event()
        with made.living(), ThreadPoolExecutor(2) as pool:
            writing = [pool.submit(move, source.url, seed, over) for seed in range(2)]
            try:
                reports = [compared(ends) for _ in range(times)]
            finally:
                over.set()
            moved = sum(each.result() for each in writing)
        assert not [cause for cause in made.failed().values() if not cause.startswith("in progress")]
    assert [(report.verdict, report.rows) for report in reports] == [("equal", ())] * times
    positions = [report.position for report in reports]
    assert len(set(positions)) == times
    seen = [report.tables[-1].rows_source for report in reports]
    assert seen == sorted(seen)
    assert seen[0] < seen[-1] <= moved


def move(url: str, seed: int, over: threading.Event) -> int:
    """Moves money until it is told to end; returns how many transactions noted that."""
    chance, count = random.Random(seed), 0
    with psycopg.connect(url, autocommit=True) as connection:
        while not over.is_set():
            giver, taker = sorted(chance.sample(range(1, 2001), 2))
            with connection.transaction():
                connection.execute("UPDATE counter SET n = n + 1")
                connection.execute("UPDATE account SET balance = balance - 1 WHERE id = %s", [giver])
                connection.execute("UPDATE account SET balance = balance + 1 WHERE id = %s", [taker])
                connection.execute("INSERT INTO entry SELECT n, %s, %s FROM counter", [giver, taker])
            count += 1
            over.wait(0.01)
    return count


def test_nothing_is_found_while_both_sides_live(source: SourceSlot, postgres: str) -> None:
    compare_under_load(source, postgres, 4)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_nothing_is_found_in_a_hundred_comparisons(source: SourceSlot, postgres: str) -> None:
    compare_under_load(source, postgres, 100)
