"""The transcript and the JUnit file hold whatever a child writes, and stay readable."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from kainite.conform import CaseResult, CaseVerdict, ConformReport, Finding
from kainite.conform.exchange.transcript import KEPT_FIRST, KEPT_LAST, SHOWN, Transcript, shown
from kainite.conform.report.rendering import write_junit
from kainite.settings import ChildProtocol

anything = st.binary(max_size=3000)


@given(st.lists(st.tuples(st.booleans(), anything), max_size=60))
def test_a_transcript_is_short_and_printable_whatever_was_said(said: list[tuple[bool, bytes]]) -> None:
    transcript = Transcript(lambda: 0.0)
    for ours, data in said:
        (transcript.said if ours else transcript.heard)(data)

    lines = transcript.lines()

    assert len(lines) <= KEPT_FIRST + 1 + KEPT_LAST
    assert all(line.isprintable() for line in lines)


def test_the_first_and_the_last_lines_are_kept() -> None:
    transcript = Transcript(lambda: 1.5)
    for number in range(100):
        transcript.heard(b"line %d\n" % number)

    lines = transcript.lines()

    assert lines[0] == "   0.000 ← line 0"
    assert f"· {100 - KEPT_FIRST - KEPT_LAST} lines left out" in lines[KEPT_FIRST]
    assert (lines[-1], transcript.last_heard()) == ("   0.000 ← line 99", "line 99")


@given(st.binary(max_size=5000))
def test_what_is_shown_has_a_limit(data: bytes) -> None:
    assert len(shown(data)) <= 10 * SHOWN  # an escape of one character has ten at most


@given(st.text(max_size=200), st.sampled_from(CaseVerdict))
def test_junit_is_xml_whatever_a_child_said(said: str, verdict: CaseVerdict) -> None:
    result = CaseResult(
        "one-record", "one record", (Finding(verdict, said),), exchange=(shown(said.encode("utf-8", "replace")),)
    )
    report = ConformReport(("python", said), ChildProtocol.JSON_LINES, (result,))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.xml"
        write_junit(report, path, strict=True)

        suite = ElementTree.parse(path).getroot()[0]

    assert suite.get("failures") == str(int(verdict > CaseVerdict.PASS))
    assert suite.get("skipped") == str(int(verdict is CaseVerdict.SKIPPED))
