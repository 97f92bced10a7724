from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import MessageRefusedError
from kainite.base.markers import EXTRACTION, USED, Batching, Mark, Markers

DEFAULTS = Markers()
LONG = Markers(eom=b"<m>", eop=b"<p>", eob=b"<b>", bnc=b"<n>")
OVERLAPPING = Markers(eom=b"aab", eop=b"0", eob=b"1", bnc=b"2")


@pytest.mark.parametrize(
    ("spelled", "problem"),
    [
        ({"eom": b""}, "EOM is empty"),
        ({"bnc": b""}, "EOM contains BNC"),
        ({"eop": b"\n"}, "EOM is the same as EOP"),
        ({"eom": b"\r\n", "eop": b"\n"}, "EOM contains EOP"),
        ({"eob": b"x", "bnc": b"axb"}, "BNC contains EOB"),
    ],
)
def test_markers_that_cannot_be_told_apart_are_refused(spelled: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        Markers(**spelled)


def test_only_markers_that_are_used_are_compared_and_looked_for() -> None:
    markers = Markers(eop=b"\x06", used=USED[Batching.SINGLE])
    assert markers.marks() == {b"\n": Mark.EOM, b"\x06": Mark.EOP}
    assert markers.message(b"a\x17\0") == b"a\x17\0\n"
    assert markers.using(EXTRACTION) == markers
    with pytest.raises(ValueError, match=r"^EOP is the same as BNC$"):
        markers.using(USED[Batching.WORKER])


def test_the_bytes_of_unused_markers_are_known() -> None:
    assert DEFAULTS.using(USED[Batching.SUPERVISOR]).unused() == {b"\x06": Mark.BNC}
    assert Markers(bnc=b"", used=USED[Batching.SUPERVISOR]).unused() == {}


@pytest.mark.parametrize("markers", [DEFAULTS, LONG, OVERLAPPING])
def test_each_marker_has_its_bytes(markers: Markers) -> None:
    assert [markers.of(mark) for mark in Mark] == [markers.eom, markers.eop, markers.eob, markers.bnc]
    assert all(markers.marks()[markers.of(mark)] is mark for mark in Mark)


@pytest.mark.parametrize(
    ("markers", "payload", "named"),
    [
        (DEFAULTS, b"a\nb", "EOM at byte 1"),
        (DEFAULTS, b"ab\0", "EOP at byte 2"),
        (DEFAULTS, b"\x17\n", "EOB at byte 0"),
        (DEFAULTS, b"ab\x06", "BNC at byte 2"),
        (LONG, b"a<p>", "EOP at byte 1"),
        # The payload's end and the marker's beginning read as the marker.
        (Markers(eom=b"aXa", eop=b"0", eob=b"1", bnc=b"2"), b"aX", "EOM at byte 0"),
    ],
)
def test_a_message_that_holds_a_marker_is_refused(markers: Markers, payload: bytes, named: str) -> None:
    with pytest.raises(MessageRefusedError, match=f"^a message of {len(payload)} bytes holds the marker {named}: "):
        markers.message(payload)


@pytest.mark.parametrize(
    ("markers", "payload", "framed"),
    [
        (DEFAULTS, b"", b"\n"),
        (DEFAULTS, b"a", b"a\n"),
        (LONG, b"a<", b"a<<m>"),
        (LONG, b"<m", b"<m<m>"),
        (OVERLAPPING, b"aa", b"aaaab"),
    ],
)
def test_a_message_ends_with_the_marker(markers: Markers, payload: bytes, framed: bytes) -> None:
    # OVERLAPPING: b"aa" + b"aab" holds the marker once only, at its end.
    assert markers.message(payload) == framed


@given(st.sampled_from([DEFAULTS, LONG, OVERLAPPING]), st.text("a<mpbn>012\n\x06\x17\0").map(str.encode))
def test_the_first_marker_of_a_sent_message_is_its_end(markers: Markers, payload: bytes) -> None:
    try:
        framed = markers.message(payload)
    except MessageRefusedError:
        found = markers.pattern().search(payload + markers.eom)
        assert found is not None
        assert (found.group(), found.start()) != (markers.eom, len(payload))
        return
    found = markers.pattern().search(framed)
    assert found is not None
    assert (found.group(), found.start(), found.end()) == (markers.eom, len(payload), len(framed))
