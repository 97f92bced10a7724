"""Verdicts add up: a case has its worst finding's, and a report is as good as its cases."""

from __future__ import annotations

import pytest

from kainite.conform import CaseResult, CaseVerdict, ConformReport, Finding
from kainite.settings import ChildProtocol


def result(*verdicts: CaseVerdict) -> CaseResult:
    findings = (Finding(verdict, f"{verdict.name.lower()} {number}") for number, verdict in enumerate(verdicts))
    return CaseResult("case", "a case", tuple(findings))


def report(*verdicts: CaseVerdict) -> ConformReport:
    return ConformReport(("true",), ChildProtocol.JSON_LINES, tuple(map(result, verdicts)))


@pytest.mark.parametrize(
    ("verdicts", "expected", "text"),
    [
        ((), CaseVerdict.PASS, ""),
        ((CaseVerdict.PASS, CaseVerdict.PASS), CaseVerdict.PASS, "pass 0"),
        ((CaseVerdict.NOTE, CaseVerdict.SLOW, CaseVerdict.NOTE), CaseVerdict.SLOW, "slow 1"),
        ((CaseVerdict.FAIL, CaseVerdict.NOTE, CaseVerdict.FAIL), CaseVerdict.FAIL, "fail 0; fail 2"),
        ((CaseVerdict.SKIPPED,), CaseVerdict.SKIPPED, "skipped 0"),
    ],
)
def test_the_worst_finding_is_the_cases_verdict(
    verdicts: tuple[CaseVerdict, ...], expected: CaseVerdict, text: str
) -> None:
    assert (result(*verdicts).verdict, result(*verdicts).text) == (expected, text)


def test_what_was_found_twice_is_told_once_and_can_be_printed() -> None:
    twice = (Finding(CaseVerdict.NOTE, "odd \x1b[31m"),) * 2

    assert CaseResult("case", "a case", twice).text == r"odd \x1b[31m"


@pytest.mark.parametrize(
    ("worst", "ok", "strictly"),
    [
        (CaseVerdict.SKIPPED, True, True),
        (CaseVerdict.PASS, True, True),
        (CaseVerdict.NOTE, True, False),
        (CaseVerdict.SLOW, True, False),
        (CaseVerdict.FAIL, False, False),
    ],
)
def test_one_case_decides_whether_a_report_is_good(worst: CaseVerdict, ok: bool, strictly: bool) -> None:
    judged = report(CaseVerdict.PASS, worst)

    assert (judged.ok(), judged.ok(strict=True)) == (ok, strictly)
    assert judged.count(worst) == 1 + (worst is CaseVerdict.PASS)
