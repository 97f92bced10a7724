"""Frames come out as they went in, however the bytes are cut; anything else is refused early and for good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import LogProtocolError
from kainite.peers.connection.frames import (
    HEADER_SIZE,
    MAX_HELLO,
    MESSAGE,
    PEERS_HELLO,
    WALTZ_HELLO,
    Frame,
    FrameDecoder,
    OtherProtocolError,
    encode_frame,
    keep_alive,
)


def messages_decoder(version: int = 4, limit: int = 100) -> FrameDecoder:
    decoder = FrameDecoder(WALTZ_HELLO, limit)
    decoder.expect_messages(version)
    return decoder


def frames_of(decoder: FrameDecoder) -> list[Frame]:
    found = []
    while (frame := decoder.next_frame()) is not None:
        found.append(frame)
    return found


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 60))
def test_frames_come_out_whole_however_they_are_cut(bodies: list[bytes], size: int) -> None:
    sent = b"".join(encode_frame(MESSAGE, 4, body) for body in bodies)
    decoder = messages_decoder()
    found = []
    for begin in range(0, len(sent), size):
        decoder.receive(sent[begin : begin + size])
        found += frames_of(decoder)
        assert decoder.buffered < HEADER_SIZE + 40
    assert found == [Frame(MESSAGE, 4, body) for body in bodies]
    assert decoder.buffered == 0


def test_a_frame_behind_the_hello_is_of_the_version_that_the_hello_chose() -> None:
    decoder = FrameDecoder(WALTZ_HELLO)
    decoder.receive(encode_frame(WALTZ_HELLO, 0, b"x") + encode_frame(MESSAGE, 2, b"y"))
    assert decoder.next_frame() == Frame(WALTZ_HELLO, 0, b"x")
    decoder.expect_messages(2)
    assert decoder.next_frame() == Frame(MESSAGE, 2, b"y")


def test_a_frame_without_a_body_keeps_the_connection_alive() -> None:
    decoder = messages_decoder()
    decoder.receive(keep_alive(4))
    assert decoder.next_frame() == Frame(MESSAGE, 4, b"")


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"G", "begins with byte 71 where a message of version 4"),
        (encode_frame(WALTZ_HELLO, 0, b""), "begins with byte 72"),
        (encode_frame(MESSAGE, 3, b""), "of version 3 where a message of version 4"),
        (encode_frame(MESSAGE, -1, b""), "of version -1"),
        (encode_frame(MESSAGE, 4, bytes(101))[:HEADER_SIZE], "its body has 101 bytes, of at most 100"),
        (b"L\0\4\xff\xff\xff\xff", "its body has -1 bytes"),
        (b"L\0\4\x7f\xff\xff\xff", "its body has 2147483647 bytes"),
    ],
)
def test_what_is_no_message_is_refused_by_its_header(sent: bytes, said: str) -> None:
    decoder = messages_decoder()
    decoder.receive(sent)
    with pytest.raises(LogProtocolError, match=said):
        decoder.next_frame()


@pytest.mark.parametrize(
    "sent", [b"L", encode_frame(WALTZ_HELLO, 1, b""), encode_frame(WALTZ_HELLO, 0, bytes(MAX_HELLO + 1))[:HEADER_SIZE]]
)
def test_what_is_no_hello_is_refused_by_its_header(sent: bytes) -> None:
    decoder = FrameDecoder(WALTZ_HELLO)
    decoder.receive(sent)
    with pytest.raises(LogProtocolError, match="a Hello is expected"):
        decoder.next_frame()


@pytest.mark.parametrize("sent", [b"K", encode_frame(PEERS_HELLO, 0, b"x")])
def test_a_hello_of_the_other_protocol_is_told_from_garbage(sent: bytes) -> None:
    decoder = FrameDecoder(WALTZ_HELLO)
    decoder.receive(sent)
    for _ in range(2):
        with pytest.raises(OtherProtocolError) as raised:
            decoder.next_frame()
        assert raised.value.magic == PEERS_HELLO


def test_after_a_refused_frame_nothing_is_read_or_kept() -> None:
    decoder = messages_decoder()
    decoder.receive(b"X" + keep_alive(4))
    for _ in range(2):
        with pytest.raises(LogProtocolError, match="byte 88"):
            decoder.next_frame()
    assert decoder.buffered == 0


def test_bytes_without_a_frame_are_not_kept_twice() -> None:
    decoder = messages_decoder(limit=1 << 20)
    frame = encode_frame(MESSAGE, 4, bytes(1 << 20))
    for begin in range(0, len(frame), 1000):
        decoder.receive(frame[begin : begin + 1000])
    assert decoder.buffered == len(frame)
    assert frames_of(decoder) == [Frame(MESSAGE, 4, bytes(1 << 20))]
