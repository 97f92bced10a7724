"""Loads of single tables of a live MariaDB target while the apply job goes on, from PostgreSQL and from MariaDB.

:mod:`support.live_mariadb` has the traffic, and the looks at the target's states. The cases are those of
test_table_job.py and test_binlog_table_job.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import CatalogueError, KainiteError, TargetRejectedError
from kainite.capture.mysql import snapshot_tables
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.truncate import OnTruncate
from support.driver_kills import KilledError, kills_into_mariadb
from support.live_mariadb import FOREIGN_KEYS, LiveMariadb, live_from_mariadb, live_from_postgresql
from support.live_replica import DRIFT
from support.mariadb_source import source_database
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
