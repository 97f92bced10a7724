"""The frames of a replication connection, to the byte, and LSNs as PostgreSQL writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication_frames import (
    Data,
    Keepalive,
    decode_frame,
    encode_status,
    format_lsn,
    parse_lsn,
)

GOLDEN = Path(__file__).parent / "golden" / "pgoutput_v1.hex"
FRAMES = [bytes.fromhex(line) for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]


def test_data_carries_a_message_and_its_places() -> None:
    frame = b"w" + (7).to_bytes(8) + (9).to_bytes(8) + (0).to_bytes(8) + b"payload"

    assert decode_frame(frame) == Data(7, 9, 946_684_800_000_000, b"payload")


def test_keepalives_say_how_far_the_server_is_and_whether_it_waits() -> None:
    last = decode_frame(FRAMES[-1])
    assert last == Keepalive(end_lsn=0x172E5F8, sent_us=1_795_255_365_939_179, reply_requested=False)
    assert decode_frame(FRAMES[-1][:-1] + b"\x01") == Keepalive(0x172E5F8, 1_795_255_365_939_179, True)


def test_a_status_update_is_what_the_manual_says() -> None:
    status = encode_status(written=0x2_0000_0001, flushed=0x1_0000_0002, now_us=946_684_800_000_003)
    fields = ["72", "0000000200000001", "0000000100000002", "0000000100000002", "0000000000000003", "01"]
    assert status.hex() == "".join(fields)


@given(st.integers(0, 2**64 - 1))
def test_lsns_are_read_as_they_are_written(lsn: int) -> None:
    assert parse_lsn(format_lsn(lsn)) == lsn


@pytest.mark.parametrize("text", ["", "/", "1/", "/1", "1/123456789", "g/1", "1/2/3", "-1/2", "0x1/1"])
def test_what_is_no_lsn_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="no LSN"):
        parse_lsn(text)


@pytest.mark.parametrize("frame", [b"", b"k", b"x" + bytes(17), FRAMES[-1][:-1], FRAMES[-1] + b"\0", b"w" + bytes(23)])
def test_what_is_no_frame_is_refused(frame: bytes) -> None:
    with pytest.raises(SourceError):
        decode_frame(frame)
