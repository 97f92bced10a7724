"""Rounds of a load's steps: what one step's outcome means for the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from kainite.base.errors import TargetFencedError, TargetRejectedError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate import ledger
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.ledger import CopyStep, LoadStep
from kainite.replicate.load_ledger import LoadLedger
from kainite_spark.load.rounds import LostSnapshotError, StepRounds, goes_on
from kainite_spark.load.tasks import LoadStepResult, LoadTask, StepOutcome
from support.replicas import LOG

TASK = LoadTask(ReplicaEnds(SourceSlot("", "", ""), "", LOG), 1, None)


@dataclass
class Answers:
    """Implements :class:`kainite_spark.load.rounds.StepRunner` with outcomes that a test names, else DONE."""

    connection: psycopg.Connection
    outcomes: dict[int, StepOutcome]
    ran: list[int] = field(default_factory=list)
    parallelism: int = 1

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        look()
        return [self._one(step) for step in steps]

    def _one(self, step: int) -> LoadStepResult:
        self.ran.append(step)
        outcome = self.outcomes.pop(step, StepOutcome.DONE)
        if outcome is StepOutcome.DONE:
            self.connection.execute(ledger.DONE, (0, 0, LOG, step))
        return LoadStepResult(step, outcome, "" if outcome is StepOutcome.DONE else "a cause")


@pytest.fixture
def begun(postgres: str) -> Iterator[tuple[LoadLedger, psycopg.Connection]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        made = LoadLedger(connection, LOG)
        made.create()
        made.begin_generation()
        made.note_steps(LoadStep(n, 1 + n // 3, "public", "item", CopyStep((), "")) for n in range(1, 5))
        yield made, connection


def run(begun: tuple[LoadLedger, psycopg.Connection], outcomes: dict[int, StepOutcome]) -> list[int]:
    answers = Answers(begun[1], outcomes)
    StepRounds(begun[0], answers, threading.Event(), lambda: None).run(TASK)
    return answers.ran


def test_stages_follow_each_other_and_a_step_may_be_tried_again(begun: tuple[LoadLedger, psycopg.Connection]) -> None:
    assert run(begun, {2: StepOutcome.AGAIN}) == [1, 2, 2, 3, 4]


def test_a_refused_step_ends_its_stage_and_is_told_at_the_end(begun: tuple[LoadLedger, psycopg.Connection]) -> None:
    with pytest.raises(TargetRejectedError, match=r"1 step of the load was refused.*public\.item: a cause"):
        run(begun, {1: StepOutcome.REFUSED})
    assert run(begun, {}) == [1, 3, 4]


@pytest.mark.parametrize(
    ("outcome", "error"), [(StepOutcome.FENCED, TargetFencedError), (StepOutcome.SNAPSHOT_LOST, LostSnapshotError)]
)
def test_a_driver_that_was_shut_out_and_a_lost_snapshot_end_it(
    begun: tuple[LoadLedger, psycopg.Connection], outcome: StepOutcome, error: type[Exception]
) -> None:
    with pytest.raises(error):
        run(begun, {3: outcome})


def test_a_load_without_a_point_is_not_gone_on_with(begun: tuple[LoadLedger, psycopg.Connection]) -> None:
    source: Any = None  # is not asked
    assert not goes_on(source, begun[0], None)
    assert not goes_on(source, begun[0], begun[0].found())
