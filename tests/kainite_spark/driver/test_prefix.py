"""Snapshots of the target while units are applied: each is the source's state after a prefix of the log.

The units are those of a small TPC-C: New-Order, Payment and Delivery, with the consistency conditions that the tables
here can express. Tasks run in threads, one a job instance, so that lanes really run at the same time; connections are
cut at random meanwhile.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from kainite.base.retry import Backoff
from kainite.log.format.entry import UnitStatus
from kainite.log.store.memory import MemoryStore
from kainite.settings import Consistency, OnFailure
from kainite.uow.delta import Delta, Operation
from kainite_spark.driver import patience
from kainite_spark.driver.job import ApplyJob
from kainite_spark.executor.group_commit import ApplyOptions, Retry
from kainite_spark.executor.tasks import read_slice
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from support.apply_world import World, insert, noted, update
from support.inline_runner import InlineRunner

TPCC = """
    CREATE TABLE district (d_id bigint PRIMARY KEY, d_next_o_id bigint NOT NULL, d_ytd bigint NOT NULL);
    CREATE TABLE history (
        h_id bigint PRIMARY KEY, h_d_id bigint NOT NULL REFERENCES district, h_amount bigint NOT NULL);
    CREATE TABLE stock (s_id bigint PRIMARY KEY, s_quantity bigint NOT NULL, s_ytd bigint NOT NULL);
    CREATE TABLE orders (
        o_d_id bigint REFERENCES district, o_id bigint, o_carrier_id bigint, o_ol_cnt bigint NOT NULL,
        PRIMARY KEY (o_d_id, o_id));
    CREATE TABLE new_order (
        no_d_id bigint, no_o_id bigint, PRIMARY KEY (no_d_id, no_o_id),
        FOREIGN KEY (no_d_id, no_o_id) REFERENCES orders);
    CREATE TABLE order_line (
        ol_d_id bigint, ol_o_id bigint, ol_number bigint, ol_i_id bigint NOT NULL REFERENCES stock,
        ol_delivered boolean NOT NULL, ol_quantity bigint NOT NULL, PRIMARY KEY (ol_d_id, ol_o_id, ol_number),
        FOREIGN KEY (ol_d_id, ol_o_id) REFERENCES orders);
"""

DISTRICTS, ITEMS, START = 2, 20, 1_000

CONDITIONS = {
    "1: payments add up": "SELECT d_id FROM district WHERE d_ytd <>"
    " (SELECT coalesce(sum(h_amount), 0) FROM history WHERE h_d_id = d_id)",
    "2: the next order number": "SELECT d_id FROM district WHERE d_next_o_id - 1 <>"
    " (SELECT coalesce(max(o_id), 0) FROM orders WHERE o_d_id = d_id)",
    "2: the latest new order": "SELECT d_id FROM district,"
    " (SELECT no_d_id, max(no_o_id) AS latest FROM new_order GROUP BY 1) AS n"
    " WHERE no_d_id = d_id AND latest <> d_next_o_id - 1",
    "3: new orders have no gaps": "SELECT no_d_id FROM new_order GROUP BY 1"
    " HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)",
    "4: lines are counted": "SELECT o_d_id FROM orders GROUP BY 1 HAVING sum(o_ol_cnt) <>"
    " (SELECT count(*) FROM order_line WHERE ol_d_id = o_d_id)",
    "5: no carrier while new": "SELECT o_id FROM orders LEFT JOIN new_order ON (no_d_id, no_o_id) = (o_d_id, o_id)"
    " WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    "6: each order's lines": "SELECT o_id FROM orders WHERE o_ol_cnt <>"
    " (SELECT count(*) FROM order_line WHERE (ol_d_id, ol_o_id) = (o_d_id, o_id))",
    "7: delivered with the order": "SELECT o_id FROM orders JOIN order_line ON (ol_d_id, ol_o_id) = (o_d_id, o_id)"
    " WHERE ol_delivered <> (o_carrier_id IS NOT NULL)",
    "stock is sold once": f"SELECT s_id FROM stock WHERE s_quantity + s_ytd <> {START} OR s_ytd <>"
    " (SELECT coalesce(sum(ol_quantity), 0) FROM order_line WHERE ol_i_id = s_id)",
}


class Source:
    """The source: runs TPC-C's transactions on its own state, and gives their deltas."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._next = dict.fromkeys(range(DISTRICTS), 1)
        self._ytd = dict.fromkeys(range(DISTRICTS), 0)
        self._sold = dict.fromkeys(range(ITEMS), 0)
        self._payments = 0
        self._new: dict[int, list[tuple[int, int]]] = {district: [] for district in range(DISTRICTS)}

    def transaction(self) -> list[Delta]:
        district = self._chance.randrange(DISTRICTS)
        kind = self._chance.choice(("order", "order", "payment", "delivery"))
        if kind == "delivery" and len(self._new[district]) > 1:
            return self._delivery(district)
        return self._payment(district) if kind == "payment" else self._order(district)

    def _order(self, district: int) -> list[Delta]:
        number = self._next[district]
        self._next[district] += 1
        items = self._chance.sample(range(ITEMS), self._chance.randint(1, 3))
        self._new[district].append((number, len(items)))
        key = {"no_d_id": district, "no_o_id": number}
        order = {"o_d_id": district, "o_id": number}
        deltas = [
            _update("district", {"d_id": district}, d_next_o_id=number + 1),
            Delta("orders", Operation.INSERT, order, {**order, "o_carrier_id": None, "o_ol_cnt": len(items)}, {}),
            Delta("new_order", Operation.INSERT, key, key, {}),
        ]
        for line, item in enumerate(items):
            quantity = self._chance.randint(1, 5)
            self._sold[item] += quantity
            line_key = {"ol_d_id": district, "ol_o_id": number, "ol_number": line}
            row = {**line_key, "ol_i_id": item, "ol_delivered": False, "ol_quantity": quantity}
            deltas.append(Delta("order_line", Operation.INSERT, line_key, row, {}))
            deltas.append(_update("stock", {"s_id": item}, s_quantity=START - self._sold[item], s_ytd=self._sold[item]))
        return deltas

    def _payment(self, district: int) -> list[Delta]:
        amount = self._chance.randint(1, 50)
        self._ytd[district] += amount
        self._payments += 1
        row = {"h_id": self._payments, "h_d_id": district, "h_amount": amount}
        return [
            _update("district", {"d_id": district}, d_ytd=self._ytd[district]),
            Delta("history", Operation.INSERT, {"h_id": self._payments}, row, {}),
        ]

    def _delivery(self, district: int) -> list[Delta]:
        number, lines = self._new[district].pop(0)
        key = {"no_d_id": district, "no_o_id": number}
        return [
            Delta("new_order", Operation.DELETE, key, {}, key),
            _update("orders", {"o_d_id": district, "o_id": number}, o_carrier_id=7),
            *(
                _update("order_line", {"ol_d_id": district, "ol_o_id": number, "ol_number": line}, ol_delivered=True)
                for line in range(lines)
            ),
        ]


def _update(table: str, key: dict[str, Any], **row: Any) -> Delta:
    return Delta(table, Operation.UPDATE, key, row, {})


class InThreads(InlineRunner):
    """Runs the job instances of a micro-batch at the same time, in an order of their own."""

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        self.ran.append(batch)
        parts = [part for piece in batch.slices for part in read_slice(self.store, self.partition, piece)]
        instances = list(range(batch.instances))[::-1]
        with ThreadPoolExecutor(len(instances)) as pool:
            return list(pool.map(lambda instance: self._apply(batch, instance, parts), instances))


@contextmanager
def watched(url: str, look: Callable[[psycopg.Connection], None]) -> Iterator[list[int]]:
    """Calls ``look`` in one snapshot after the other; gives a list whose length is their number."""
    ended = threading.Event()
    looked: list[int] = []

    def watch() -> None:
        with psycopg.connect(url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            while not ended.is_set():
                look(connection)
                connection.rollback()
                looked.append(1)

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            yield looked
        finally:
            ended.set()
            watching.result()


def conditions_hold(connection: psycopg.Connection) -> None:
    for name, query in CONDITIONS.items():
        assert connection.execute(query).fetchall() == [], name


def apply_cut(world: World, job: ApplyJob, seed: int, cuts: int) -> None:
    """Runs a job whose sessions are cut at random moments."""
    chance = random.Random(seed)
    ended = threading.Event()

    def cut() -> None:
        with psycopg.connect(world.database.url, autocommit=True) as connection:
            for _ in range(cuts):
                if ended.wait(chance.uniform(0.0, 0.05)):
                    return
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kainite apply'"
                    " AND datname = current_database() AND query LIKE '%%json_to_recordset%%'"
                )

    with ThreadPoolExecutor(1) as pool:
        cutting = pool.submit(cut)
        try:
            job.run(once=True)
        finally:
            ended.set()
            cutting.result()


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BACKOFF", Backoff.doubling(0.001, 10.0))


def tpcc(postgres: str, seed: int, count: int) -> World:
    with psycopg.connect(postgres) as connection:
        connection.execute(TPCC)
        connection.execute(
            f"INSERT INTO district SELECT n, 1, 0 FROM generate_series(0, {DISTRICTS - 1}) n;"
            f"INSERT INTO stock SELECT n, {START}, 0 FROM generate_series(0, {ITEMS - 1}) n"
        )
    world = World(MemoryStore(), postgres)
    source = Source(random.Random(seed))
    for n in range(count):
        world.log.unit(f"T-{n}", *source.transaction())
    return world


def runner_of(world: World, group_units: int = 2) -> InThreads:
    options = ApplyOptions(group_units=group_units, retry=Retry(tries=4, first=0.01))
    return InThreads(world.store, "0", world.target, parallelism=3, options=options)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_snapshot_meets_tpc_c_s_conditions_also_while_connections_are_cut(postgres: str, seed: int) -> None:
    world = tpcc(postgres, seed, 200)
    job = world.job(runner_of(world), consistency=Consistency.PREFIX, max_units=40)
    with watched(postgres, conditions_hold) as snapshots:
        apply_cut(world, job, seed, 20)
    assert job.summary.outcomes == {UnitStatus.COMMITTED: 200}
    assert len(snapshots) > 10
    with psycopg.connect(postgres) as connection:
        conditions_hold(connection)


def test_two_deliveries_that_do_not_conflict_are_never_seen_in_the_wrong_order(postgres: str) -> None:
    world = tpcc(postgres, 1, 0)
    pairs = 30
    with psycopg.connect(postgres) as connection:
        connection.execute(
            f"INSERT INTO orders SELECT 0, n, 1, 0 FROM generate_series(1, {2 * pairs}) n;"
            f"INSERT INTO new_order SELECT 0, n FROM generate_series(1, {2 * pairs}) n"
        )
    for n in range(1, 2 * pairs + 1):
        key = {"no_d_id": 0, "no_o_id": n}
        world.log.unit(f"D-{n}", Delta("new_order", Operation.DELETE, key, {}, key))

    def no_gaps(connection: psycopg.Connection) -> None:
        found = [n for (n,) in connection.execute("SELECT no_o_id FROM new_order ORDER BY 1")]
        assert found == list(range(2 * pairs + 1 - len(found), 2 * pairs + 1))

    job = world.job(runner_of(world, 1), consistency=Consistency.PREFIX)
    with watched(postgres, no_gaps) as snapshots:
        apply_cut(world, job, 3, 10)
    assert job.summary.outcomes == {UnitStatus.COMMITTED: 2 * pairs}
    assert snapshots


def test_a_locked_row_holds_everything_up_for_a_while_then_only_what_conflicts(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kainite_spark.plan.backlog.PATIENCE", 3.0)
    world = World(MemoryStore(), postgres)
    world.database.run("INSERT INTO item (id, v) SELECT n, 0 FROM generate_series(0, 3) n")
    for n in range(4):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", update(n, 1)))
    world.log.unit("behind", *noted("behind", update(1, 2)))
    seen: list[Sequence[str]] = []
    with psycopg.connect(postgres) as holder:
        holder.execute("SELECT 1 FROM item WHERE id = 1 FOR UPDATE")

        class Looks(InThreads):
            def run(self, batch: MicroBatch) -> list[TaskResult]:
                results = super().run(batch)
                seen.append(world.journal())
                if len(seen[-1]) == 3:
                    holder.rollback()
                return results

        job = world.job(Looks(world.store, "0", world.target, options=runner_of(world).options))
        job.run(once=True)
    assert seen[0] == ["T-0"], "nothing passes the unit on the locked row at first"
    assert ["T-0", "T-2", "T-3"] in seen, "what does not conflict goes on when that lasts"
    assert world.journal() == ["T-0", "T-1", "T-2", "T-3", "behind"]
    assert world.items() == {0: 1, 1: 2, 2: 1, 3: 1}


def test_with_stop_nothing_ever_passes_a_unit_on_a_locked_row(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite_spark.plan.backlog.PATIENCE", 0.0)
    world = World(MemoryStore(), postgres)
    world.database.run("INSERT INTO item (id, v) SELECT n, 0 FROM generate_series(0, 3) n")
    for n in range(4):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", update(n, 1)))
    with psycopg.connect(postgres) as holder:
        holder.execute("SELECT 1 FROM item WHERE id = 1 FOR UPDATE")

        class Looks(InThreads):
            def run(self, batch: MicroBatch) -> list[TaskResult]:
                results = super().run(batch)
                if len(self.ran) < 4:
                    assert world.journal() == ["T-0"]
                else:
                    holder.rollback()
                return results

        runner = Looks(world.store, "0", world.target, options=runner_of(world).options)
        world.job(runner, on_failure=OnFailure.STOP, consistency=Consistency.PREFIX).run(once=True)
    assert world.journal() == ["T-0", "T-1", "T-2", "T-3"]


def test_a_failed_unit_and_what_waits_for_it_are_the_exception(postgres: str) -> None:
    world = World(MemoryStore(), postgres)
    world.log.unit("good", *noted("good", insert(1)))
    world.log.unit("bad", *noted("bad", insert(2, -1)))
    world.log.unit("behind", *noted("behind", update(2, 5)))
    world.log.unit("free", *noted("free", update(1, 5)))
    job = world.job(runner_of(world), consistency=Consistency.PREFIX)
    job.run(once=True)
    assert world.journal() == ["free", "good"]
    assert job.summary.outcomes == {UnitStatus.COMMITTED: 2, UnitStatus.FAILED: 1, UnitStatus.BLOCKED: 1}
