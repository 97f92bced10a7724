"""What a worker does about one of its duties, for each row of the table, and how it counts failures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.fleet.model.records import Duty, Picture, Restart, Work, Worker
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.fleet.steps.own_duties import OwnDuties, may_run
from kainite.fleet.steps.plan import (
    ForgetProgram,
    KillProgram,
    PlanStep,
    ProgramPhase,
    ProgramState,
    StartProgram,
    StopProgram,
)

ME = Worker("w", "now")
WORK = Work(command=("true",), start_timeout=5.0, backoff=1.0, tries=3)
WAITING = Duty("d", WORK, DutyStatus.WAITING, "w", "now", assignment=1, version="v1")
RUNNING = replace(WAITING, status=DutyStatus.RUNNING)


def program(
    phase: ProgramPhase, *, run: int = 1, since: float = 0.0, told: bool = False, clean: bool = False
) -> ProgramState:
    return ProgramState("d", 1, run, phase, since, told, clean, "" if clean else "status 1")


def steps(
    own: OwnDuties, duty: Duty | None, state: ProgramState | None = None, *, me: Worker = ME, now: float = 0.0
) -> list[PlanStep]:
    picture = Picture({"w": me}, {"d": duty} if duty else {})
    return list(own.steps(me, picture, {"d": state} if state else {}, now))


def written(step: PlanStep) -> Duty:
    assert step.commit is not None
    record = step.commit.changes[0].record
    assert isinstance(record, Duty)
    return record


def test_what_waits_is_started() -> None:
    assert steps(OwnDuties(), WAITING) == [PlanStep(before=(StartProgram(WAITING),))]


def test_what_ran_under_an_earlier_lease_waits_first() -> None:
    [step] = steps(OwnDuties(), RUNNING)
    assert written(step).status is DutyStatus.WAITING


def test_what_is_ready_runs() -> None:
    own = OwnDuties()
    assert steps(own, WAITING, program(ProgramPhase.STARTING), now=4.9) == []
    [step] = steps(own, WAITING, program(ProgramPhase.READY))
    assert written(step).status is DutyStatus.RUNNING
    assert steps(own, RUNNING, program(ProgramPhase.READY)) == []


def test_what_is_not_ready_for_too_long_is_killed_as_a_failure() -> None:
    [step] = steps(OwnDuties(), WAITING, program(ProgramPhase.STARTING), now=5.0)
    assert step.before == (KillProgram("d", "not ready within 5 s"),)


def test_an_end_counts_once_however_often_it_is_looked_at() -> None:
    own, ended = OwnDuties(), program(ProgramPhase.ENDED)
    for _ in range(5):
        [step] = steps(own, RUNNING, ended)
        assert written(step).status is DutyStatus.WAITING
        assert (written(step).error, step.after) == ("status 1", (ForgetProgram("d"),))
    assert own.next_due() is not None


def test_the_pause_is_waited_out() -> None:
    own = OwnDuties()
    steps(own, RUNNING, program(ProgramPhase.ENDED))
    due = own.next_due()
    assert due is not None
    assert steps(own, WAITING, now=due - 0.1) == []
    assert steps(own, WAITING, now=due) == [PlanStep(before=(StartProgram(WAITING),))]
    assert own.next_due() is None


def test_too_many_failures_are_an_error() -> None:
    own = OwnDuties()
    found = [steps(own, RUNNING, program(ProgramPhase.ENDED, run=run), now=float(run))[0] for run in (1, 2, 3)]
    assert [written(step).status for step in found] == [DutyStatus.WAITING, DutyStatus.WAITING, DutyStatus.ERROR]


def test_a_program_that_has_done_its_work_is_stopped() -> None:
    duty = replace(RUNNING, work=replace(WORK, restart=Restart.ON_FAILURE))
    [step] = steps(OwnDuties(), duty, program(ProgramPhase.ENDED, clean=True))
    assert (written(step).status, written(step).error) == (DutyStatus.STOPPED, "")


@pytest.mark.parametrize(
    ("duty", "me", "status"),
    [
        (replace(RUNNING, halted=True), ME, DutyStatus.STOPPED),
        (replace(RUNNING, enabled=False), ME, DutyStatus.STOPPED),
        (replace(RUNNING, goal="other"), ME, DutyStatus.UNASSIGNED),
        (RUNNING, replace(ME, status=WorkerStatus.DISABLED), DutyStatus.UNASSIGNED),
        (RUNNING, replace(ME, status=WorkerStatus.CLOSING), DutyStatus.UNASSIGNED),
        (replace(RUNNING, work=replace(WORK, kind="later")), ME, DutyStatus.UNASSIGNED),
    ],
    ids=["halted", "disabled", "moved", "worker disabled", "worker closes", "unknown kind"],
)
def test_what_may_not_run_here_is_stopped_and_then_given_back(duty: Duty, me: Worker, status: DutyStatus) -> None:
    own = OwnDuties()
    assert not may_run(duty, me)
    assert steps(own, duty, program(ProgramPhase.READY), me=me) == [PlanStep(before=(StopProgram("d"),))]
    assert steps(own, duty, program(ProgramPhase.STOPPING), me=me) == []
    [step] = steps(own, duty, program(ProgramPhase.ENDED, told=True), me=me)
    assert (written(step).status, step.after) == (status, (ForgetProgram("d"),))


def test_what_stays_after_all_is_written_before_it_starts() -> None:
    """Keeps a write that gave the duty back, and has no answer, from coming behind the program's start."""
    own = OwnDuties()
    steps(own, replace(RUNNING, goal="other"))
    [step] = steps(own, WAITING)
    assert step.before == ()
    assert written(step).status is DutyStatus.WAITING
    assert steps(own, replace(WAITING, version="v2")) == [
        PlanStep(before=(StartProgram(replace(WAITING, version="v2")),))
    ]


@pytest.mark.parametrize("duty", [None, replace(RUNNING, incarnation="another"), replace(RUNNING, assignment=2)])
def test_a_program_that_is_not_this_duty_s_is_killed_and_forgotten(duty: Duty | None) -> None:
    [step] = steps(OwnDuties(), duty, program(ProgramPhase.READY))
    assert step.before == (KillProgram("d", "the duty is not this worker's any more", failed=False),)
    [step] = steps(OwnDuties(), duty, program(ProgramPhase.ENDED))
    assert step.before == (ForgetProgram("d"),)


def test_whoever_gets_a_duty_again_counts_its_failures_from_0() -> None:
    own = OwnDuties()
    for run in (1, 2):
        steps(own, RUNNING, program(ProgramPhase.ENDED, run=run))
    steps(own, None)
    [step] = steps(own, RUNNING, program(ProgramPhase.ENDED, run=3))
    assert written(step).status is DutyStatus.WAITING
