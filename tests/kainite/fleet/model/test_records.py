"""What the records say of each other: whose a duty is, and what a worker carries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.fleet.model.records import Duty, Lead, Picture, Restart, Work, Worker
from kainite.fleet.model.states import By, DutyStatus, IllegalTransitionError, WorkerStatus

ME = Worker("w", "now", labels=("big",))
MINE = Duty("d", Work(weight=2.0), DutyStatus.RUNNING, "w", "now", assignment=3, error="why")


def test_a_duty_is_one_process_s() -> None:
    assert MINE.belongs_to(ME)
    assert not MINE.belongs_to(replace(ME, incarnation="later"))
    assert not replace(MINE, status=DutyStatus.STOPPED).belongs_to(ME)
    assert Lead("w", "now").is_of(ME)
    assert not Lead("w", "before").is_of(ME)


def test_a_duty_that_waits_or_runs_stays_whose_it_is_and_any_other_is_nobodys() -> None:
    waiting = MINE.become(DutyStatus.WAITING, By.WORKER, "it ended")
    assert (waiting.worker, waiting.incarnation, waiting.error) == ("w", "now", "it ended")
    freed = MINE.become(DutyStatus.UNASSIGNED, By.WORKER)
    assert (freed.worker, freed.incarnation, freed.error) == ("", "", "")
    with pytest.raises(IllegalTransitionError):
        MINE.become(DutyStatus.ERROR, By.OPERATOR)


def test_a_duty_that_is_given_out_has_another_assignment_and_no_goal() -> None:
    free = replace(MINE, status=DutyStatus.UNASSIGNED, worker="", incarnation="", goal="w")
    given = free.given_to(ME)
    assert (given.status, given.worker, given.incarnation) == (DutyStatus.WAITING, "w", "now")
    assert (given.assignment, given.goal, given.error) == (4, "", "why")


def test_a_worker_becomes_only_what_the_tables_allow() -> None:
    assert ME.become(WorkerStatus.DEAD, By.LEADER).status is WorkerStatus.DEAD
    with pytest.raises(IllegalTransitionError):
        ME.become(WorkerStatus.DEAD, By.WORKER)


@pytest.mark.parametrize(
    ("affinity", "suits"), [((), False), (("w",), True), (("small", "big"), True), (("x",), False)]
)
def test_a_worker_suits_by_its_name_or_a_label(affinity: tuple[str, ...], suits: bool) -> None:
    assert ME.suits(Work(affinity=affinity)) is suits


@pytest.mark.parametrize(
    ("enabled", "halted", "wanted"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_a_duty_is_wanted_unless_an_operator_does_not_want_it(enabled: bool, halted: bool, wanted: bool) -> None:
    assert replace(MINE, enabled=enabled, halted=halted).wanted is wanted


def test_the_load_is_what_waits_and_what_runs_of_this_very_process() -> None:
    others = {
        "b": replace(MINE, name="b", status=DutyStatus.WAITING, work=Work(weight=0.5)),
        "x": replace(MINE, name="x", incarnation="before"),
        "y": replace(MINE, name="y", status=DutyStatus.STOPPED),
    }
    picture = Picture({"w": ME}, {"d": MINE, **others})
    assert [duty.name for duty in picture.duties_of(ME)] == ["b", "d"]
    assert picture.load_of(ME) == 2.5


def test_a_word_of_a_later_release_is_unknown() -> None:
    assert (Restart("on-sundays"), WorkerStatus("resting"), DutyStatus("paused")) == ("unknown", "unknown", "unknown")
