"""Markers: which may be chosen, what may be sent, and how a stream is cut at them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import MessageRefusedError
from kainite.base.markers import Mark, Markers
from kainite.child.markers.framing import MarkedPiece, Scanner
from support.marker_strategies import chunked, cuts, marker_sets, slowly_scanned, texts

LIMIT = 20


def test_the_defaults_are_the_original_ones() -> None:
    assert [Markers().of(mark) for mark in (Mark.EOM, Mark.EOP, Mark.EOB, Mark.BNC)] == [b"\n", b"\0", b"\x17", b"\x06"]


@pytest.mark.parametrize(
    ("four", "problem"),
    [
        ((b"", b"\0", b"\x17", b"\x06"), "EOM is empty"),
        ((b"\n", b"\n", b"\x17", b"\x06"), "EOM is the same as EOP"),
        ((b"\n", b"\0", b"EOB", b"OB"), "EOB contains BNC"),
        ((b"\n", b"END\n", b"\x17", b"\x06"), "EOP contains EOM"),
    ],
)
def test_markers_that_could_be_mistaken_are_refused(four: tuple[bytes, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Markers(*four)


def test_any_order_of_four_markers_is_as_good_as_another() -> None:
    for four in itertools.permutations([b"EOM", b"EOP", b"\x17", b"BNC"]):
        assert [Markers(*four).of(mark) for mark in Mark] == list(four)


@pytest.mark.parametrize(
    ("payload", "marker"),
    [(b"a\nb", "EOM"), (b"\n", "EOM"), (b"a\0", "EOP"), (b"\x17", "EOB"), (b"a\x06b", "BNC")],
)
def test_a_payload_that_holds_a_marker_is_refused(payload: bytes, marker: str) -> None:
    with pytest.raises(MessageRefusedError, match=f"the marker {marker} at byte"):
        Markers().message(payload)


def test_an_end_that_reads_as_a_marker_with_eom_is_refused() -> None:
    with pytest.raises(MessageRefusedError, match="EOM at byte 1"):
        Markers(eom=b"##").message(b"a#")
    with pytest.raises(MessageRefusedError, match="EOP at byte 1"):
        Markers(eom=b"><", eop=b"<>").message(b"a<")


@given(marker_sets(), texts())
def test_exactly_those_payloads_are_sent_that_arrive(markers: Markers, payload: bytes) -> None:
    arrives = slowly_scanned(markers, payload + markers.eom) == ([MarkedPiece(payload, Mark.EOM)], b"")
    try:
        framed = markers.message(payload)
    except MessageRefusedError:
        assert not arrives
    else:
        assert arrives
        assert framed == payload + markers.eom


@given(marker_sets(), texts(max_size=60), cuts())
def test_a_stream_is_cut_alike_in_any_chunking(markers: Markers, data: bytes, places: list[int]) -> None:
    scanner = Scanner(markers)
    pieces = [piece for chunk in chunked(data, places) for piece in scanner.feed(chunk)]
    assert (pieces, scanner.end()) == slowly_scanned(markers, data)


@given(marker_sets(), texts(max_size=60))
def test_a_marker_is_known_by_its_last_byte(markers: Markers, data: bytes) -> None:
    scanner = Scanner(markers)
    so_far: list[MarkedPiece] = []
    for end in range(len(data)):
        so_far += scanner.feed(data[end : end + 1])
        assert so_far == slowly_scanned(markers, data[: end + 1])[0]


@given(marker_sets(), texts(max_size=60), cuts(), st.integers(0, 8))
def test_too_long_a_message_is_noticed_in_any_chunking(
    markers: Markers, data: bytes, places: list[int], longest: int
) -> None:
    data += markers.eom  # what has no end yet may still be found too long, sooner or later
    expected, _ = slowly_scanned(markers, data)
    short = list(itertools.takewhile(lambda piece: len(piece.payload) <= longest, expected))
    scanner = Scanner(markers, longest)
    assert [piece for chunk in chunked(data, places) for piece in scanner.feed(chunk)] == short
    assert scanner.too_long == (len(short) < len(expected))


def test_a_message_without_end_is_not_kept() -> None:
    scanner = Scanner(Markers(eom=b"EOM"), LIMIT)
    assert scanner.feed(b"x" * LIMIT + b"EO") == []
    assert not scanner.too_long
    assert scanner.feed(b"x") == []
    assert scanner.too_long
    assert scanner.feed(b"\0" * 1000) == []
    assert scanner.end() == b""


def test_a_megabyte_in_small_chunks_is_one_message() -> None:
    scanner = Scanner(Markers())
    data = b"x" * 2**20 + b"\n"
    pieces = [piece for begin in range(0, len(data), 4096) for piece in scanner.feed(data[begin : begin + 4096])]
    assert pieces == [MarkedPiece(data[:-1], Mark.EOM)]
