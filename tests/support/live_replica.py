"""A live replica that follows its source, with traffic on four tables, and looks at the target's states meanwhile.

Extractor, record processor, log and apply job are the real ones (:mod:`support.replica`), and follow the source in a
thread of their own. Each transaction of the traffic writes two tables that are never loaded by themselves, whose states
are looked at all the time, and two that are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg

from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.truncate import OnTruncate
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.table_load import OwnLoad
from kainite_spark.load.copy_source import CopySource, PostgresCopySource
from kainite_spark.load.rounds import StepRunner
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql.session import PostgresSession
from kainite_spark.targets.postgresql.target import PostgresTarget
from support.replica import Replica, replica
from support.replicas import LOG, InlineSteps, Loading, tables_of
from support.waiting import eventually

TABLES = """
    CREATE TABLE account (id int PRIMARY KEY, balance numeric NOT NULL, pad text);
    CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL);
    CREATE TABLE journal (n bigint PRIMARY KEY);
    CREATE TABLE entry (n bigint PRIMARY KEY, giver int NOT NULL, taker int NOT NULL,
                        CONSTRAINT entry_giver FOREIGN KEY (giver) REFERENCES account ON DELETE CASCADE);
"""
ACCOUNTS = 3000
FILL = f"""
    INSERT INTO account SELECT n, 100, repeat('x', 900) FROM generate_series(1, {ACCOUNTS}) n;
    INSERT INTO counter VALUES (1, 0);
"""
FOREIGN_KEYS = "SELECT conname, convalidated FROM pg_constraint WHERE contype = 'f'"
_STATE = """
    SELECT n, (SELECT count(*) FROM journal), (SELECT coalesce(max(n), 0) FROM journal) FROM counter
    WHERE (SELECT state FROM kainite_load WHERE log_partition = %s) <> 'loading'"""
DRIFT = "UPDATE account SET balance = 7 WHERE id % 7 = 0"


@dataclass
class AccountTraffic:
    """Transactions in the source; each makes an account, moves money, and now and then deletes an account."""

    url: str
    count: int = 0

    def go(self, times: int) -> None:
        with psycopg.connect(self.url) as connection:
            for _ in range(times):
                self.count += 1
                n, new = self.count, ACCOUNTS + self.count
                with connection.transaction():
                    run = connection.execute
                    run("INSERT INTO account VALUES (%s, 1, 'new')", [new])
                    run("UPDATE account SET balance = balance - 1 WHERE id = %s", [1 + n % ACCOUNTS])
                    run("UPDATE account SET balance = balance + 1 WHERE id = %s", [new])
                    run("INSERT INTO entry VALUES (%s, %s, %s)", [n, new, 1])
                    run("UPDATE counter SET n = n + 1")
                    run("INSERT INTO journal VALUES (%s)", [n])
                    if n % 5 == 0:
                        run("DELETE FROM account WHERE id = %s", [new - 2])


@dataclass
class LiveReplica:
    """A live replica that follows its source, with looks at its states."""

    made: Replica
    loading: Loading
    traffic: AccountTraffic
    over: threading.Event = field(default_factory=threading.Event)
    seen: list[int] = field(default_factory=list)
    threads: list[Future[None]] = field(default_factory=list)

    def source(self) -> CopySource:
        return PostgresCopySource(self.loading.ends)

    def steps(self, before: Callable[[int], object] = lambda _: None) -> StepRunner:
        """Returns what runs steps; ``before`` is called before each one, or each few."""
        return InlineSteps(before, parallelism=1)

    def job(self, table: str, **more: Any) -> TableLoadJob:
        target = self.loading.ends.target
        connection = psycopg.connect(target, autocommit=True)
        runner: StepRunner = more.pop("runner", None) or self.steps()
        return TableLoadJob(
            self.source(),
            ("public", table),
            connection,
            runner,
            partial(session_with, target),
            partial(tables_of, target),
            **more,
        )

    def load(self, table: str, *, anew: bool = False, **more: Any) -> OwnLoad:
        job = self.job(table, **more)
        try:
            return job.run(anew=anew)
        finally:
            job.connection.close()

    def look(self) -> None:
        """Looks at the tables that are never loaded by themselves: each consistent state is one that the source had."""
        with psycopg.connect(self.loading.ends.target, autocommit=True) as connection:
            self.seen.extend(look_at_counts(connection, LOG))

    def looking(self) -> None:
        while not self.over.is_set():
            self.look()

    def applied(self, count: int) -> bool:
        return self.loading.in_target("SELECT n FROM counter") == [(count,)]

    def settle(self) -> None:
        """Waits until all is applied, and compares."""
        eventually(lambda: self.applied(self.traffic.count))
        eventually(lambda: self.loading.differences() == {})
        eventually(lambda: self._told() == {})  # the log hears of it behind the target
        keys = self.loading.in_target(FOREIGN_KEYS)
        assert ("entry_giver", True) in keys
        assert all(validated for _, validated in keys)
        assert self.loading.in_target("SELECT count(*) FROM kainite_held_delta") == [(0,)]
        assert {table.state for table in self.loading.status().tables} == {"live"}

    def _told(self) -> dict[str, str]:
        """Returns the units that are not committed; raises what ended a thread that follows or looks."""
        self.check_threads()
        return self.made.failed()

    def check_threads(self) -> None:
        """Raises what ended a thread that follows or looks."""
        for thread in self.threads:
            if thread.done():
                thread.result()

    def state(self, table: str) -> str:
        [(state,)] = self.loading.in_target(f"SELECT state FROM kainite_load_table WHERE table_name = '{table}'")
        return str(state)


@contextmanager
def live_replica(
    source: SourceSlot, target: str, *, follows: bool = True, on_truncate: OnTruncate = OnTruncate.FAIL
) -> Iterator[LiveReplica]:
    with (
        replica(source, target, TABLES, on_truncate=on_truncate) as made,
        ThreadPoolExecutor(2) as pool,
        ExitStack() as last,
    ):
        loading = Loading(ReplicaEnds(source, target, LOG), 0)
        loading.in_source(FILL)
        loading.load()
        live = LiveReplica(made, loading, AccountTraffic(source.url))
        last.callback(live.over.set)
        if follows:
            live.threads = [pool.submit(made.follow, live.over), pool.submit(live.looking)]
        yield live
        live.over.set()
        for thread in live.threads:
            thread.result()
        assert live.seen == sorted(live.seen)


def look_at_counts(connection: psycopg.Connection, log_partition: str) -> Iterator[int]:
    """Yields how many transactions of the traffic a target has; nothing while it is loaded.

    Looks at the tables that are never loaded by themselves: each consistent state is one that the source had.
    """
    for count, notes, latest in connection.execute(_STATE, (log_partition,)):
        assert count == notes == latest
        yield count


def session_with(url: str) -> PostgresSession:
    """Opens a session of the apply job's kind, with the target's tables as they are now."""
    target = open_target(url, tables_of(url))
    assert isinstance(target, PostgresTarget)
    return target.connect()
