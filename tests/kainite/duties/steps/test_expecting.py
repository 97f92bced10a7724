"""When a worker looks before its turn: what a failover takes with the daemon's own pauses, and what idleness costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.duties.model.records import Duty, Work
from kainite.duties.model.states import DutyStatus, LeadershipStatus
from kainite.duties.steps.expecting import MARGIN_S
from support.duty_fleet import SOON_S, TIMING, PacedFleet, SimFleet

NAMES = ("one", "two", "three")
DECLARED = tuple(Duty(name, Work(command=("true",), ready_after=0.1), declared=True) for name in NAMES)
PHASES = [(0.0, 0.3, 0.6), (0.1, 0.9, 0.2), (0.5, 0.0, 0.99)]
LIMIT_S = 60.0
A_LOOK_OR_SO = 4 * SOON_S


def paced(phases: tuple[float, ...]) -> PacedFleet:
    fleet = PacedFleet()
    for name, phase in zip("abc", phases, strict=True):
        fleet.join(name, DECLARED, phase)
    fleet.go_on(30.0)
    return fleet


def leads(fleet: PacedFleet) -> bool:
    return any(worker.member.leadership is LeadershipStatus.LEADER for worker in fleet.living())


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize("age", [0.0, 0.7, 1.4, 2.0])
def test_a_dead_workers_duties_start_elsewhere_when_its_silence_is_over(phases: tuple[float, ...], age: float) -> None:
    fleet = paced(phases)
    fleet.go_on(age)
    name = next(name for name in NAMES if fleet.duty(name).worker == "b")
    fleet.workers[1].crash()
    took = fleet.until(lambda: fleet.running(name), LIMIT_S)
    assert took <= TIMING.silence + TIMING.ping + TIMING.brisk + A_LOOK_OR_SO


@pytest.mark.parametrize("phases", PHASES)
def test_another_one_leads_when_the_leaders_time_is_over(phases: tuple[float, ...]) -> None:
    fleet = paced(phases)
    next(each for each in fleet.workers if each.member.leadership is LeadershipStatus.LEADER).crash()
    assert fleet.until(lambda: leads(fleet), LIMIT_S) <= TIMING.timeout + TIMING.ping + A_LOOK_OR_SO


@pytest.mark.parametrize("phases", PHASES)
def test_a_move_is_seen_by_all_who_have_a_part_in_it(phases: tuple[float, ...]) -> None:
    fleet = paced(phases)
    duty = fleet.duty("one")
    goal = "b" if duty.worker != "b" else "c"
    fleet.change(replace(duty, goal=goal))
    took = fleet.until(lambda: fleet.duty("one").worker == goal and fleet.running("one"), LIMIT_S)
    assert took <= TIMING.ping + 3 * TIMING.brisk + A_LOOK_OR_SO


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
