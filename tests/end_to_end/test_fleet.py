"""Several daemons of one application join, leave, die, fall asleep and wake up; no record is lost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kainite.log.format.entry import OperationResult
from kainite.operations.leases import Patience, change_lease
from kainite.operations.operation import MoveLease, RestartChild
from support.fleet_world import Daemon, Fleet, fleet
from support.names import unique

SHARDS = 4
FAILOVER = 2.5

Open = Callable[..., AbstractContextManager[Fleet]]


@pytest.fixture
def world(kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> Open:
    def opened(failover: float = FAILOVER, assignment: str = "1000") -> AbstractContextManager[Fleet]:
        return fleet(
            kinesis, dynamodb, moto_endpoint, unique("fleet"), tmp_path, shards=SHARDS, failover=failover,
            leaseAssignmentIntervalMillis=assignment,
        )  # fmt: skip

    return opened


def test_daemons_join_leave_and_die_and_the_others_take_over(world: Open) -> None:
    with world() as fleet:
        first = fleet.join("one")
        fleet.eventually(lambda: fleet.held() == {"one": SHARDS}, "the first daemon does not take all")
        second = fleet.join("two")
        fleet.eventually(lambda: fleet.balanced_among("one", "two"), "two are not balanced")
        fleet.join("three")
        fleet.eventually(lambda: fleet.balanced_among("one", "two", "three"), "three are not balanced")
        fleet.caught_up()

        first.leave()
        fleet.eventually(lambda: fleet.balanced_among("two", "three"), "what was left is not taken over")
        fleet.caught_up()

        second.kill()
        fleet.eventually(lambda: fleet.held() == {"three": SHARDS}, "a dead daemon's leases are not taken over")
        fleet.caught_up()


def test_leases_of_a_daemon_that_was_told_to_stop_are_taken_before_they_could_expire(world: Open) -> None:
    with world(failover=90.0) as fleet:
        leaving = fleet.join("one")
        fleet.eventually(lambda: fleet.held() == {"one": SHARDS}, "the first daemon does not take all")
        fleet.join("two")
        fleet.eventually(lambda: fleet.balanced_among("one", "two"), "two are not balanced")
        leaving.leave()
        fleet.eventually(lambda: fleet.held() == {"two": SHARDS}, "they waited for the failover time")
        fleet.caught_up()


def test_a_lease_is_moved_and_a_child_restarted_by_command_while_records_flow(world: Open) -> None:
    with world() as fleet:
        fleet.join("one")
        fleet.join("two")
        fleet.eventually(lambda: fleet.balanced_among("one", "two"), "two are not balanced")
        fleet.caught_up()
        shard = min(lease.key for lease in fleet.table.scan() if lease.owner == "one")
        moved = change_lease(fleet.table, MoveLease(shard, "two"), "ada", Patience(60, 60))
        assert (moved.result, moved.sentence.startswith("worker two holds the lease")) == (OperationResult.DONE, True)
        fleet.caught_up()
        fleet.eventually(lambda: fleet.balanced_among("one", "two"), "another shard is not given for it")
        (there,) = [lease.owner for lease in fleet.table.scan() if lease.key == shard]
        assert there == "two", "it stays where it was moved to"
        before = {call.pid for call in fleet.calls() if call.shard == shard}
        restarted = change_lease(fleet.table, RestartChild(shard), "ada", Patience(60, 60))
        assert restarted.result is OperationResult.DONE, restarted.sentence
        fleet.caught_up()
        fleet.pass_time(20)
        fleet.caught_up()
        assert len({call.pid for call in fleet.calls() if call.shard == shard} - before) == 1, "another child is there"


def test_a_daemon_that_wakes_up_after_its_leases_were_taken_does_no_harm(world: Open) -> None:
    with world() as fleet:
        sleeper = fleet.join("one")
        fleet.join("two")
        fleet.eventually(lambda: fleet.balanced_among("one", "two"), "two are not balanced")
        fleet.caught_up()

        sleeper.pause()
        fleet.eventually(lambda: fleet.held() == {"two": SHARDS}, "a sleeping daemon's leases are not taken over")
        fleet.caught_up()
        sleeper.wake()

        fleet.eventually(lambda: fleet.balanced_among("one", "two"), "the woken daemon gets nothing again")
        fleet.caught_up()


@pytest.mark.long
@pytest.mark.parametrize("seed", [3, 8])
def test_nothing_is_lost_in_any_order_of_events(world: Open, seed: int) -> None:
    chance = random.Random(seed)
    with world() as fleet:
        fleet.join("w0")
        fleet.eventually(lambda: fleet.held() == {"w0": SHARDS}, "the first daemon does not take all")
        for number in range(1, 7):
            _disturb(fleet, chance, number)
            fleet.pass_time(chance.randint(5, 40))
        for daemon in fleet.daemons:
            if daemon.paused_at is not None:
                daemon.wake()
        workers = [daemon.worker for daemon in _running(fleet)]
        fleet.eventually(lambda: fleet.balanced_among(*workers), "the survivors are not balanced")
        fleet.caught_up()


def _disturb(fleet: Fleet, chance: random.Random, number: int) -> None:
    """Makes one event: a daemon joins, leaves, dies, falls asleep or wakes up; at least one is always awake."""
    awake = list(_running(fleet))
    asleep = [daemon for daemon in fleet.daemons if daemon.paused_at is not None]
    events: list[Callable[[], object]] = [daemon.wake for daemon in asleep]
    if len(awake) + len(asleep) < 3:
        events += [partial(fleet.join, f"w{number}")] * 3
    if len(awake) > 1:
        victim = chance.choice(awake)
        events += [victim.leave, victim.kill, victim.pause]
    chance.choice(events)()


def _running(fleet: Fleet) -> Iterator[Daemon]:
    return (daemon for daemon in fleet.daemons if daemon.running)
