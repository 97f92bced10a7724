"""Loads of single tables of a live target while the apply job goes on: no other table is held up, nothing is lost.

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
from typing import Any

import psycopg
import pytest

from kainite.base.errors import CatalogueError, KainiteError, SourceError, TargetRejectedError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.table_load import OwnLoad, TableLoad
from kainite_spark.load.rounds import StepRunner
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql.target import PostgresSession, PostgresTarget
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
DRIFT = "UPDATE account SET balance = 7 WHERE id % 7 = 0"


@dataclass
class Traffic:
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
class World:
    """A live replica that follows its source, with looks at its states."""

    made: Replica
    loading: Loading
    traffic: Traffic
    over: threading.Event = field(default_factory=threading.Event)
    seen: list[int] = field(default_factory=list)

    def job(self, table: str, **more: Any) -> TableLoadJob:
        connection = psycopg.connect(self.loading.ends.target, autocommit=True)
        runner: StepRunner = more.pop("runner", None) or InlineSteps()
        return TableLoadJob(self.loading.ends, ("public", table), connection, runner, self.session, **more)

    def load(self, table: str, *, anew: bool = False, **more: Any) -> OwnLoad:
        job = self.job(table, **more)
        try:
            return job.run(anew=anew)
        finally:
            job.connection.close()

    def session(self) -> PostgresSession:
        url = self.loading.ends.target
        target = open_target(url, tables_of(url))
        assert isinstance(target, PostgresTarget)
        return target.connect()

    def look(self) -> None:
        """Looks at the tables that are never loaded by themselves: each state is one that the source had."""
        [(count, notes, latest)] = self.loading.in_target(
            "SELECT n, (SELECT count(*) FROM journal), (SELECT coalesce(max(n), 0) FROM journal) FROM counter"
        )
        assert count == notes == latest
        self.seen.append(count)

    def looking(self) -> None:
        while not self.over.is_set():
            self.look()

    def applied(self, count: int) -> bool:
        return self.loading.in_target("SELECT n FROM counter") == [(count,)]

    def settle(self) -> None:
        """Waits until all is applied, and compares."""
        eventually(lambda: self.applied(self.traffic.count))
        eventually(lambda: self.loading.differences() == {})
        assert self.made.failed() == {}
        assert self.loading.in_target(FOREIGN_KEYS) == [("entry_giver", True)]
        assert self.loading.in_target("SELECT count(*) FROM kainite_held_delta") == [(0,)]
        assert {table.state for table in self.loading.status().tables} == {"live"}

    def state(self, table: str) -> str:
        [(state,)] = self.loading.in_target(f"SELECT state FROM kainite_load_table WHERE table_name = '{table}'")
        return str(state)


@contextmanager
def world(source: SourceSlot, target: str, *, follows: bool = True) -> Iterator[World]:
    with replica(source, target, TABLES) as made, ThreadPoolExecutor(2) as pool, ExitStack() as last:
        loading = Loading(ReplicaEnds(source, target, LOG), 0)
        loading.in_source(FILL)
        loading.load()
        live = World(made, loading, Traffic(source.url))
        threads: list[Future[None]] = []
        last.callback(live.over.set)
        if follows:
            threads = [pool.submit(made.follow, live.over), pool.submit(live.looking)]
        yield live
        live.over.set()
        for thread in threads:
            thread.result()
        assert live.seen == sorted(live.seen)


@pytest.mark.parametrize("table", ["account", "entry"])
def test_a_table_is_loaded_again_while_units_that_touch_it_go_on(source: SourceSlot, postgres: str, table: str) -> None:
    with world(source, postgres) as live:
        live.traffic.go(20)
        eventually(lambda: live.applied(20))
        live.loading.in_target(DRIFT, "DELETE FROM entry WHERE n % 3 = 0")
        live.load("entry" if table == "account" else "account")

        def meanwhile(_: int) -> None:
            live.traffic.go(20)
            eventually(lambda: live.applied(live.traffic.count))
            assert live.state(table) == "loading"
            assert live.loading.in_target(FOREIGN_KEYS) == []
            assert not live.loading.status().consistent

        assert live.load(table, runner=InlineSteps(meanwhile, parallelism=1)).state == "live"
        live.traffic.go(10)
        live.settle()
        assert live.loading.status().consistent


class KilledError(Exception):
    """The driver was killed."""


def kills() -> dict[str, Callable[[pytest.MonkeyPatch], None]]:
    """Returns what kills the driver at each step, once."""

    def at(owner: type, name: str, *, after: bool) -> Callable[[pytest.MonkeyPatch], None]:
        def patch(monkeypatch: pytest.MonkeyPatch) -> None:
            kept = getattr(owner, name)

            def killed(*values: Any, **named: Any) -> Any:
                monkeypatch.setattr(owner, name, kept)
                if after:
                    kept(*values, **named)
                raise KilledError

            monkeypatch.setattr(owner, name, killed)

        return patch

    return {
        "after begin": at(TableLoad, "begin", after=True),
        "after plan": at(TableLoad, "plan", after=True),
        "after the copy": at(TableLoadJob, "_copy", after=True),
        "before a batch": at(PostgresSession, "catch_up", after=False),
        "after a batch": at(PostgresSession, "catch_up", after=True),
        "with the fence locked": at(TableLoad, "go_live", after=False),
        "before foreign keys": at(TableLoadJob, "_catch_up", after=True),
    }


def test_a_driver_that_is_killed_at_any_step_loses_and_doubles_nothing(
    source: SourceSlot, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(source, postgres) as live:
        for step, kill in kills().items():
            live.traffic.go(5)
            live.loading.in_target(DRIFT)
            kill(monkeypatch)
            with pytest.raises(KilledError):
                live.load("account", runner=InlineSteps(lambda _: live.traffic.go(5)))
            live.traffic.go(5)
            eventually(lambda: live.applied(live.traffic.count))
            assert live.load("account", runner=InlineSteps(lambda _: live.traffic.go(5))).state == "live", step
            live.settle()


def test_a_table_that_is_refused_fails_alone_and_goes_on_when_that_is_mended(source: SourceSlot, postgres: str) -> None:
    with world(source, postgres) as live:
        live.loading.in_target("ALTER TABLE account ADD CONSTRAINT few CHECK (id < 3010) NOT VALID")

        def go_on(_: object) -> None:
            live.traffic.go(20)
            eventually(lambda: live.applied(live.traffic.count))  # so it is held, and not applied behind the load

        with pytest.raises(TargetRejectedError, match="few"):
            live.load("account", runner=InlineSteps(go_on))
        assert live.state("account") == "failed"
        live.traffic.go(10)
        eventually(lambda: live.applied(live.traffic.count))
        status = live.loading.status()
        assert [(table.table, table.state) for table in status.tables if table.state != "live"] == [
            ("public.account", "failed")
        ]
        assert not status.consistent
        assert live.load("entry").state == "live"
        live.loading.in_target("ALTER TABLE account DROP CONSTRAINT few")
        again = InlineSteps()
        assert live.load("account", runner=again).state == "live"
        live.settle()


def test_a_table_goes_live_only_behind_its_point(source: SourceSlot, postgres: str) -> None:
    with world(source, postgres, follows=False) as live:
        live.traffic.go(30)
        looks: list[str] = []

        def look() -> None:
            looks.append(live.state("account"))
            if len(looks) == 5:
                live.made.catch_up(live.traffic.count + 2)  # the fill is one, the heartbeat behind the point another

        assert live.load("account", look=look).state == "live"
        assert looks[-1] == "catching up"
        assert len(looks) >= 5
        live.settle()


def test_a_load_of_everything_takes_the_place_of_a_tables_load(source: SourceSlot, postgres: str) -> None:
    with world(source, postgres, follows=False) as live:
        live.traffic.go(10)
        stop = threading.Event()
        stop.set()
        assert live.load("account", stop=stop).state == "loading"
        live.made.catch_up(live.traffic.count + 2)
        assert live.loading.in_target("SELECT count(*) > 0 FROM kainite_held_delta") == [(True,)]
        live.loading.load(anew=True)
        live.settle()


def test_what_cannot_be_loaded_is_refused_before_anything_is_held(source: SourceSlot, postgres: str) -> None:
    with world(source, postgres, follows=False) as live:
        live.loading.in_target("CREATE TABLE own (id int PRIMARY KEY)")
        with pytest.raises(SourceError, match=r"publication changes has no table public\.own"):
            live.load("own")
        live.loading.in_target("UPDATE kainite_load SET state = 'loading' WHERE log_partition = 'log/0'")
        with pytest.raises(CatalogueError, match="the target is loading"):
            live.load("account")
        live.loading.in_target("UPDATE kainite_load SET state = 'live', source = '1/other'")
        with pytest.raises(KainiteError, match="a replica has one source"):
            live.load("account")
