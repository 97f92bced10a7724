"""A worker's step for its own duties and its programs: it reconciles the two.

==============  ==================================  ==========================================================
the table       the program                         then
==============  ==================================  ==========================================================
mine, wanted    none; waiting, its pause is over    start
mine, wanted    none; running                       waiting (it was lost with an earlier lease)
mine, wanted    ready; waiting                      running
mine, wanted    not ready for too long              kill; that is a failure
mine, wanted    ended by itself                     by the restart policy: waiting, stopped, or error; also where
                                                    it is to be moved, so that what has ended for good stays so
mine, not wanted, or to be moved, or the worker     stop; when it has ended: unassigned, or stopped where it is
is disabled or closes                               not wanted
not mine        any                                 kill
==============  ==================================  ==========================================================

A duty is *mine* when its record names this very process. Each status is written on the condition that the record is
still the one that was read, so a worker that has lost a duty writes nothing about it.

A write that gives a duty back and has no answer may come at any time later, as long as the record stands still. So
where such a duty is to run here after all, its record is written before its program starts: what comes then finds
another version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kainite.fleet.model.records import Duty, HistoryLine, Picture, Subject, Worker
from kainite.fleet.model.restarts import DutyRestart, Restarts, Verdict
from kainite.fleet.model.states import By, DutyStatus, WorkerStatus
from kainite.fleet.steps.plan import (
    ForgetProgram,
    KillProgram,
    Order,
    PlanStep,
    ProgramPhase,
    ProgramState,
    StartProgram,
    StopProgram,
)
from kainite.fleet.store.contract import FleetCommit, PutRecord

Programs = Mapping[str, ProgramState]


class OwnDuties:
    """Decides about this worker's duties, and remembers how their programs failed."""

    def __init__(self) -> None:
        self._restarts: dict[str, Restarts] = {}
        self._decisions: dict[int, DutyRestart] = {}  # by run, so that an end counts once however often it is looked at
        self._due: dict[str, float] = {}
        self._given_back: dict[str, str] = {}  # the version on which that was written, perhaps without success

    def steps(self, me: Worker, picture: Picture, programs: Programs, now: float) -> Iterator[PlanStep]:
        """Yields the writes and orders that bring the table and the programs together.

        Args:
            me: this worker's record.
            picture: the table's contents, as they were read.
            programs: this worker's programs, by their duty.
            now: seconds by the boot clock.
        """
        mine = {duty.name: duty for duty in picture.duties_of(me)}
        self._drop_all_but(mine, programs)
        for name, program in programs.items():
            duty = mine.get(name)
            if duty is None or duty.assignment != program.assignment:
                yield _strange(program)
                mine.pop(name, None)  # started when the strange one has gone
        for duty in mine.values():
            yield from self._of(duty, me, programs.get(duty.name), now)

    def next_due(self) -> float | None:
        """Returns when the next pause ends, by the boot clock; None when there is none."""
        return min(self._due.values(), default=None)

    def _of(self, duty: Duty, me: Worker, program: ProgramState | None, now: float) -> Iterator[PlanStep]:
        if program is not None and _is_own_end(duty, me, program):
            yield self._ended(duty, me, program, now)
        elif not may_run(duty, me):
            yield from self._ending(duty, me, program)
        elif program is None or (program.phase is ProgramPhase.ENDED and program.told_to_end):
            yield from self._beginning(duty, me, program, now)
        elif program.phase is ProgramPhase.STARTING and now - program.since >= duty.work.start_timeout:
            yield PlanStep(before=(KillProgram(duty.name, f"not ready within {duty.work.start_timeout:g} s"),))
        elif program.phase is ProgramPhase.READY and duty.status is DutyStatus.WAITING:
            yield _status(duty, me, DutyStatus.RUNNING, "it is ready")

    def _beginning(self, duty: Duty, me: Worker, program: ProgramState | None, now: float) -> Iterator[PlanStep]:
        forget = (ForgetProgram(duty.name),) if program is not None else ()
        if duty.status is DutyStatus.RUNNING:
            yield _status(duty, me, DutyStatus.WAITING, "its program is gone", after=forget)
        elif forget:
            yield PlanStep(before=forget)
        elif self._given_back.get(duty.name) == duty.version:
            yield _status(duty, me, DutyStatus.WAITING, "it stays here", error=duty.error)
        elif now >= self._due.get(duty.name, now):
            self._due.pop(duty.name, None)
            yield PlanStep(before=(StartProgram(duty),))

    def _ended(self, duty: Duty, me: Worker, program: ProgramState, now: float) -> PlanStep:
        if program.run not in self._decisions:
            restarts = self._restarts.setdefault(duty.name, Restarts())
            self._decisions[program.run] = restarts.ended(duty.work, now, clean=program.clean)
        decision = self._decisions[program.run]
        why = "it ended" if program.clean else program.error
        forget = (ForgetProgram(duty.name),)
        match decision.verdict:
            case Verdict.AGAIN:
                self._due[duty.name] = decision.due
                return _status(duty, me, DutyStatus.WAITING, why, after=forget, error="" if program.clean else why)
            case Verdict.DONE:
                return _status(duty, me, DutyStatus.STOPPED, why, after=forget)
            case Verdict.ERROR:
                self._restarts.pop(duty.name, None)
                return _status(duty, me, DutyStatus.ERROR, why, after=forget, error=why)

    def _ending(self, duty: Duty, me: Worker, program: ProgramState | None) -> Iterator[PlanStep]:
        if program is not None and program.phase is not ProgramPhase.ENDED:
            if program.phase is not ProgramPhase.STOPPING:
                yield PlanStep(before=(StopProgram(duty.name),))
            return
        status = DutyStatus.UNASSIGNED if duty.wanted else DutyStatus.STOPPED
        forget = (ForgetProgram(duty.name),) if program is not None else ()
        self._given_back[duty.name] = duty.version
        yield _status(duty, me, status, _why_not(duty, me), after=forget, error=duty.error)

    def _drop_all_but(self, mine: Mapping[str, Duty], programs: Programs) -> None:
        """Forgets the failures of duties that other workers have now: a worker that gets a duty counts from 0."""
        runs = {program.run for program in programs.values()}
        self._restarts = {name: kept for name, kept in self._restarts.items() if name in mine}
        self._due = {name: due for name, due in self._due.items() if name in mine}
        self._given_back = {name: version for name, version in self._given_back.items() if name in mine}
        self._decisions = {run: decision for run, decision in self._decisions.items() if run in runs}


def may_run(duty: Duty, me: Worker) -> bool:
    """Returns whether a duty that is this worker's is to run here."""
    here = duty.goal in ("", me.name) and me.can_run(duty)
    return me.status is WorkerStatus.ALIVE and duty.wanted and here


def _is_own_end(duty: Duty, me: Worker, program: ProgramState) -> bool:
    """Returns whether the restart policy decides: a worker that closes gives the duty back, since a host that goes
    down ends programs too.
    """
    ended = program.phase is ProgramPhase.ENDED and not program.told_to_end
    return ended and duty.wanted and me.status is not WorkerStatus.CLOSING


def _why_not(duty: Duty, me: Worker) -> str:
    if not duty.wanted:
        return "an operator stopped it" if duty.halted else "an operator disabled it"
    if duty.work.kind not in me.kinds:
        return f"this worker's release has no duties of the kind {duty.work.kind!r}"
    if not me.can_run(duty):
        return "this host's files do not declare it, and fleetCommands does not list its command"
    return f"it moves to {duty.goal}" if duty.goal not in ("", me.name) else f"the worker is {me.status}"


def _strange(program: ProgramState) -> PlanStep:
    """Returns the order about a program whose duty this worker does not hold, or holds no more."""
    if program.phase is ProgramPhase.ENDED:
        return PlanStep(before=(ForgetProgram(program.duty),))
    return PlanStep(before=(KillProgram(program.duty, "the duty is not this worker's any more", failed=False),))


def _status(
    duty: Duty, me: Worker, status: DutyStatus, why: str, *, after: tuple[Order, ...] = (), error: str = ""
) -> PlanStep:
    event = HistoryLine(Subject.DUTY, duty.name, status, me.name, why, me.name)
    return PlanStep(
        commit=FleetCommit((PutRecord(duty.become(status, By.WORKER, error)),), events=(event,)), after=after
    )
