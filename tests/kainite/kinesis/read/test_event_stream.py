"""The framing of event streams: golden messages, botocore's decoder beside ours, and bytes that are damaged."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer, ParserError
from hypothesis import given
from hypothesis import strategies as st

from kainite.kinesis.read.event_stream import MOST_BYTES, EventStreamReader, FramingError, Message
from support.fanout_double import message, shard_event

EMPTY = bytes.fromhex("00000010000000000 5c248eb7d98c8ff".replace(" ", ""))
PAYLOAD = bytes.fromhex("0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936")
INITIAL_RESPONSE = (
    b"\x00\x00\x00G\x00\x00\x005\xd9B\x9f\x13\r:message-type\x07\x00\x05event"
    b"\x0b:event-type\x07\x00\x10initial-response{}\x8d\xe0\xc8\xa3"
)
"""Messages as AWS's own libraries are tested with, and the one that botocore's parser asks for."""


def framed(headers: bytes, payload: bytes = b"") -> bytes:
    """Returns a message with these bytes as headers, whatever they say."""
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return checked + struct.pack(">I", zlib.crc32(checked))


def header(name: str, kind: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


def theirs(data: bytes) -> list[Message]:
    """Returns what botocore reads."""
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    found: list[Any] = list(buffer)
    return [Message({k: v for k, v in one.headers.items() if isinstance(v, str)}, one.payload) for one in found]


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (EMPTY, Message({}, b"")),
        (PAYLOAD, Message({}, b"{'foo':'bar'}")),
        (INITIAL_RESPONSE, Message({":message-type": "event", ":event-type": "initial-response"}, b"{}")),
        (
            framed(
                header("true", 0, b"") + header("false", 1, b"") + header("byte", 2, b"\1")
                + header("short", 3, b"\1\2")
                + header("int", 4, b"\1\2\3\4") + header("long", 5, b"12345678") + header("bytes", 6, b"\0\3abc")
                + header("text", 7, b"\0\2\xc3\xa4") + header("time", 8, b"12345678") + header("uuid", 9, b"u" * 16)
            ),
            Message({"text": "ä"}, b""),
        ),
    ],
    ids=["empty", "payload", "initial response", "headers of all types"],
)  # fmt: skip
def test_golden_messages(data: bytes, read: Message) -> None:
    assert list(EventStreamReader().feed(data)) == [read]


@given(st.lists(st.sampled_from([EMPTY, PAYLOAD, INITIAL_RESPONSE, shard_event(1, 2)]), max_size=4), st.data())
def test_however_the_bytes_are_cut_the_messages_are_botocores(messages: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    reader = EventStreamReader()
    read = [
        one for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True) for one in reader.feed(whole[begin:end])
    ]
    assert read == theirs(whole)
    assert not reader.is_inside_message


@given(st.integers(0, len(INITIAL_RESPONSE) - 1), st.integers(1, 255))
def test_a_changed_byte_is_never_read_as_a_message(place: int, change: int) -> None:
    damaged = bytearray(INITIAL_RESPONSE)
    damaged[place] ^= change
    with pytest.raises(FramingError):
        list(EventStreamReader().feed(bytes(damaged)))


@given(st.binary(max_size=200))
def test_headers_of_any_bytes_are_read_or_refused_and_never_more_than_botocore_reads(headers: bytes) -> None:
    try:
        read = list(EventStreamReader().feed(framed(headers, b"p")))
    except FramingError:
        return
    try:
        assert [one.payload for one in read] == [b"p"]
        assert read == theirs(framed(headers, b"p"))
    except ParserError as error:
        assert "Duplicate" in str(error) or "duplicate" in str(error)  # noqa: PT017 - one of two outcomes


@pytest.mark.parametrize(("total", "headers"), [(15, 0), (16, 1), (MOST_BYTES + 1, 0), (MOST_BYTES, 2**17 + 1), (0, 0)])
def test_lengths_that_cannot_be_are_refused_before_anything_waits_for_them(total: int, headers: int) -> None:
    prelude = struct.pack(">II", total, headers)
    with pytest.raises(FramingError, match="a message has"):
        list(EventStreamReader().feed(prelude + struct.pack(">I", zlib.crc32(prelude))))


def test_half_a_message_is_waited_for() -> None:
    reader = EventStreamReader()
    whole = message({":message-type": "event"}, {"a": 1})
    assert list(reader.feed(whole[:-1])) == []
    assert reader.is_inside_message
    assert [one.payload for one in reader.feed(whole[-1:])] == [b'{"a": 1}']
