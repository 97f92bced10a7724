"""Loads and cut-overs whose processes are killed or frozen at any round trip: nothing is lost, doubled or torn.

The processes are :mod:`support.load_processes`'s; extractor, log and apply job go on meanwhile. After each kill the
command is started again, as a user does it, and ends well; then both databases are compared. CI kills at some places of
each command; ``-m long`` at every one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.applied_point import LogStanding, read_standing
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_ledger import LoadLedger
from kainite.replicate.table_ledger import load_name
from support.live_binlog import live_binlog
from support.live_replica import DRIFT, LiveReplica, live_replica
from support.load_processes import Driven, Drivers, Victim, drivers, wake_up
from support.mariadb_source import source_database
from support.replicas import LOG

NOTHING = LogStanding(False, False, 0, ())
_PUBLISHED = """
    DROP PUBLICATION changes;
    CREATE PUBLICATION changes FOR TABLE account, counter, journal, entry"""  # in one transaction: the extractor looks


@dataclass
class Kills:
    """A live replica, and a command that is carried out again and again while somebody is killed.

    Attributes:
        live: the replica.
        drivers: makes drivers.
        what: the command.
        table: the table of its next time.
    """

    live: LiveReplica
    drivers: Drivers
    what: str
    table: str = "account"
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def strike(self, victim: Victim, place: int) -> Driven:
        """Starts the command, and has somebody killed or frozen; makes good what was left, and compares."""
        self.spoil()
        begun = self.generation()
        ended = self.drivers.drive(self.what, self.table, victim=victim, place=place, anew=self.what == "load")
        if self.what != "cutover":  # its source is closed to writers
            self.live.traffic.go(2)
        if ended.killed or ended.error:
            assert ended.struck, ended
            anew = self.what == "load" and self.generation() == begun
            again = self.drivers.drive(self.what, self.table, anew=anew)
            assert (again.killed, self.unexpected(again.error)) == (False, ""), (victim, place, ended)
        wake_up(ended.frozen)
        self.compare()
        return ended

    def generation(self) -> int:
        """Returns the generation of the command's load."""
        name = LOG if self.what == "load" else load_name(LOG, ("public", self.table))
        rows = self.live.loading.in_target(f"SELECT generation FROM kainite_load WHERE log_partition = '{name}'")
        return int(rows[0][0]) if rows else 0

    def spoil(self) -> None:
        """Lets the target drift from the source, or makes a table to be added: a copy that is not made shows."""
        self.live.traffic.go(2)
        if self.what == "add":
            self.table = f"more_{next(self._numbers)}"
            self.live.loading.in_source(
                f"CREATE TABLE {self.table} (id int PRIMARY KEY, above int REFERENCES account)",
                f"INSERT INTO {self.table} SELECT n, n FROM generate_series(1, 200) n",
            )
        elif self.what != "cutover":
            self.live.settle()
            self.live.loading.in_target(DRIFT)

    def unexpected(self, error: str) -> str:
        """Returns an error, unless it says that the command had had its effect before it was killed."""
        was_done = {"cutover": "not live, so it cannot be cut over"}.get(self.what)
        return "" if was_done and was_done in error else error

    def compare(self) -> None:
        """Compares both databases when everything is applied."""
        loading = self.live.loading
        if self.what == "cutover":
            assert loading.found().state is LoadState.CUT_OVER
            assert loading.differences() == {}
            with psycopg.connect(loading.ends.target, autocommit=True) as connection:
                LoadLedger(connection, LOG).make_live_again()
        else:
            assert loading.status().consistent
            self.live.settle()


@contextmanager
def kills(source: SourceSlot, target: str, what: str) -> Iterator[Kills]:
    with (
        live_replica(source, target) as live,
        drivers(live.loading.ends, partial(read_standing, live.made.store, "0"), live.check_threads) as made,
    ):
        if what == "add":
            live.loading.in_source(_PUBLISHED)
        yield Kills(live, made, what)


SOME = {
    "load": (40, 70, 98),
    "reload": (40, 80, 110),
    "add": (45, 90, 130),
    "cutover": (6, 12, 19),
}
"""Round trips at which CI kills a driver: in the beginning, while rows are copied, and near the end."""

LEAST = {Victim.DRIVER: 100, Victim.KEEPER: 15, Victim.TASK: 14, Victim.FROZEN_TASK: 14, None: 15}
"""Round trips at which somebody can be met, at least; of a cut-over's driver in the last place."""

OTHERS = ((Victim.KEEPER, 12), (Victim.TASK, 14), (Victim.FROZEN_TASK, 14))
COPYING = ("load", "reload", "add")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", SOME)
def test_a_driver_is_killed(source: SourceSlot, postgres: str, what: str) -> None:
    with kills(source, postgres, what) as world:
        for place in SOME[what]:
            assert world.strike(Victim.DRIVER, place).killed, place


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", COPYING)
def test_a_keeper_or_a_task_is_killed_or_frozen(source: SourceSlot, postgres: str, what: str) -> None:
    with kills(source, postgres, what) as world:
        for victim, place in OTHERS:
            ended = world.strike(victim, place)
            assert ended.struck, victim
            assert bool(ended.frozen) is (victim is Victim.FROZEN_TASK)


def test_a_keeper_that_dies_before_it_answers_is_told_and_the_command_may_be_started_again(
    source: SourceSlot, postgres: str
) -> None:
    with kills(source, postgres, "reload") as world:
        assert "ended before it had made one" in world.strike(Victim.KEEPER, 0).error


@contextmanager
def kills_from_mariadb(server: str, target: str, folder: Path) -> Iterator[Kills]:
    with (
        source_database(server) as source,
        live_binlog(source, target, folder) as live,
        drivers(live.loading.ends, lambda _: NOTHING, live.check_threads) as made,
    ):
        yield Kills(live, made, "reload")


SOME_FROM_MARIADB = (40, 70, 95)


@pytest.mark.timeout(300)
def test_a_driver_is_killed_that_loads_from_mariadb(mariadb_source_server: str, postgres: str, tmp_path: Path) -> None:
    with kills_from_mariadb(mariadb_source_server, postgres, tmp_path) as world:
        for place in SOME_FROM_MARIADB:
            assert world.strike(Victim.DRIVER, place).killed, place


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_driver_that_loads_from_mariadb_is_killed_at_every_round_trip(
    mariadb_source_server: str, postgres: str, tmp_path: Path
) -> None:
    with kills_from_mariadb(mariadb_source_server, postgres, tmp_path) as world:
        for place in itertools.count():
            if not world.strike(Victim.DRIVER, place).struck:
                break
        assert place > LEAST[Victim.DRIVER]


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("what", "victim"),
    [("cutover", Victim.DRIVER), *((what, victim) for what in COPYING for victim in Victim)],
)
def test_somebody_is_killed_or_frozen_at_every_round_trip(
    source: SourceSlot, postgres: str, what: str, victim: Victim
) -> None:
    with kills(source, postgres, what) as world:
        for place in itertools.count():
            ended = world.strike(victim, place)
            if not ended.struck:
                break
        assert place > LEAST[victim if what != "cutover" else None]
