"""The supervisor's side of E: workers that run once, and workers that are asked cycle by cycle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import MessageRefusedError
from kainite.base.markers import EXTRACTION, Mark, Markers
from kainite.child.markers.exchange import Violation
from kainite.child.markers.extraction import CycleDone, Extracted, Extraction, Unfinished
from support.marker_strategies import chunked, cuts, marker_sets, slowly_scanned, texts

MARKERS = Markers()
X, Y = Extracted(b"x"), Extracted(b"y")


def drained(extraction: Extraction) -> list[object]:
    happened: list[object] = []
    while (event := extraction.next_event()) is not None:
        happened.append(event)
    return happened


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"x\ny\n", [X, Y]),
        (b"", []),
        (b"x\n\n", [X, Extracted(b"")]),
        (b"x\ny\n\0", [X, Y]),
        (b"x\ny\0\n", [X, Y]),
        (b"x\nha", [X, Unfinished(b"ha")]),
        (b"x\n\x17", [X, Unfinished(b"\x17")]),
        (b"x\n\x06y\n", [X, Extracted(b"\x06y")]),
    ],
)
def test_a_plain_worker(said: bytes, expected: list[object]) -> None:
    extraction = Extraction(MARKERS, cyclic=False)
    extraction.receive(said)
    extraction.receive_eof()
    assert drained(extraction) == expected


def test_a_cyclic_worker_is_asked_again_and_again() -> None:
    extraction = Extraction(MARKERS, cyclic=True)
    assert extraction.request() == b"\n"
    assert extraction.asked
    extraction.receive(b"x\ny\0\n")
    assert drained(extraction) == [X, Y, CycleDone()]
    assert not extraction.asked
    assert extraction.request(b'{"start":1,"end":2}') == b'{"start":1,"end":2}\n'
    extraction.receive(b"\0")
    assert drained(extraction) == [CycleDone()]
    extraction.receive(b"\n")
    assert drained(extraction) == []
    assert extraction.held == 0


def test_messages_come_out_before_their_cycle_is_over() -> None:
    extraction = Extraction(MARKERS, cyclic=True)
    extraction.request()
    extraction.receive(b"x\ny")
    assert drained(extraction) == [X]


@pytest.mark.parametrize("said", [b"x\n", b"\0", b"x\0"])
def test_what_nobody_asked_for_is_a_violation(said: bytes) -> None:
    extraction = Extraction(MARKERS, cyclic=True)
    extraction.receive(said)
    assert drained(extraction) == [Violation("wrote while no cycle was requested")]
    with pytest.raises(ValueError, match="cannot be requested"):
        extraction.request()


def test_one_cycle_at_a_time_and_no_marker_in_a_request() -> None:
    extraction = Extraction(MARKERS, cyclic=True)
    with pytest.raises(MessageRefusedError):
        extraction.request(b"a\nb")
    extraction.request()
    with pytest.raises(ValueError, match="cannot be requested"):
        extraction.request()


def test_a_message_without_end_is_not_kept() -> None:
    extraction = Extraction(MARKERS, cyclic=False, max_message=10)
    extraction.receive(b"x\n" + b"y" * 11)
    assert drained(extraction) == [X, Violation("wrote more than 10 bytes without a marker")]


@given(marker_sets(), texts(max_size=40), cuts(), st.booleans())
def test_a_plain_workers_messages_are_what_the_slow_scanner_finds(
    markers: Markers, data: bytes, places: list[int], ended: bool
) -> None:
    extraction = Extraction(markers, cyclic=False)
    happened: list[object] = []
    for chunk in chunked(data, places):
        extraction.receive(chunk)
        happened += drained(extraction)
    if ended:
        extraction.receive_eof()
        happened += drained(extraction)
    pieces, rest = slowly_scanned(markers.using(EXTRACTION), data)
    expected: list[object] = []
    after = None
    for piece in pieces:
        if piece.payload or (piece.mark is Mark.EOM and after is not Mark.EOP):
            expected.append(Extracted(piece.payload))
        after = piece.mark
    expected += [Unfinished(rest)] if ended and rest else []
    assert happened == expected
