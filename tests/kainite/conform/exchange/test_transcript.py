"""The transcript holds whatever a child writes, and stays readable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.conform.exchange.transcript import KEPT_FIRST, KEPT_LAST, SHOWN, Transcript, shown

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
