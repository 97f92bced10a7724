"""Workers of a fleet that share one table, step by step, on a clock of the test's own.

A :class:`SimWorker` carries plans out as the daemon's loop does. Its programs are not processes: a program runs until
it ends, is stopped, loses its worker, or its guard's time is over. A worker may stand still at any step (its guards
do not), and each of its writes may be lost, done without an answer, or refused for now.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from kainite.fleet.model.records import Command, Duty, Worker, WorkerMessage
from kainite.fleet.model.states import By, DutyStatus
from kainite.fleet.steps.member import FleetMember
from kainite.fleet.steps.observer import FleetLook
from kainite.fleet.steps.plan import (
    ForgetProgram,
    KillAll,
    KillProgram,
    Notice,
    Order,
    PlanStep,
    ProgramPhase,
    ProgramState,
    ShutDown,
    StartProgram,
    StopProgram,
)
from kainite.fleet.steps.timing import Timing
from kainite.fleet.store.contract import FleetCommit, PutRecord
from kainite.fleet.store.memory import MemoryFleetStore

TIMING = Timing(ping=1.0, timeout=2.5, rebalance=50.0, message_life=20.0, forget=100.0)


SOON_S = 0.05
"""The pause of the daemon's loop after a look that has changed something."""


class Fate(Enum):
    """What becomes of a call of the table."""

    DONE = auto()
    LOST = auto()
    UNANSWERED = auto()
    LATE = auto()
    """A write that was lost, as it seems, and comes when :meth:`SimWorker.deliver` says."""


@dataclass
class Clock:
    """The boot clock of all hosts: they run alike, and nobody compares them."""

    now: float = 1_000.0


@dataclass
class SimProgram:
    """One run of a program."""

    duty: Duty
    run: int
    started: float
    guard_until: float
    phase: ProgramPhase = ProgramPhase.STARTING
    told: bool = False
    clean: bool = False

    def runs(self, now: float) -> bool:
        return self.phase is not ProgramPhase.ENDED and now < self.guard_until

    def state(self, now: float) -> ProgramState:
        fenced = now >= self.guard_until and self.phase is not ProgramPhase.ENDED
        phase = ProgramPhase.ENDED if fenced else self.phase
        error = "" if self.clean else "status 1"
        return ProgramState(
            self.duty.name, self.duty.assignment, self.run, phase, self.started, self.told or fenced, self.clean, error
        )


class SimWorker:
    """One worker's process.

    Attributes:
        runs: numbers that no two programs and no two incarnations share.
        fate: what becomes of the next call of the table.
        changed: whether the last look has changed more than a sign of life; the daemon's loop looks again at once.
    """

    runs = itertools.count(1)

    def __init__(
        self,
        name: str,
        store: MemoryFleetStore,
        clock: Clock,
        declared: tuple[Duty, ...] = (),
        timing: Timing = TIMING,
        **record: object,
    ) -> None:
        me = replace(Worker(name, ""), **record)  # type: ignore[arg-type]
        self.member = FleetMember(me, timing, declared, new_incarnation=lambda: str(next(self.runs)))
        self.name = name
        self.programs: dict[str, SimProgram] = {}
        self.fate: Callable[[], Fate] = lambda: Fate.DONE
        self.dead = False
        self.shut_down = False
        self.reports: list[str] = []
        self.changed = False
        self._store = store
        self._clock = clock
        self._plan: Iterator[PlanStep] | None = None
        self._late: list[FleetCommit] = []

    def look(self) -> None:
        """Reads the table and carries the whole plan out."""
        self.begin()
        while self.go_on():
            pass

    def begin(self) -> None:
        """Reads the table, and leaves the plan for :meth:`go_on`: the worker may stand still before each step."""
        self._plan, self.changed = None, False
        if self.dead or self.member.left:
            return
        began = self._clock.now
        if self.fate() is not Fate.DONE:
            self._fence()
            return
        states = {name: program.state(self._clock.now) for name, program in self.programs.items()}
        self._plan = self.member.look(FleetLook(self._store.read(), began, self._clock.now), states)

    def go_on(self) -> bool:
        """Carries out the next step; returns whether there may be another one."""
        if self._plan is None or self.dead:
            return False
        self._fence()
        step = next(self._plan, None) if self._plan is not None else None
        done = step is not None and self._carry_out(step)
        self.changed |= step is not None and not (done and step.idle)
        if not done:
            self._plan = None
        return self._plan is not None

    def crash(self) -> None:
        """Ends the process with SIGKILL; its guards end its programs."""
        self.dead = True
        self.programs = {}

    def deliver(self) -> None:
        """Lets its late writes come to the table."""
        late, self._late = self._late, []
        for commit in late:
            self._store.commit(commit)

    def _fence(self) -> None:
        if self.programs and self._clock.now >= self.member.lease_end:
            self.programs = {}
            self._plan = None

    def _carry_out(self, step: PlanStep) -> bool:
        for order in step.before:
            self._obey(order)
        if step.commit is not None and not self._commit(step):
            return False
        for order in step.after:
            self._obey(order)
        return True

    def _commit(self, step: PlanStep) -> bool:
        assert step.commit is not None
        began, fate = self._clock.now, self.fate()
        if fate in (Fate.LOST, Fate.LATE):
            self._late += [step.commit] if fate is Fate.LATE else []
            return False
        done = self._store.commit(step.commit)
        if fate is Fate.UNANSWERED:
            return False
        if done and step.pings:
            self.member.pinged(began)
            for program in self.programs.values():
                if program.runs(self._clock.now):
                    program.guard_until = self.member.lease_end
        return done

    def _obey(self, order: Order) -> None:
        match order:
            case KillAll():
                self.programs = {}
            case StartProgram(duty):
                assert duty.name not in self.programs, "a program is started beside another one of the same duty"
                if self._clock.now < self.member.lease_end:
                    run, until = next(self.runs), self.member.lease_end
                    self.programs[duty.name] = SimProgram(duty, run, self._clock.now, until)
            case StopProgram(name):
                if name in self.programs:
                    self.programs[name].phase, self.programs[name].told = ProgramPhase.STOPPING, True
            case KillProgram(name, _, failed):
                if name in self.programs and self.programs[name].phase is not ProgramPhase.ENDED:
                    self.programs[name].phase = ProgramPhase.ENDED
                    self.programs[name].told |= not failed
            case ForgetProgram(name):
                self.programs.pop(name, None)
            case ShutDown():
                self.shut_down = self.member.closing = True
            case Notice(what, about):
                self.reports.append(f"{what}: {about}")


@dataclass
class SimFleet:
    """The table, the workers on it, and an operator."""

    store: MemoryFleetStore = field(default_factory=MemoryFleetStore)
    clock: Clock = field(default_factory=Clock)
    workers: list[SimWorker] = field(default_factory=list)
    frozen: set[int] = field(default_factory=set)
    """Places of the workers that stand still, between two looks or within one."""
    timing: Timing = TIMING

    def worker(self, name: str, declared: tuple[Duty, ...] = (), **record: object) -> SimWorker:
        self.workers.append(SimWorker(name, self.store, self.clock, declared, self.timing, **record))
        return self.workers[-1]

    def living(self) -> list[SimWorker]:
        return [worker for worker in self.workers if not worker.dead and not worker.member.left]

    def running(self, duty: str) -> list[SimProgram]:
        """Returns the programs of a duty that run now, whoever's they are."""
        programs = [worker.programs.get(duty) for worker in self.workers]
        return [program for program in programs if program is not None and program.runs(self.clock.now)]

    def begin_all(self) -> None:
        """Makes all programs that start ready, and those that stop end."""
        for worker in self.workers:
            for program in worker.programs.values():
                if program.phase is ProgramPhase.STARTING:
                    program.phase = ProgramPhase.READY
                elif program.phase is ProgramPhase.STOPPING:
                    program.phase = ProgramPhase.ENDED

    def rounds(self, number: int, seconds: float = 1.0) -> None:
        """Lets all workers look, one after the other, so many times; as the daemon's, again at once after changes."""
        for _ in range(number):
            for place, worker in [*enumerate(self.workers)] * 3:
                if place not in self.frozen:
                    worker.look()
            self.begin_all()
            self.clock.now += seconds

    def duty(self, name: str) -> Duty:
        return self.store.read().duties[name]

    def change(self, duty: Duty) -> None:
        assert self.store.commit(FleetCommit((PutRecord(duty),)))

    def add(self, duty: Duty) -> None:
        self.change(duty)

    def halt(self, name: str) -> None:
        """Stops a duty as ``kainite fleet stop`` does."""
        duty = replace(self.duty(name), halted=True)
        free = duty.status in (DutyStatus.UNASSIGNED, DutyStatus.ERROR)
        self.change(duty.become(DutyStatus.STOPPED, By.OPERATOR) if free else duty)

    def unhalt(self, name: str) -> None:
        """Starts a duty as ``kainite fleet start`` does."""
        duty = replace(self.duty(name), halted=False)
        free = duty.status in (DutyStatus.STOPPED, DutyStatus.ERROR)
        self.change(duty.become(DutyStatus.UNASSIGNED, By.OPERATOR) if free else duty)

    def send(self, worker: str, command: Command | str, content: str = "") -> None:
        picture = self.store.read()
        read = picture.workers[worker].read if worker in picture.workers else 0
        number = max([read, *(message.number for message in picture.messages if message.worker == worker)]) + 1
        assert self.store.commit(FleetCommit((PutRecord(WorkerMessage(worker, number, command, content)),)))


class PacedFleet(SimFleet):
    """Workers that look when the daemon's loop does: at once after a change, early when they expect something, in turn.

    Args:
        timing: of the fleet.
        store: the table.
    """

    def __init__(self, timing: Timing = TIMING, store: MemoryFleetStore | None = None) -> None:
        super().__init__(store or MemoryFleetStore(), timing=timing)
        self.looks = 0
        self._due: dict[SimWorker, float] = {}

    def join(self, name: str, declared: tuple[Duty, ...], phase: float) -> None:
        """Adds a worker that looks after so many seconds first."""
        self._due[self.worker(name, declared)] = self.clock.now + phase

    def wake(self, worker: SimWorker) -> None:
        """Lets a worker look at once."""
        self._due[worker] = self.clock.now

    def go_on(self, seconds: float) -> None:
        """Lets time pass."""
        end = self.clock.now + seconds
        while (due := min((self._due_of(worker) for worker in self.living()), default=end)) < end:
            self.clock.now = max(self.clock.now, due)
            for worker in self.living():
                if self._due_of(worker) <= self.clock.now:
                    self._look(worker)
        self.clock.now = end

    def until(self, condition: Callable[[], object], limit: float) -> float:
        """Returns how long it takes until a condition holds, to a tenth of the interval between brisk looks."""
        began = self.clock.now
        while not condition():
            assert self.clock.now - began < limit, "it is not so within its time"
            self.go_on(self.timing.brisk / 10)
        return self.clock.now - began

    def _look(self, worker: SimWorker) -> None:
        now = self.clock.now
        for program in worker.programs.values():
            if program.phase is ProgramPhase.STARTING and now >= program.started + program.duty.work.ready_after:
                program.phase = ProgramPhase.READY
            elif program.phase is ProgramPhase.STOPPING:
                program.phase = ProgramPhase.ENDED
        worker.look()
        self.looks += 1
        expected = worker.member.next_due()
        pause = self.timing.ping if expected is None else min(self.timing.ping, expected - now)
        self._due[worker] = now + (SOON_S if worker.changed else max(SOON_S, pause))

    def _due_of(self, worker: SimWorker) -> float:
        """Returns when a worker looks: a program that is ready, or has ended, wakes it up."""
        starting = (each for each in worker.programs.values() if each.phase is ProgramPhase.STARTING)
        ready = min((each.started + each.duty.work.ready_after for each in starting), default=self._due[worker])
        stopping = any(each.phase is ProgramPhase.STOPPING for each in worker.programs.values())
        return self.clock.now if stopping else min(self._due[worker], ready)
