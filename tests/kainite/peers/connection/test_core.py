"""A connection's states: what each event does in each state, and which peers take too long."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogProtocolError
from kainite.log.format.entry import ReqId
from kainite.peers.connection.core import Connection, Limits, Received, State
from kainite.peers.connection.frames import HEADER_SIZE, keep_alive
from kainite.peers.connection.hello import Hello, encode_hello
from kainite.waltz.wire.messages import FlushRequest, FlushResponse
from kainite.waltz.wire.versions import encode_message

LIMITS = Limits(body=100, greeting=10, frame=5, silent=60)
FLUSH = FlushRequest(ReqId(1, 2, 3, 4))
FLUSHED = encode_message(4, FLUSH)
HELLO = encode_hello(Hello((0, 1, 2, 3, 4), "test"))


def opened(now: float = 0.0) -> Connection:
    connection = Connection(range(5), now, LIMITS)
    connection.receive(HELLO, now)
    assert connection.next_message(now) is None
    assert connection.state is State.OPEN
    return connection


def test_messages_come_in_order_behind_the_hello_however_they_arrive() -> None:
    connection = Connection(range(5), 0.0, LIMITS)
    found = []
    for byte in HELLO + FLUSHED + keep_alive(4) + FLUSHED:
        connection.receive(bytes([byte]), 0.0)
        while (received := connection.next_message(0.0)) is not None:
            found.append(received)
    assert found == [Received(FLUSH, len(FLUSHED) - HEADER_SIZE)] * 2


def test_the_highest_common_version_is_spoken() -> None:
    connection = Connection(range(5), 0.0, LIMITS)
    connection.receive(encode_hello(Hello((0, 1, 2), None)), 0.0)
    assert connection.next_message(0.0) is None
    assert connection.version == 2
    assert connection.encode(FlushResponse(FLUSH.req_id, 1))[1:3] == b"\0\2"
    assert connection.keep_alive() == keep_alive(2)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (encode_hello(Hello((7,), None)), r"versions \[7\] of the log's protocol, this side \[0, 1, 2, 3, 4\]"),
        (FLUSHED, "where a Hello is expected"),
        (HELLO + HELLO, "where a message of version 4 is expected"),
        (HELLO + encode_message(3, FLUSH), "of version 3"),
        (HELLO + FLUSHED[:3] + b"\0\0\0\2\x08\0", "ends where"),
        (b"GET / HTTP/1.1\r\n\r\n", "byte 71"),
    ],
)
def test_a_peer_that_says_what_it_must_not_is_heard_no_more(sent: bytes, said: str) -> None:
    connection = Connection(range(5), 0.0, LIMITS)
    connection.receive(sent, 0.0)
    with pytest.raises(LogProtocolError, match=said):
        connection.next_message(0.0)
    assert connection.state is State.CLOSED
    connection.receive(HELLO, 0.0)
    assert connection.next_message(0.0) is None
    assert connection.buffered == 0


def test_a_peer_whose_introduction_is_refused_is_never_open() -> None:
    def judge(hello: Hello) -> None:
        raise LogProtocolError(f"not {hello.message}")

    connection = Connection(range(5), 0.0, LIMITS, judge)
    connection.receive(HELLO + FLUSHED, 0.0)
    with pytest.raises(LogProtocolError, match="not test"):
        connection.next_message(0.0)
    assert connection.state is State.CLOSED


def test_a_peer_that_says_no_hello_is_overdue() -> None:
    connection = Connection(range(5), 100.0, LIMITS)
    connection.receive(HELLO[:-1], 109.0)
    assert connection.next_message(109.0) is None
    assert connection.overdue(110.0) is None
    assert connection.overdue(110.1) == "no Hello within 10 s"
    assert connection.state is State.CLOSED


def test_a_silent_peer_is_overdue_and_a_frame_without_a_body_ends_the_silence() -> None:
    connection = opened(now=0.0)
    connection.receive(keep_alive(4), 50.0)
    assert connection.next_message(50.0) is None
    assert connection.overdue(110.0) is None
    assert connection.overdue(110.1) == "silent for 60 s"


def test_a_peer_that_drips_is_overdue_though_it_is_never_silent() -> None:
    connection = opened(now=0.0)
    for second in range(6):
        connection.receive(FLUSHED[second : second + 1], float(second))
        assert connection.next_message(float(second)) is None
        assert connection.overdue(float(second)) is None
    assert connection.overdue(5.1) == "a message is not whole after 5 s"


def test_time_in_which_nothing_is_read_is_not_the_peers() -> None:
    connection = opened(now=0.0)
    connection.receive(FLUSHED, 1.0)
    assert connection.next_message(1.0) is not None
    assert connection.next_message(500.0) is None  # the message was waiting for its credit all the while
    assert connection.overdue(501.0) is None
