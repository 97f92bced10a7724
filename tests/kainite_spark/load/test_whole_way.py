"""Loads under write traffic, and the stream behind them: the target is the source, at each state from the first one on.

Extractor, record processor, log and apply job are the real ones (:mod:`support.replica`). Each transaction of the
traffic moves money between two accounts and counts itself, so that a state that the source never had shows: another
sum, or a count that is not the number of notes.
"""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.ledger import LoadState
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.opening import open_target
from support.replica import Replica, replica
from support.replicas import LOG, InlineSteps, Loading

TABLES = """
    CREATE TABLE account (id int PRIMARY KEY, owner text, balance numeric NOT NULL, pad text);
    CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL);
    CREATE TABLE entry (n bigint PRIMARY KEY, giver int REFERENCES account, taker int REFERENCES account);
"""
ACCOUNTS = 20_000
FILL = f"""
    INSERT INTO account SELECT n, 'owner ' || n, 100, repeat('x', 900) FROM generate_series(1, {ACCOUNTS}) n;
    INSERT INTO counter VALUES (1, 0);
"""


class Traffic:
    """Transactions in a source, from any thread."""

    def __init__(self, url: str, seed: int) -> None:
        self._connection = psycopg.connect(url)
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self.count = 0
        self.more = 0  # transactions that are not counted in the source

    def go(self, times: int) -> None:
        with self._lock:
            for _ in range(times):
                self._move()

    def _move(self) -> None:
        giver, taker = self._chance.sample(range(1, ACCOUNTS + 1), 2)
        self.count += 1
        with self._connection.transaction():
            run = self._connection.execute
            run("UPDATE account SET balance = balance - 1 WHERE id = %s", [giver])
            run("UPDATE account SET balance = balance + 1 WHERE id = %s", [taker])
            run("UPDATE counter SET n = n + 1")
            run("INSERT INTO entry VALUES (%s, %s, %s)", [self.count, giver, taker])
        if self._chance.random() < 0.2:
            with self._connection.transaction():
                self._connection.execute("UPDATE account SET pad = 'y' WHERE id = %s", [giver])
            self.more += 1

    @property
    def transactions(self) -> int:
        return self.count + self.more

    def close(self) -> None:
        self._connection.close()


def check_state(world: Loading) -> int:
    """Checks that the target is a state that the source had; returns which one, by its count."""
    [(total, count, entries, latest)] = world.in_target(
        "SELECT (SELECT sum(balance) FROM account), n, (SELECT count(*) FROM entry),"
        " (SELECT coalesce(max(n), 0) FROM entry) FROM counter"
    )
    assert (total, entries, latest) == (100 * ACCOUNTS, count, count)
    return int(count)


def follow(made: Replica, world: Loading, number: int) -> None:
    """Applies all transactions up to the one with this number, while another thread looks at the states between."""
    over = threading.Event()

    def look() -> list[int]:
        seen = [check_state(world)]
        while not over.is_set():
            seen.append(check_state(world))
        return seen

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            made.catch_up(number - made.number)
        finally:
            over.set()
        seen = looking.result()
    assert seen == sorted(seen)
    assert made.failed() == {}
    assert world.differences() == {}


def test_each_state_from_the_first_one_on_is_one_of_the_source(source: SourceSlot, postgres: str) -> None:
    with replica(source, postgres, TABLES) as made:
        world = Loading(ReplicaEnds(source, postgres, LOG), 0)
        world.in_source(FILL)
        traffic = Traffic(source.url, 1)
        traffic.go(9)
        assert world.load(InlineSteps(lambda _: traffic.go(8))).state is LoadState.LIVE
        first = check_state(world)
        traffic.go(5)
        assert 9 <= first < traffic.count
        # The rows that were there before, in one transaction, come through the log as well.
        follow(made, world, traffic.transactions + 1)
        traffic.close()


def test_a_load_that_begins_anew_leaves_out_what_committed_between_the_points(
    source: SourceSlot, postgres: str
) -> None:
    with replica(source, postgres, TABLES) as made:
        world = Loading(ReplicaEnds(source, postgres, LOG), 0)
        world.in_source(FILL)
        traffic = Traffic(source.url, 2)
        world.load(InlineSteps(lambda _: traffic.go(6)))
        follow(made, world, traffic.transactions + 1)
        before = traffic.count
        traffic.go(10)
        # Some of these may be extracted and applied, others come after the second point.
        made.catch_up(1)
        world.load(InlineSteps(lambda _: traffic.go(4)), anew=True)
        assert before + 10 <= check_state(world) < traffic.count
        follow(made, world, traffic.transactions + 1)
        traffic.close()


def test_a_load_behind_a_new_slot_brings_what_the_lost_one_never_sent(source: SourceSlot, postgres: str) -> None:
    with replica(source, postgres, TABLES) as made:
        world = Loading(ReplicaEnds(source, postgres, LOG), 0)
        world.in_source(FILL)
        traffic = Traffic(source.url, 3)
        world.load(InlineSteps(lambda _: traffic.go(3)))
        follow(made, world, traffic.transactions + 1)
        sent = made.number
        made.begin_at_a_new_slot(lambda: traffic.go(7))
        never = traffic.transactions + 1 - sent
        world.load(InlineSteps(lambda _: traffic.go(3)), anew=True)
        check_state(world)
        traffic.go(3)
        follow(made, world, traffic.transactions + 1 - never)
        assert never >= 7
        traffic.close()


def test_no_apply_job_gets_in_before_the_target_is_live(source: SourceSlot, postgres: str) -> None:
    with replica(source, postgres, TABLES):
        world = Loading(ReplicaEnds(source, postgres, LOG), 0)
        world.in_source(FILL)
        catalogue = reflect(postgres)
        target = open_target(postgres, catalogue)
        refused: list[str] = []

        def raises(_: int) -> None:
            with pytest.raises(TargetUnavailableError) as error:
                target.raise_generation(LOG, 99)
            refused.append(str(error.value))

        world.load(InlineSteps(raises, parallelism=1))
        assert refused
        assert "the target's tables are loading, and not live" in refused[0]
        target.raise_generation(LOG, 99)
        target.close()
