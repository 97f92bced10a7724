"""Findings, judged from the result of a step."""

from __future__ import annotations

import pytest

from kainite.child.events import Action
from kainite.conform.cases.case import Case, Checkpointing, Messages, ScriptedCall, Weight
from kainite.conform.exchange.step_result import Reaction, StepResult
from kainite.conform.report.findings import CaseVerdict
from kainite.conform.report.judging import judge_call, judge_end, judge_idle, judge_messages, over

PROCESS = ScriptedCall(Action.PROCESS_RECORDS)
SLOW_S = 1.0


def case(step: ScriptedCall | Messages = PROCESS, weight: Weight = Weight.REQUIRED) -> Case:
    return Case("case", "a case", (step,), weight=weight)


def verdicts(call: ScriptedCall, result: StepResult, weight: Weight = Weight.REQUIRED) -> list[CaseVerdict]:
    return [finding.verdict for finding in judge_call(case(call, weight), call, result, SLOW_S, own_samples=True)]


@pytest.mark.parametrize(
    "reaction", [reaction for reaction in Reaction if reaction.name not in ("ANSWERED", "LEFT_OUT")]
)
def test_every_reaction_but_an_answer_fails_and_ends_the_case(reaction: Reaction) -> None:
    result = StepResult("processRecords", reaction, "5 s")
    assert verdicts(PROCESS, result) == [CaseVerdict.FAIL]
    assert verdicts(PROCESS, result, Weight.OPTIONAL) == [CaseVerdict.NOTE]
    assert over(result)


@pytest.mark.parametrize(
    ("call", "result", "expected"),
    [
        (PROCESS, StepResult("processRecords", Reaction.ANSWERED), []),
        (PROCESS, StepResult("processRecords", Reaction.LEFT_OUT), []),
        (PROCESS, StepResult("processRecords", Reaction.ANSWERED, seconds=1.1), [CaseVerdict.SLOW]),
        (PROCESS, StepResult("processRecords", Reaction.ANSWERED, junk=("hello",)), [CaseVerdict.NOTE]),
        (PROCESS, StepResult("processRecords", Reaction.ANSWERED, rejects=("no op",)), [CaseVerdict.FAIL]),
        (ScriptedCall(Action.INITIALIZE), StepResult("initialize", Reaction.ANSWERED, emitted=1), [CaseVerdict.FAIL]),
        (
            ScriptedCall(Action.SHARD_ENDED, checkpoint=Checkpointing.REQUIRED),
            StepResult("shardEnded", Reaction.ANSWERED),
            [CaseVerdict.FAIL],
        ),
        (
            ScriptedCall(Action.SHUTDOWN_REQUESTED, checkpoint=Checkpointing.WISE),
            StepResult("shutdownRequested", Reaction.ANSWERED),
            [CaseVerdict.NOTE],
        ),
        (
            ScriptedCall(Action.PROCESS_RECORDS, may_end=True),
            StepResult("processRecords", Reaction.GONE, "ended with status 1"),
            [CaseVerdict.PASS],
        ),
    ],
)
def test_a_call_s_result_has_its_findings(call: ScriptedCall, result: StepResult, expected: list[CaseVerdict]) -> None:
    assert verdicts(call, result) == expected


@pytest.mark.parametrize(
    ("took", "status", "expected"),
    [(None, None, [CaseVerdict.FAIL]), (0.1, 0, []), (0.1, 3, [CaseVerdict.NOTE])],
)
def test_the_end_of_input(took: float | None, status: int | None, expected: list[CaseVerdict]) -> None:
    assert [finding.verdict for finding in judge_end(took, status, 5.0)] == expected


def test_a_word_after_the_last_answer_fails_unless_the_case_is_optional() -> None:
    early = StepResult("", Reaction.EARLY, "{}")
    assert [finding.verdict for finding in judge_idle(case(), early)] == [CaseVerdict.FAIL]
    assert judge_idle(case(weight=Weight.OPTIONAL), early) == []
    assert judge_idle(case(), None) == []


@pytest.mark.parametrize(
    ("messages", "expected"),
    [((b'{"bad":"no JSON"}',), CaseVerdict.PASS), ((), CaseVerdict.NOTE)],
)
def test_a_bad_message_is_to_be_reported(messages: tuple[bytes, ...], expected: CaseVerdict) -> None:
    step = Messages((b"?",), bad=True)
    result = StepResult("a message", Reaction.ANSWERED, messages=messages)
    (finding,) = judge_messages(case(step), step, result, SLOW_S, own_samples=True)
    assert finding.verdict is expected
