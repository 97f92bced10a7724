"""Loads of single tables into MariaDB whose processes are killed or frozen at any round trip.

The processes are :mod:`support.load_processes`'s; extractor, log and apply job go on meanwhile. After each kill the
command is started again, as a user does it, and ends well; then both databases are compared. CI kills at some places of
each command; ``-m long`` at every one. Nothing may be lost or doubled.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.applied_point import LogStanding
from support.live_mariadb import LiveMariadb, live_from_mariadb, live_from_postgresql
from support.live_replica import DRIFT
from support.load_processes import Driven, Drivers, Victim, drivers, wake_up
from support.mariadb_source import source_database

NOTHING = LogStanding(False, False, 0, ())
_PUBLISHED = """
    DROP PUBLICATION changes;
    CREATE PUBLICATION changes FOR TABLE account, counter, journal, entry"""  # in one transaction: the extractor looks


@dataclass
class KillsIntoMariadb:
    """A live replica, and a command that is carried out again and again while somebody is killed.

    Attributes:
        live: the replica.
        drivers: makes drivers.
        what: the command.
    """

    live: LiveMariadb
    drivers: Drivers
    what: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def strike(self, victim: Victim, place: int) -> Driven:
        """Starts the command, and has somebody killed or frozen; makes good what was left, and compares."""
        table = self.spoilt()
        ended = self.drivers.drive(self.what, table, victim=victim, place=place)
        self.live.traffic.go(2)
        if ended.killed or ended.error:
            assert ended.struck, ended
            again = self.drivers.drive(self.what, table)
            assert (again.killed, again.error) == (False, ""), (victim, place, ended)
        wake_up(ended.frozen)
        assert self.live.loading.status().consistent
        self.live.settle()
        return ended

    def spoilt(self) -> str:
        """Lets a table of the target drift from the source, or makes one to be added; returns it."""
        self.live.traffic.go(2)
        if self.what == "reload":
            self.live.settle()
            self.live.loading.in_target(DRIFT)
            return "account"
        table = f"more_{next(self._numbers)}"
        self.live.loading.in_source(
            f"CREATE TABLE {table} (id int PRIMARY KEY, above int REFERENCES account)",
            f"INSERT INTO {table} SELECT n, n FROM generate_series(1, 200) n",
        )
        return table


@contextmanager
def kills_from_postgresql(source: SourceSlot, server: str, what: str) -> Iterator[KillsIntoMariadb]:
    with (
        live_from_postgresql(source, server) as live,
        drivers(live.loading.ends, lambda _: NOTHING, live.check_threads) as made,
    ):
        if what == "add":
            live.loading.in_source(_PUBLISHED)
        yield KillsIntoMariadb(live, made, what)


@contextmanager
def kills_from_mariadb(server: str, target: str, folder: Path) -> Iterator[KillsIntoMariadb]:
    with (
        source_database(server) as source,
        live_from_mariadb(source, target, folder) as live,
        drivers(live.loading.ends, lambda _: NOTHING, live.check_threads) as made,
    ):
        yield KillsIntoMariadb(live, made, "reload")


SOME = {"reload": (30, 60, 100), "add": (35, 70, 110)}
"""Round trips at which CI kills a driver: before the load begins, while it is planned or copied, and near the end."""

LEAST = {Victim.DRIVER: 100, Victim.KEEPER: 15, Victim.TASK: 10, Victim.FROZEN_TASK: 10}
"""Round trips at which somebody can be met, at least."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", SOME)
def test_a_driver_is_killed(source: SourceSlot, mariadb_server: str, what: str) -> None:
    with kills_from_postgresql(source, mariadb_server, what) as world:
        for place in SOME[what]:
            assert world.strike(Victim.DRIVER, place).killed, place


@pytest.mark.timeout(300)
def test_a_keeper_or_a_task_is_killed_or_frozen(source: SourceSlot, mariadb_server: str) -> None:
    with kills_from_postgresql(source, mariadb_server, "reload") as world:
        for victim in (Victim.KEEPER, Victim.TASK, Victim.FROZEN_TASK):
            ended = world.strike(victim, 10)
            assert ended.struck, victim
            assert bool(ended.frozen) is (victim is Victim.FROZEN_TASK)


@pytest.mark.timeout(300)
def test_a_driver_is_killed_that_loads_from_mariadb(
    mariadb_source_server: str, mariadb_server: str, tmp_path: Path
) -> None:
    with kills_from_mariadb(mariadb_source_server, mariadb_server, tmp_path) as world:
        for place in SOME["reload"]:
            assert world.strike(Victim.DRIVER, place).killed, place


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_driver_that_loads_from_mariadb_is_killed_at_every_round_trip(
    mariadb_source_server: str, mariadb_server: str, tmp_path: Path
) -> None:
    with kills_from_mariadb(mariadb_source_server, mariadb_server, tmp_path) as world:
        for place in itertools.count():
            if not world.strike(Victim.DRIVER, place).struck:
                break
        assert place > LEAST[Victim.DRIVER]


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("what", "victim"), [(what, victim) for what in SOME for victim in Victim])
def test_somebody_is_killed_or_frozen_at_every_round_trip(
    source: SourceSlot, mariadb_server: str, what: str, victim: Victim
) -> None:
    with kills_from_postgresql(source, mariadb_server, what) as world:
        for place in itertools.count():
            if not world.strike(victim, place).struck:
                break
        assert place > LEAST[victim]
