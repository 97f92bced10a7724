"""Loads of single tables of a live target while the apply job goes on: no other table is held up, nothing is lost.

:mod:`support.live_replica` has the traffic, and the looks at the target's states.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kainite.base.errors import CatalogueError, KainiteError, SourceError, TargetRejectedError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.truncate import OnTruncate
from kainite.replicate.giving_up import give_up_full
from support.driver_kills import KilledError, kills
from support.live_replica import DRIFT, FOREIGN_KEYS, live_replica
from support.replicas import LOG, InlineSteps
from support.waiting import eventually


@pytest.mark.parametrize("table", ["account", "entry"])
def test_a_table_is_loaded_again_while_units_that_touch_it_go_on(source: SourceSlot, postgres: str, table: str) -> None:
    with live_replica(source, postgres) as live:
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


def test_a_driver_that_is_killed_at_any_step_loses_and_doubles_nothing(
    source: SourceSlot, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_replica(source, postgres) as live:

        def go_on(_: object) -> None:
            live.traffic.go(5)
            eventually(lambda: live.applied(live.traffic.count))  # so it is held, and there is a batch to catch up

        for step, kill in kills().items():
            live.traffic.go(5)
            live.loading.in_target(DRIFT)
            kill(monkeypatch)
            with pytest.raises(KilledError):
                live.load("account", runner=InlineSteps(go_on))
            live.traffic.go(5)
            eventually(lambda: live.applied(live.traffic.count))
            assert live.load("account", runner=InlineSteps(go_on)).state == "live", step
            live.settle()


def test_a_table_that_is_refused_fails_alone_and_goes_on_when_that_is_mended(source: SourceSlot, postgres: str) -> None:
    with live_replica(source, postgres) as live:
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


def test_a_table_that_was_given_up_is_mended_by_a_reload_alone(source: SourceSlot, postgres: str) -> None:
    """Gives up a table while units are applied, and loads it again: what was dropped comes with the copy."""
    with live_replica(source, postgres) as live:
        live.loading.in_target("ALTER TABLE account ADD CONSTRAINT few CHECK (id < 3010) NOT VALID")

        def go_on(_: object) -> None:
            live.traffic.go(20)
            eventually(lambda: live.applied(live.traffic.count))

        with pytest.raises(TargetRejectedError, match="few"):
            live.load("account", runner=InlineSteps(go_on))
        live.traffic.go(10)
        give_up_full(postgres, LOG, 0)
        assert live.state("account") == "given up"
        live.traffic.go(10)
        eventually(lambda: live.applied(live.traffic.count))
        assert live.loading.in_target("SELECT count(*) FROM kainite_held_delta") == [(0,)]
        assert not live.loading.status().consistent
        live.loading.in_target("ALTER TABLE account DROP CONSTRAINT few")
        again = InlineSteps()
        assert live.load("account", runner=again).state == "live"
        assert again.ran  # its rows were copied again
        live.settle()


def test_a_table_goes_live_only_behind_its_point(source: SourceSlot, postgres: str) -> None:
    with live_replica(source, postgres, follows=False) as live:
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


def test_a_truncate_of_a_table_that_is_loaded_by_itself_is_held_in_its_place(source: SourceSlot, postgres: str) -> None:
    with live_replica(source, postgres, follows=False, on_truncate=OnTruncate.APPLY) as live:
        live.traffic.go(5)
        held: list[Any] = []

        def look() -> None:
            if not held and live.state("account") == "catching up":
                live.loading.in_source("TRUNCATE account, entry")
                live.loading.in_source("INSERT INTO account VALUES (1, 5, NULL)")
                live.made.catch_up(live.traffic.count + 4)  # also what has filled the tables, and the heartbeat
                held.extend(live.loading.in_target("SELECT count(*) FROM kainite_held_delta"))

        assert live.load("account", look=look).state == "live"
        assert held[0][0] > 2
        assert live.loading.in_target("SELECT * FROM account") == [(1, 5, None)]
        live.settle()


def test_a_load_of_everything_takes_the_place_of_a_tables_load(source: SourceSlot, postgres: str) -> None:
    with live_replica(source, postgres, follows=False) as live:
        live.traffic.go(10)
        stop = threading.Event()
        stop.set()
        assert live.load("account", stop=stop).state == "loading"
        live.made.catch_up(live.traffic.count + 2)
        assert live.loading.in_target("SELECT count(*) > 0 FROM kainite_held_delta") == [(True,)]
        live.loading.load(anew=True)
        live.settle()


def test_what_cannot_be_loaded_is_refused_before_anything_is_held(source: SourceSlot, postgres: str) -> None:
    with live_replica(source, postgres, follows=False) as live:
        live.loading.in_target("CREATE TABLE own (id int PRIMARY KEY)")
        with pytest.raises(SourceError, match=r"publication changes has no table public\.own"):
            live.load("own")
        live.loading.in_target("UPDATE kainite_load SET state = 'loading' WHERE log_partition = 'log/0'")
        with pytest.raises(CatalogueError, match="the target is loading"):
            live.load("account")
        live.loading.in_target("UPDATE kainite_load SET state = 'live', source = '1/other'")
        with pytest.raises(KainiteError, match="a replica has one source"):
            live.load("account")
