"""When a worker looks before its turn: what a failover takes with the daemon's own pauses, and what idleness costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pytest

from kainite.fleet.model.records import Duty, Work
from kainite.fleet.model.states import DutyStatus, LeadershipStatus
from kainite.fleet.steps.expecting import MARGIN_S
from kainite.fleet.steps.timing import Timing
from support.duty_fleet import PacedFleet, SimFleet, SimWorker

Begin: TypeAlias = Callable[[PacedFleet], Callable[[], object]]
"""Lets something happen in a fleet; returns what tells whether the fleet has coped with it."""

TIMING = Timing(ping=1.0, timeout=2.7, rebalance=50.0)
"""The silence is no multiple of the ping, so that a look in its turn comes too late."""
NAMES = ("one", "two", "three")
DECLARED = tuple(Duty(name, Work(command=("true",), ready_after=0.1), declared=True) for name in NAMES)
SECONDS_BEFORE = 8.0
PHASES = [
    (0.0, 0.24, 0.54, 0.37),
    (0.0, 0.23, 1.0, 0.47),
    (0.0, 0.96, 0.9, 0.57),
    (0.0, 0.93, 0.86, 0.99),
    (0.0, 0.01, 0.84, 0.26),
]
"""The workers' own, and how much later something happens: of forty at random those in which that takes longest, with
looks that are expected and without."""
LIMIT_S = 60.0
TICK_S = 0.02
A_LOOK_OR_SO = 0.05
A_BIT = 0.4
"""The formulas add up the longest of each part, which do not all meet."""


def paced(phases: tuple[float, ...]) -> PacedFleet:
    """Returns three workers, each with a duty; the first one leads, and of equal ones it is given a duty last."""
    fleet = PacedFleet(TIMING)
    for name, phase in zip("cab", phases[:3], strict=True):
        fleet.join(name, DECLARED, phase)
    fleet.go_on(SECONDS_BEFORE + phases[3])
    return fleet


def leader(fleet: PacedFleet) -> SimWorker:
    return next(each for each in fleet.living() if each.member.leadership is LeadershipStatus.LEADER)


def duty_of(fleet: PacedFleet, worker: SimWorker) -> str:
    return next(name for name in NAMES if fleet.duty(name).worker == worker.name)


def signs_of_life(fleet: PacedFleet, worker: SimWorker) -> tuple[str, str]:
    picture = fleet.store.read()
    lead = picture.lead.version if picture.lead and picture.lead.worker == worker.name else ""
    return picture.workers[worker.name].version, lead


def kill(fleet: PacedFleet, worker: SimWorker) -> None:
    """Kills a worker right after a sign of life, which the others have not seen yet."""
    before = signs_of_life(fleet, worker)
    while signs_of_life(fleet, worker) == before:
        fleet.go_on(TICK_S)
    worker.crash()


def a_worker_dies(fleet: PacedFleet) -> Callable[[], object]:
    worker = next(each for each in fleet.living() if each is not leader(fleet))
    name = duty_of(fleet, worker)
    kill(fleet, worker)
    return lambda: fleet.running(name)


def the_leader_dies(fleet: PacedFleet) -> Callable[[], object]:
    worker = leader(fleet)
    name = duty_of(fleet, worker)
    kill(fleet, worker)
    return lambda: fleet.running(name)


def the_lead_is_free(fleet: PacedFleet) -> Callable[[], object]:
    kill(fleet, leader(fleet))
    return lambda: any(each.member.leadership is LeadershipStatus.LEADER for each in fleet.living())


def a_duty_moves(fleet: PacedFleet) -> Callable[[], object]:
    duty = fleet.duty("one")
    goal = "b" if duty.worker != "b" else "a"
    fleet.change(replace(duty, goal=goal))
    return lambda: fleet.duty("one").worker == goal and fleet.running("one")


def a_worker_ends(fleet: PacedFleet) -> Callable[[], object]:
    worker = next(each for each in fleet.living() if each.name == fleet.duty("one").worker)
    worker.member.closing = True
    fleet.wake(worker)
    return lambda: fleet.duty("one").worker not in ("", worker.name) and fleet.running("one")


@pytest.mark.parametrize(
    ("begin", "formula"),
    [
        (a_worker_dies, TIMING.silence + TIMING.ping + TIMING.brisk),
        (the_leader_dies, TIMING.silence + TIMING.ping + TIMING.brisk),
        (the_lead_is_free, TIMING.timeout + TIMING.ping),
        (a_duty_moves, TIMING.ping + 3 * TIMING.brisk),
        (a_worker_ends, TIMING.ping + 3 * TIMING.brisk),
    ],
)
def test_it_takes_at_most_what_the_page_on_the_fleet_says(begin: Begin, formula: float) -> None:
    longest = max(fleet.until(begin(fleet), LIMIT_S) for fleet in map(paced, PHASES))
    assert formula - A_BIT <= longest <= formula + A_LOOK_OR_SO


def test_a_fleet_in_which_nothing_happens_reads_once_a_ping() -> None:
    fleet = paced(PHASES[0])
    fleet.looks = 0
    fleet.go_on(50 * TIMING.ping)
    assert fleet.looks <= 3 * 51


def test_a_duty_that_nobody_can_have_is_not_expected_for_ever() -> None:
    heavy = Duty("heavy", Work(command=("true",), weight=5.0), declared=True)
    fleet = SimFleet()
    worker = fleet.worker("a", (heavy,), capacity=1.0)
    fleet.rounds(4)
    assert fleet.duty("heavy").status is DutyStatus.UNASSIGNED
    due = worker.member.next_due()
    assert due is not None
    assert due - fleet.clock.now <= TIMING.brisk + MARGIN_S
    fleet.rounds(int(TIMING.timeout / TIMING.ping) + 2)
    assert worker.member.next_due() is None
