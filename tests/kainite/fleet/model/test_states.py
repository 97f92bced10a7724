"""The tables of statuses: what each of them allows, and to whom."""

from __future__ import annotations

import itertools

import pytest

from kainite.fleet.model.records import Duty, Lead, Picture, Work, Worker
from kainite.fleet.model.states import (
    DUTY_TRANSITIONS,
    WORKER_TRANSITIONS,
    By,
    DutyStatus,
    IllegalTransitionError,
    WorkerStatus,
    check_duty,
    check_worker,
)

ME = Worker("w", "1")


@pytest.mark.parametrize(("old", "new", "by"), list(itertools.product(WorkerStatus, WorkerStatus, By)))
def test_a_worker_changes_as_the_table_says(old: WorkerStatus, new: WorkerStatus, by: By) -> None:
    if old is new or by in WORKER_TRANSITIONS.get((old, new), ()):
        check_worker(old, new, by)
    else:
        with pytest.raises(IllegalTransitionError):
            check_worker(old, new, by)


@pytest.mark.parametrize(("old", "new", "by"), list(itertools.product(DutyStatus, DutyStatus, By)))
def test_a_duty_changes_as_the_table_says(old: DutyStatus, new: DutyStatus, by: By) -> None:
    if old is new or by in DUTY_TRANSITIONS.get((old, new), ()):
        check_duty(old, new, by)
    else:
        with pytest.raises(IllegalTransitionError):
            check_duty(old, new, by)


def test_only_a_worker_says_that_a_duty_runs() -> None:
    reaching = {by for (_, new), who in DUTY_TRANSITIONS.items() if new is DutyStatus.RUNNING for by in who}
    assert reaching == {By.WORKER}


def test_only_an_operator_clears_an_error_or_starts_what_stopped() -> None:
    leaving = [who for (old, _), who in DUTY_TRANSITIONS.items() if old in (DutyStatus.ERROR, DutyStatus.STOPPED)]
    assert set(leaving) == {frozenset({By.OPERATOR})}


def test_a_duty_that_is_no_workers_names_none() -> None:
    given = Duty("d", Work()).given_to(ME)
    assert (given.worker, given.incarnation, given.assignment) == ("w", "1", 1)
    freed = given.become(DutyStatus.UNASSIGNED, By.WORKER)
    assert (freed.worker, freed.incarnation, freed.assignment) == ("", "", 1)


def test_a_duty_belongs_to_one_process_not_to_a_name() -> None:
    given = Duty("d", Work()).given_to(ME)
    assert given.belongs_to(ME)
    assert not given.belongs_to(Worker("w", "2"))
    assert Lead("w", "1", 3).is_of(ME)
    assert not Lead("w", "2", 3).is_of(ME)
    assert Picture(duties={"d": given}).load_of(ME) == 1
