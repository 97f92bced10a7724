from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.compression import compressed, decompressed


@given(st.binary(max_size=2000), st.integers(1, 19))
def test_a_frame_reads_back_and_may_have_a_tail(data: bytes, level: int) -> None:
    assert decompressed(compressed(data, level), len(data)) == data
    assert decompressed(compressed(data, level) + b"tail", len(data)) == data


@given(st.binary(min_size=1, max_size=200))
def test_a_frame_that_holds_more_than_the_limit_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="of at most"):
        decompressed(compressed(data), len(data) - 1)


@given(st.binary(max_size=300), st.data())
def test_a_frame_cut_short_is_refused(data: bytes, cut: st.DataObject) -> None:
    frame = compressed(data)
    with pytest.raises(ValueError, match="frame"):
        decompressed(frame[: cut.draw(st.integers(0, len(frame) - 1))], 1000)


@given(st.binary(max_size=300))
def test_garbage_is_refused_or_read_and_never_anything_else(garbage: bytes) -> None:
    for data in (garbage, bytes.fromhex("28b52ffd") + garbage):
        try:
            assert len(decompressed(data, 1000)) <= 1000
        except ValueError:
            continue


def test_a_size_that_lies_does_not_allocate() -> None:
    header = bytes.fromhex("28b52ffde0") + (1 << 40).to_bytes(8, "little")
    with pytest.raises(ValueError, match="1099511627776 bytes"):
        decompressed(header + b"\x01\x00\x00", 1 << 20)


def test_a_frame_that_does_not_say_its_size_is_refused() -> None:
    frame = bytes.fromhex("28b52ffd0458010000")  # the zstd program's frame of no bytes that came through a pipe
    with pytest.raises(ValueError, match="None bytes"):
        decompressed(frame, 1 << 20)
