"""The answers to a child's checkpoint requests."""

from __future__ import annotations

import pytest

from kainite.child.events import Action, CheckpointRequested
from kainite.conform.cases.case import Refuse, ScriptedCall
from kainite.conform.cases.samples import generic
from kainite.conform.exchange.checkpoint_answers import CheckpointAnswers
from kainite.leases.holding.checkpoint_requests import CheckpointErrorName

LAST = CheckpointRequested(None, None)
PROCESS = ScriptedCall(Action.PROCESS_RECORDS, generic().records(2))


def delivered(call: ScriptedCall) -> CheckpointAnswers:
    answers = CheckpointAnswers()
    for each in (ScriptedCall(Action.INITIALIZE), call):
        answers.deliver(each)
    return answers


def test_the_last_record_s_checkpoint_is_granted() -> None:
    asked = delivered(PROCESS).answer(PROCESS, LAST, 0)
    assert (asked.error, asked.end) == (None, False)


def test_the_shard_s_end_is_granted_as_such() -> None:
    end = ScriptedCall(Action.SHARD_ENDED)
    answers = delivered(PROCESS)
    answers.deliver(end)
    asked = answers.answer(end, LAST, 0)
    assert (asked.error, asked.end) == (None, True)


@pytest.mark.parametrize("action", [Action.INITIALIZE, Action.LEASE_LOST])
def test_calls_without_a_checkpointer_refuse(action: Action) -> None:
    call = ScriptedCall(action)
    assert delivered(PROCESS).answer(call, LAST, 0).error == CheckpointErrorName.INVALID_STATE.value


@pytest.mark.parametrize(("times", "before", "refused"), [(2, 0, True), (2, 1, True), (2, 2, False), (None, 99, True)])
def test_a_case_may_refuse_the_first_requests_or_all(times: int | None, before: int, refused: bool) -> None:
    call = ScriptedCall(Action.PROCESS_RECORDS, PROCESS.records, refuse=Refuse(CheckpointErrorName.THROTTLING, times))
    error = delivered(call).answer(call, LAST, before).error
    assert error == (CheckpointErrorName.THROTTLING.value if refused else None)


def test_a_number_that_was_not_delivered_is_refused_and_the_cause_named() -> None:
    far = CheckpointRequested(str(10**60), None)
    asked = delivered(PROCESS).answer(PROCESS, far, 0)
    assert asked.error
    assert asked.cause
