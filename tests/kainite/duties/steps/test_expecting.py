"""When a worker looks before its turn: what a failover takes with the daemon's own pauses, and what idleness costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.duties.model.records import Duty, Work
from kainite.duties.model.states import DutyStatus, LeadershipStatus
from kainite.duties.steps.expecting import MARGIN_S
from support.duty_fleet import TIMING, SimFleet, SimWorker

NAMES = ("one", "two", "three")
DECLARED = tuple(Duty(name, Work(command=("true",)), declared=True) for name in NAMES)
SOON_S = 0.05


class Paced(SimFleet):
    """Workers that look when the daemon's loop does: at once after a change, when they expect something, or in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.due: dict[SimWorker, float] = {}
        self.looks = 0

    def begin(self, phases: tuple[float, ...], declared: tuple[Duty, ...] = DECLARED) -> Paced:
        for name, phase in zip("abcde", phases, strict=False):
            self.due[self.worker(name, declared)] = self.clock.now + phase
        self.go_on(30.0)
        return self

    def go_on(self, seconds: float) -> None:
        end = self.clock.now + seconds
        while self.clock.now < end:
            worker, due = min(((each, self.due[each]) for each in self.living()), key=lambda each: each[1])
            self.clock.now = max(self.clock.now, due)
            worker.look()
            self.looks += 1
            self.begin_all()
            expected = worker.member.next_due()
            pause = TIMING.ping if expected is None else min(TIMING.ping, expected - self.clock.now)
            self.due[worker] = self.clock.now + (SOON_S if worker.changed else max(SOON_S, pause))


PHASES = [(0.0, 0.3, 0.6), (0.1, 0.9, 0.2), (0.5, 0.0, 0.99)]


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize("age", [0.0, 0.7, 1.4, 2.0])
def test_a_dead_workers_duties_start_elsewhere_when_its_silence_is_over(phases: tuple[float, ...], age: float) -> None:
    fleet = Paced().begin(phases)
    fleet.go_on(age)
    name = next(name for name in NAMES if fleet.duty(name).worker == "b")
    fleet.workers[1].crash()
    died = fleet.clock.now
    while not fleet.running(name):
        fleet.go_on(SOON_S)
    assert fleet.clock.now - died <= TIMING.silence + TIMING.ping + TIMING.brisk + 8 * SOON_S


@pytest.mark.parametrize("phases", PHASES)
def test_another_one_leads_when_the_leaders_time_is_over(phases: tuple[float, ...]) -> None:
    fleet = Paced().begin(phases)
    leader = next(each for each in fleet.workers if each.member.leadership is LeadershipStatus.LEADER)
    leader.crash()
    died = fleet.clock.now
    while not any(each.member.leadership is LeadershipStatus.LEADER for each in fleet.living()):
        fleet.go_on(SOON_S)
    assert fleet.clock.now - died <= TIMING.timeout + TIMING.ping + 4 * SOON_S


def test_a_move_is_seen_by_all_who_have_a_part_in_it() -> None:
    fleet = Paced().begin(PHASES[0])
    duty = fleet.duty("one")
    goal = "b" if duty.worker != "b" else "c"
    fleet.change(replace(duty, goal=goal))
    asked = fleet.clock.now
    while fleet.duty("one").worker != goal or not fleet.running("one"):
        fleet.go_on(SOON_S)
    assert fleet.clock.now - asked <= TIMING.ping + 3 * TIMING.brisk + 10 * SOON_S


def test_a_fleet_in_which_nothing_happens_reads_once_a_ping() -> None:
    fleet = Paced().begin(PHASES[0])
    fleet.looks = 0
    fleet.go_on(100 * TIMING.ping)
    assert fleet.looks <= 3 * 101


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
