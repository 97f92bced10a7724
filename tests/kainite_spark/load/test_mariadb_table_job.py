"""Loads of single tables of a live MariaDB target while the apply job goes on, from PostgreSQL and from MariaDB.

:mod:`support.live_mariadb` has the traffic, and the looks at the target's states. The cases are those of
test_table_job.py and test_binlog_table_job.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import (
    CatalogueError,
    KainiteError,
    SourceError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.capture.mysql import snapshot_tables
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.truncate import OnTruncate
from kainite.replicate.mariadb_giving_up import give_up_full_in_mariadb
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger
from kainite.uow.catalogue.reflection import reflect
from support.driver_kills import KilledError, kills_into_mariadb
from support.live_mariadb import FOREIGN_KEYS, LiveMariadb, live_from_mariadb, live_from_postgresql
from support.live_replica import DRIFT
from support.mariadb_source import source_database
from support.replicas import LOG, InlineSteps
from support.waiting import eventually

Lives = Callable[..., AbstractContextManager[LiveMariadb]]


@pytest.fixture
def from_mariadb(
    mariadb_source_server: str, mariadb_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lives]:
    monkeypatch.setattr(snapshot_tables, "RANGE_BYTES", 512 * 1024)
    with source_database(mariadb_source_server) as url:
        yield partial(live_from_mariadb, url, mariadb_server, tmp_path)


@pytest.fixture
def from_postgresql(source: SourceSlot, mariadb_server: str) -> Lives:
    return partial(live_from_postgresql, source, mariadb_server)


@pytest.fixture(params=["from_postgresql", "from_mariadb"])
def lives(request: pytest.FixtureRequest) -> Lives:
    """Gives live replicas of a source of either kind."""
    made: Lives = request.getfixturevalue(request.param)
    return made


def go_on(live: LiveMariadb, _: object = None) -> None:
    """Has units applied that touch the table, so that there is something to be held."""
    live.traffic.go(10)
    eventually(lambda: live.applied(live.traffic.count))


def test_a_table_is_loaded_again_while_units_that_touch_it_go_on(lives: Lives) -> None:
    with lives() as live:
        live.traffic.go(20)
        eventually(lambda: live.applied(20))
        live.loading.in_target(DRIFT, "DELETE FROM entry WHERE n % 3 = 0")
        live.load("entry")

        def meanwhile(_: int) -> None:
            go_on(live)
            assert live.state("account") == "loading"
            assert live.loading.in_target(FOREIGN_KEYS) == []
            status = live.loading.status()
            assert not status.consistent
            assert status.foreign_keys == ("public.entry entry_giver",)
            [own] = [one for one in status.tables if one.state != "live"]
            assert (own.table, own.state, own.position is not None) == ("public.account", "loading", True)
            assert own.held > 0

        assert live.load("account", runner=live.steps(meanwhile)).state == "live"
        assert not live.loading.in_target("SELECT snapshot FROM kainite_load WHERE snapshot IS NOT NULL")
        live.traffic.go(10)
        live.settle()
        assert live.loading.status().consistent


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "lives", ["from_postgresql", pytest.param("from_mariadb", marks=pytest.mark.long)], indirect=True
)
def test_a_driver_that_is_killed_at_any_step_loses_and_doubles_nothing(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lives() as live:
        for step, kill in kills_into_mariadb().items():
            live.traffic.go(5)
            live.loading.in_target(DRIFT)
            kill(monkeypatch)
            with pytest.raises(KilledError):
                live.load("account", runner=live.steps(partial(go_on, live)))
            go_on(live)
            assert live.load("account", runner=live.steps(partial(go_on, live))).state == "live", step
            live.settle()


def test_a_table_that_is_refused_fails_alone_and_goes_on_when_that_is_mended(lives: Lives) -> None:
    with lives() as live:
        live.loading.in_target("ALTER TABLE account ADD CONSTRAINT few CHECK (id < 3010)")
        with pytest.raises(TargetRejectedError, match="few"):
            live.load("account", runner=live.steps(partial(go_on, live)))
        assert live.state("account") == "failed"
        go_on(live)
        assert [one.table for one in live.loading.status().tables if one.state != "live"] == ["public.account"]
        assert live.load("entry").state == "live"
        assert live.loading.in_target(FOREIGN_KEYS) == []  # its parent is not live
        live.loading.in_target("ALTER TABLE account DROP CONSTRAINT few")
        assert live.load("account").state == "live"
        live.settle()


def test_a_table_goes_live_only_behind_its_point(from_postgresql: Lives) -> None:
    with from_postgresql(follows=False) as live:
        live.traffic.go(30)
        looks: list[str] = []

        def look() -> None:
            looks.append(live.state("account"))
            if len(looks) == 5:
                live.made.catch_up(live.traffic.count + 1)  # with the heartbeat behind the point

        assert live.load("account", look=look).state == "live"
        assert looks[-1] == "catching up"
        assert len(looks) >= 5
        live.settle()


def test_a_truncate_of_a_table_that_is_loaded_by_itself_is_held_in_its_place(from_postgresql: Lives) -> None:
    with from_postgresql(follows=False, on_truncate=OnTruncate.APPLY) as live:
        live.traffic.go(5)
        held: list[Any] = []

        def look() -> None:
            if not held and live.state("account") == "catching up":
                live.loading.in_source("TRUNCATE account, entry")
                live.loading.in_source("INSERT INTO account VALUES (1, 5, NULL)")
                live.made.catch_up(live.traffic.count + 3)  # with the heartbeat behind the point
                held.extend(live.loading.in_target("SELECT COUNT(*) FROM kainite_held_delta"))

        assert live.load("account", look=look).state == "live"
        assert held[0][0] > 2
        assert live.loading.in_target("SELECT * FROM account") == [(1, 5, None)]
        live.settle()


def test_a_change_that_is_larger_than_a_statement_is_held_whole(from_postgresql: Lives) -> None:
    with from_postgresql(follows=False) as live:
        stop = threading.Event()
        stop.set()
        assert live.load("account", stop=stop).state == "loading"
        live.loading.in_source(
            "UPDATE account SET pad = repeat('ü''\\', 700000) WHERE id = 7", "DELETE FROM account WHERE id = 8"
        )
        live.made.catch_up(3)  # with the heartbeat behind the point
        assert live.loading.in_target("SELECT COUNT(*) > 4, SUM(is_last) FROM kainite_held_delta") == [(1, 2)]
        assert live.load("account").state == "live"
        live.settle()


def test_a_load_of_everything_takes_the_place_of_a_tables_load(from_postgresql: Lives) -> None:
    with from_postgresql(follows=False) as live:
        live.traffic.go(10)
        stop = threading.Event()
        stop.set()
        assert live.load("account", stop=stop).state == "loading"
        live.made.catch_up(live.traffic.count + 1)
        assert live.loading.in_target("SELECT COUNT(*) > 0 FROM kainite_held_delta") == [(1,)]
        live.loading.load(anew=True)
        assert live.loading.in_target("SELECT COUNT(*) FROM kainite_load") == [(1,)]
        live.settle()


def test_a_load_of_everything_ends_the_driver_of_a_table_before_it_can_empty_it(from_postgresql: Lives) -> None:
    """Stops a table's driver in front of its TRUNCATE, where the load of everything has copied the table again."""
    with from_postgresql(follows=False) as live:
        begun, copied = threading.Event(), threading.Event()
        kept = MariadbLoadLedger.truncate

        def late(ledger: MariadbLoadLedger, table: tuple[str, str]) -> None:
            setattr(MariadbLoadLedger, "truncate", kept)  # noqa: B010
            begun.set()
            assert copied.wait(60)
            kept(ledger, table)

        setattr(MariadbLoadLedger, "truncate", late)  # noqa: B010
        with ThreadPoolExecutor(1) as pool:
            try:
                driver = pool.submit(live.load, "account")
                assert begun.wait(60)
                live.loading.load(anew=True)
            finally:
                setattr(MariadbLoadLedger, "truncate", kept)  # noqa: B010
                copied.set()
            with pytest.raises(TargetUnavailableError):
                driver.result()
        assert live.loading.differences() == {}
        live.settle()


def test_rows_without_a_parent_leave_their_foreign_key_noted_and_named(from_postgresql: Lives) -> None:
    with from_postgresql() as live:
        looks: list[str] = []

        def look() -> None:
            if live.state("entry") == "catching up" and not looks:
                looks.append("an orphan")
                live.loading.in_source("ALTER TABLE entry DROP CONSTRAINT entry_giver")
                live.loading.in_source("INSERT INTO entry VALUES (7, 4711, 1)")
                eventually(lambda: live.loading.in_target("SELECT COUNT(*) FROM kainite_held_delta") == [(1,)])

        with pytest.raises(TargetRejectedError, match=r"entry_giver of public\.entry: no row of .* in \(4711\)"):
            live.load("entry", look=look)
        status = live.loading.status()
        assert status.consistent
        assert status.foreign_keys == ("public.entry entry_giver",)
        assert "(4711)" in status.refused[0]
        live.loading.in_source("DELETE FROM entry")
        eventually(lambda: live.loading.differences() == {})
        assert live.load("counter").state == "live"  # the load of any table makes it
        live.settle()


def test_a_table_that_was_given_up_is_mended_by_a_reload_alone(from_postgresql: Lives) -> None:
    """Gives up a table while units are applied, and loads it again: what was dropped comes with the copy."""
    with from_postgresql() as live:
        live.loading.in_target("ALTER TABLE account ADD CONSTRAINT few CHECK (id < 3010)")
        with pytest.raises(TargetRejectedError, match="few"):
            live.load("account", runner=live.steps(partial(go_on, live)))
        go_on(live)
        give_up_full_in_mariadb(live.loading.ends.target, LOG, 2**30)
        assert live.state("account") == "failed"  # not so much is held
        give_up_full_in_mariadb(live.loading.ends.target, LOG, 0)
        assert live.state("account") == "given up"
        go_on(live)
        assert live.loading.in_target("SELECT COUNT(*) FROM kainite_held_delta") == [(0,)]
        [own] = [one for one in live.loading.status().tables if one.state != "live"]
        assert "more than targetHeldBytes; before that: " in own.cause
        live.loading.in_target("ALTER TABLE account DROP CONSTRAINT few")
        again = InlineSteps()
        assert live.load("account", runner=again).state == "live"
        assert again.ran  # its rows were copied again
        live.settle()


def test_a_table_with_a_driver_is_not_given_up(from_postgresql: Lives) -> None:
    with from_postgresql() as live:

        def meanwhile(_: int) -> None:
            go_on(live)
            give_up_full_in_mariadb(live.loading.ends.target, LOG, 0)
            assert live.state("account") == "loading"

        assert live.load("account", runner=live.steps(meanwhile)).state == "live"
        live.settle()


def test_a_foreign_key_that_is_off_counts_as_there_for_who_reads_the_catalogue(from_postgresql: Lives) -> None:
    with from_postgresql(follows=False) as live:
        there = reflect(live.loading.ends.target)
        stop = threading.Event()
        stop.set()
        live.load("account", stop=stop)
        assert live.loading.in_target(FOREIGN_KEYS) == []
        assert reflect(live.loading.ends.target).tables["entry"] == there.tables["entry"]
        assert len(there.tables["entry"].foreign_keys) == 1


def test_what_cannot_be_loaded_is_refused_before_anything_is_held(from_postgresql: Lives) -> None:
    with from_postgresql(follows=False) as live:
        live.loading.in_target("CREATE TABLE own (id int PRIMARY KEY)")
        with pytest.raises(SourceError, match=r"publication changes has no table public\.own"):
            live.load("own")
        live.loading.in_target("UPDATE kainite_load SET state = 'loading' WHERE log_partition = 'log/0'")
        with pytest.raises(CatalogueError, match="the target is loading"):
            live.load("account")
        assert live.loading.in_target(FOREIGN_KEYS) == [("entry_giver",)]
        live.loading.in_target("UPDATE kainite_load SET state = 'live', source = '1/other'")
        with pytest.raises(KainiteError, match="a replica has one source"):
            live.load("account")
        [(rows,)] = live.loading.in_target("SELECT COUNT(*) FROM account")
        assert rows == 3000  # it was not emptied
