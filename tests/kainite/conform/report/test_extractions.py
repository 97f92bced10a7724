"""What an extractor's answer says about it."""

from __future__ import annotations

import pytest

from kainite.conform import CaseVerdict
from kainite.conform.cases.case import Extract
from kainite.conform.exchange.step_result import Reaction, StepResult
from kainite.conform.report.extractions import MOST_BYTES, judge_extraction

RUN, CYCLE, KEPT = Extract(), Extract(b"{}"), Extract(b"{}", offset_wanted=True)
PASS, NOTE, FAIL = CaseVerdict.PASS, CaseVerdict.NOTE, CaseVerdict.FAIL
OFFSET = b'{"offset":7}'


@pytest.mark.parametrize(
    ("step", "messages", "expected"),
    [
        (CYCLE, (b'{"uow":"T"}',), []),
        (CYCLE, (), [(PASS, "gave no messages")]),
        (CYCLE, (b"",), [(PASS, "gave no messages")]),
        (CYCLE, (b"x" * MOST_BYTES,), []),
        (CYCLE, (b"x" * (MOST_BYTES + 1),), [(FAIL, "more than 1 MiB")]),
        (KEPT, (b"a", OFFSET), []),
        (KEPT, (OFFSET,), [(PASS, "gave no messages")]),
        (KEPT, (b"a", b'{"offset":7,"ahead":true}'), []),
        (KEPT, (b"a",), [(FAIL, "without a new")]),
        (KEPT, (b'{"offset":7,"uow":"T"}',), [(FAIL, "without a new")]),  # a record that has such a field
        (KEPT, (b'"offset" of a text',), [(FAIL, "without a new")]),
    ],
)
def test_an_answer_has_its_findings(
    step: Extract, messages: tuple[bytes, ...], expected: list[tuple[CaseVerdict, str]]
) -> None:
    found = list(judge_extraction(step, StepResult("a cycle", Reaction.ANSWERED, messages=messages)))

    assert [finding.verdict for finding in found] == [verdict for verdict, _ in expected]
    assert all(words in finding.text for finding, (_, words) in zip(found, expected, strict=True))


@pytest.mark.parametrize(("step", "noted"), [(RUN, True), (CYCLE, False)])
def test_only_a_plain_extractor_may_end_within_a_message(step: Extract, noted: bool) -> None:
    result = StepResult("its run", Reaction.UNFINISHED, "1 bytes behind the last message", messages=(b"a",))

    assert [finding.verdict for finding in judge_extraction(step, result)] == [NOTE] * noted
