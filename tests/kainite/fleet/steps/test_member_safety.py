"""Any workers, any leaders, any faults, in any order: what must hold at every instant, and what must come in the end.

At every instant: no two programs of one duty run, and nobody but the operator changes what the operator wants. In the
end, once faults stop: every wanted duty runs at one worker, within a stated time.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kainite.fleet.model.records import Command, Duty, Work
from kainite.fleet.model.states import DutyStatus
from kainite.fleet.steps.plan import ProgramPhase
from support.duty_fleet import TIMING, Fate, SimFleet, SimWorker

NAMES = ("one", "two", "three")
WORK = Work(tries=10**6, backoff=0.5, backoff_max=2.0, start_timeout=4.0, stop_grace=1.0)
DECLARED = tuple(Duty(name, WORK, declared=True) for name in NAMES)

names = st.sampled_from(NAMES)
places = st.integers(0, 5)
fates = st.sampled_from(Fate)

STATED_S = 2 * TIMING.silence + 2 * TIMING.timeout + 30 * TIMING.ping
"""Longest time without a running program once faults have ended: silence of the dead, a new leader, starts,
retries."""


class FaultyFleet(RuleBasedStateMachine):
    @initialize(number=st.integers(1, 4))
    def start(self, number: int) -> None:
        self.fleet = SimFleet()
        self.wanted = dict.fromkeys(NAMES, True)
        self.fate = Fate.DONE
        for place in range(number):
            self.join(f"w{place}")
        self.fleet.rounds(4)

    def join(self, name: str) -> None:
        worker = self.fleet.worker(name, DECLARED)
        worker.fate = self.next_fate

    def next_fate(self) -> Fate:
        fate, self.fate = self.fate, Fate.DONE
        return fate

    def pick(self, place: int) -> SimWorker | None:
        living = self.fleet.living()
        return living[place % len(living)] if living else None

    @rule(place=places)
    def look(self, place: int) -> None:
        if worker := self.pick(place):
            worker.look()

    @rule(place=places)
    def read_and_stand_still(self, place: int) -> None:
        if worker := self.pick(place):
            worker.begin()

    @rule(place=places, steps=st.integers(1, 3))
    def take_some_steps(self, place: int, steps: int) -> None:
        if worker := self.pick(place):
            for _ in range(steps):
                worker.go_on()

    @rule(place=places, midway=st.booleans(), rounds=st.integers(1, 20))
    def one_stands_still_while_the_others_go_on(self, place: int, midway: bool, rounds: int) -> None:
        worker = self.pick(place)
        if worker is None:
            return
        if midway:
            worker.begin()
        self.fleet.frozen = {self.fleet.workers.index(worker)}
        for _ in range(rounds):
            self.fleet.rounds(1)
            self.no_duty_runs_twice()
        self.fleet.frozen = set()
        while midway and worker.go_on():
            self.no_duty_runs_twice()

    @rule(fate=fates)
    def something_happens_to_the_next_call(self, fate: Fate) -> None:
        self.fate = fate

    @rule(place=st.integers(0, 9))
    def late_writes_come(self, place: int) -> None:
        self.fleet.workers[place % len(self.fleet.workers)].deliver()

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 2.0, 3.0, 4.5, 6.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.fleet.clock.now += seconds

    @rule(rounds=st.integers(1, 4))
    def all_look(self, rounds: int) -> None:
        self.fleet.rounds(rounds)

    @rule()
    def programs_get_on(self) -> None:
        self.fleet.begin_all()

    @rule(place=places, duty=names, clean=st.booleans())
    def a_program_ends(self, place: int, duty: str, clean: bool) -> None:
        worker = self.pick(place)
        if worker and duty in worker.programs:
            worker.programs[duty].phase, worker.programs[duty].clean = ProgramPhase.ENDED, clean

    @rule(place=places)
    def a_worker_dies(self, place: int) -> None:
        if worker := self.pick(place):
            worker.crash()

    @rule(place=places)
    def a_worker_ends(self, place: int) -> None:
        if worker := self.pick(place):
            worker.member.closing = True

    @precondition(lambda self: len(self.fleet.living()) < 5)
    @rule(name=st.sampled_from(["w0", "w1", "w2", "new"]))
    def a_worker_comes(self, name: str) -> None:
        self.join(name)

    @rule(duty=names, wanted=st.booleans())
    def the_operator_stops_or_starts(self, duty: str, wanted: bool) -> None:
        if duty not in self.fleet.store.read().duties or self.wanted[duty] == wanted:
            return
        self.wanted[duty] = wanted
        (self.fleet.unhalt if wanted else self.fleet.halt)(duty)

    @rule(duty=names, place=places)
    def the_operator_moves(self, duty: str, place: int) -> None:
        picture = self.fleet.store.read()
        workers = sorted(picture.workers)
        if duty in picture.duties and workers and picture.duties[duty].status.held:
            goal = workers[place % len(workers)]
            if goal != picture.duties[duty].worker:
                self.fleet.change(replace(picture.duties[duty], goal=goal))

    @rule(place=places, command=st.sampled_from([*Command, "unknown"]), duty=names)
    def the_operator_sends(self, place: int, command: str, duty: str) -> None:
        worker = self.pick(place)
        if worker and command != Command.SHUT_DOWN:
            self.fleet.send(worker.name, command, duty)

    @invariant()
    def no_duty_runs_twice(self) -> None:
        for name in NAMES:
            assert len(self.fleet.running(name)) <= 1, f"{name} runs twice"

    @invariant()
    def only_the_operator_decides_what_is_wanted(self) -> None:
        for name, duty in self.fleet.store.read().duties.items():
            assert duty.wanted == self.wanted[name]

    def teardown(self) -> None:
        if not hasattr(self, "fleet"):
            return
        self.fate = Fate.DONE
        for worker in self.fleet.workers:
            worker.deliver()
        for name in self.fleet.store.read().workers:
            self.fleet.send(name, Command.ENABLE)
        self.join("last")
        for _ in range(int(STATED_S / TIMING.ping)):
            for worker in self.fleet.living():
                worker.look()
                self.no_duty_runs_twice()
            self.fleet.begin_all()
            self.fleet.clock.now += TIMING.ping
            if all(self.is_as_wanted(name) for name in NAMES):
                break
        self.only_the_operator_decides_what_is_wanted()
        assert [name for name in NAMES if not self.is_as_wanted(name)] == []

    def is_as_wanted(self, name: str) -> bool:
        duty = self.fleet.store.read().duties.get(name)
        expected = DutyStatus.RUNNING if self.wanted[name] else DutyStatus.STOPPED
        runs = len(self.fleet.running(name))
        return duty is not None and duty.status is expected and runs == self.wanted[name]


def test_no_fault_makes_a_duty_run_twice_or_keeps_one_from_running() -> None:
    run_state_machine_as_test(
        FaultyFleet,
        settings=settings(
            max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
