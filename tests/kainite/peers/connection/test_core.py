"""A connection's states: what each event does in each state, and which peers take too long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.log.format.entry import ReqId
from kainite.peers.connection.core import Accepting, Connection, ConnectionState, Limits, Received
from kainite.peers.connection.frames import HEADER_SIZE, PEERS_HELLO, PROOF, WALTZ_HELLO, encode_frame, keep_alive
from kainite.peers.connection.hello import Hello, decode_hello, encode_hello
from kainite.peers.connection.introduction import Guest, LetIn
from kainite.peers.messages import PEERS, Appended, Message
from kainite.waltz.wire.layouts import WaltzMessage
from kainite.waltz.wire.messages import FlushRequest, FlushResponse, MountRequest
from kainite.waltz.wire.versions import WALTZ
from support.application_world import waltz_frame
from support.doors import ANN, ANNS, EVERYBODY, USERS

LIMITS = Limits(body=100, greeting=10, frame=5, silent=60)
FLUSH = FlushRequest(ReqId(1, 2, 3, 4))
FLUSHED = waltz_frame(4, FLUSH)
HELLO = encode_hello(WALTZ_HELLO, Hello((0, 1, 2, 3, 4), "test"))


def accepting(now: float = 0.0) -> Connection[WaltzMessage]:
    return Connection(WALTZ, Accepting("owner", EVERYBODY), now, LIMITS)


def opened(now: float = 0.0) -> Connection[WaltzMessage]:
    connection = accepting(now)
    connection.receive(HELLO, now)
    assert connection.next_message(now) is None
    assert connection.state is ConnectionState.OPEN
    connection.to_send()
    return connection


def hello_of(data: bytes) -> Hello:
    return decode_hello(data[HEADER_SIZE:])


def proving(program: Connection[Message], owner: Connection[Message]) -> None:
    """Lets both sides greet each other, as far as they go."""
    for _ in range(3):
        program.receive(owner.to_send(), 0.0)
        assert program.next_message(0.0) is None
        owner.receive(program.to_send(), 0.0)
        assert owner.next_message(0.0) is None


def test_both_sides_prove_themselves_and_then_speak() -> None:
    program: Connection[Message] = Connection(PEERS, ANN, 0.0)
    owner: Connection[Message] = Connection(PEERS, Accepting("owner", ANNS), 0.0)
    assert program.to_send() == b""  # it waits for the nonce
    proving(program, owner)
    assert (program.state, owner.state) == (ConnectionState.OPEN, ConnectionState.OPEN)
    assert owner.guest == Guest("ann", USERS["ann"].rights)
    program.send(Appended(7, 3))
    owner.receive(program.to_send(), 0.0)
    received = owner.next_message(0.0)
    assert received is not None
    assert received.message == Appended(7, 3)
    assert program.to_send() == b""


def test_who_does_not_know_the_key_is_told_and_never_open() -> None:
    program: Connection[Message] = Connection(PEERS, replace(ANN, secret="another"), 0.0)
    owner: Connection[Message] = Connection(PEERS, Accepting("owner", ANNS), 0.0)
    program.receive(owner.to_send(), 0.0)
    assert program.next_message(0.0) is None
    owner.receive(program.to_send(), 0.0)
    with pytest.raises(LogProtocolError, match="its proof is wrong"):
        owner.next_message(0.0)
    assert owner.state is ConnectionState.CLOSED
    program.receive(owner.to_send(), 0.0)
    with pytest.raises(LogProtocolError, match="does not let this process in"):
        program.next_message(0.0)


@pytest.mark.parametrize("proof", [bytes(32), b"x"])
def test_an_owner_that_does_not_know_the_key_is_no_owner(proof: bytes) -> None:
    program: Connection[Message] = Connection(PEERS, ANN, 0.0)
    program.receive(encode_hello(PEERS_HELLO, Hello((1,), "owner\0nonce")) + encode_frame(PROOF, 0, proof), 0.0)
    with pytest.raises(LogProtocolError, match="it is not the log's owner"):
        program.next_message(0.0)
    assert program.state is ConnectionState.CLOSED
    assert ANN.secret.encode() not in program.to_send()


def test_who_comes_to_the_other_protocols_port_is_told_in_a_hello_of_its_own() -> None:
    for codec, magic, other, said in (
        (PEERS, WALTZ_HELLO, HELLO, "programs connect to the port of logApplicationsListen"),
        (WALTZ, PEERS_HELLO, encode_hello(PEERS_HELLO, Hello((1,), "w")), "connect to the port of logListen"),
    ):
        owner = Connection[Any](codec, Accepting("owner", EVERYBODY), 0.0)
        assert owner.to_send()[0] == codec.hello
        owner.receive(other, 0.0)
        with pytest.raises(LogProtocolError, match=f"does not speak the {codec.name}: .*{said}"):
            owner.next_message(0.0)
        answer = owner.to_send()
        assert answer[0] == magic
        assert hello_of(answer).versions == ()
        assert said in (hello_of(answer).message or "")
        assert owner.state is ConnectionState.CLOSED


def test_a_program_that_is_refused_by_a_hello_says_why() -> None:
    program = Connection(WALTZ, ANN, 0.0)
    program.receive(encode_hello(WALTZ_HELLO, Hello((), "this port is another's")), 0.0)
    with pytest.raises(LogProtocolError, match="refuses the connection: this port is another's"):
        program.next_message(0.0)


def test_a_program_that_hears_the_other_protocol_says_so() -> None:
    program = Connection(WALTZ, ANN, 0.0)
    program.to_send()
    program.receive(encode_hello(PEERS_HELLO, Hello((1,), "owner")), 0.0)
    with pytest.raises(LogProtocolError, match="the address is another port's"):
        program.next_message(0.0)
    assert program.to_send() == b""


def test_a_peer_without_a_common_version_is_told_ours() -> None:
    owner = accepting()
    owner.receive(encode_hello(WALTZ_HELLO, Hello((7,), None)), 0.0)
    with pytest.raises(LogProtocolError, match="upgrade the older one"):
        owner.next_message(0.0)
    assert hello_of(owner.to_send()).versions == (0, 1, 2, 3, 4)


def test_a_message_that_no_peer_takes_is_not_sent() -> None:
    connection = opened()
    connection.send(FlushResponse(FLUSH.req_id, 1))
    before = connection.to_send()
    small: Connection[WaltzMessage] = Connection(WALTZ, Accepting("owner", EVERYBODY), 0.0, Limits(body=10))
    small.receive(HELLO, 0.0)
    small.next_message(0.0)
    small.to_send()
    with pytest.raises(LogRequestError, match=r"a FlushResponse of 25 bytes .* \(10\): split it"):
        small.send(FlushResponse(FLUSH.req_id, 1))
    assert (len(before), small.to_send()) == (HEADER_SIZE + 25, b"")


def test_messages_come_in_order_behind_the_hello_however_they_arrive() -> None:
    connection = accepting()
    found = []
    for byte in HELLO + FLUSHED + keep_alive(4) + FLUSHED:
        connection.receive(bytes([byte]), 0.0)
        while (received := connection.next_message(0.0)) is not None:
            found.append(received)
    assert found == [Received(FLUSH, len(FLUSHED) - HEADER_SIZE)] * 2


def test_the_highest_common_version_is_spoken() -> None:
    connection = accepting()
    connection.receive(encode_hello(WALTZ_HELLO, Hello((0, 1, 2), None)), 0.0)
    assert connection.next_message(0.0) is None
    assert connection.version == 2
    connection.to_send()
    connection.send(FlushResponse(FLUSH.req_id, 1))
    assert connection.to_send()[1:3] == b"\0\2"
    connection.keep_alive()
    assert connection.to_send() == keep_alive(2)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (
            encode_hello(WALTZ_HELLO, Hello((7,), None)),
            r"versions \[7\] of the .*, this side \[0, 1, 2, 3, 4\]",
        ),
        (FLUSHED, "where a Hello is expected"),
        (HELLO + HELLO, "where a message of version 4 is expected"),
        (HELLO + waltz_frame(3, FLUSH), "of version 3"),
        (HELLO + FLUSHED[:3] + b"\0\0\0\2\x08\0", "ends where"),
        (b"GET / HTTP/1.1\r\n\r\n", "byte 71"),
    ],
)
def test_a_peer_that_says_what_it_must_not_is_heard_no_more(sent: bytes, said: str) -> None:
    connection = accepting()
    connection.receive(sent, 0.0)
    with pytest.raises(LogProtocolError, match=said):
        connection.next_message(0.0)
    assert connection.state is ConnectionState.CLOSED
    connection.receive(HELLO, 0.0)
    assert connection.next_message(0.0) is None
    assert connection.buffered == 0


def test_a_peer_whose_introduction_is_refused_is_never_open() -> None:
    class Nobody:
        def judge(self, ours: Hello, theirs: Hello) -> LetIn:
            raise LogProtocolError(f"not {theirs.message}")

        def has_revoked(self, guest: Guest) -> bool:
            raise AssertionError("nobody was let in")

    connection: Connection[WaltzMessage] = Connection(WALTZ, Accepting("owner", Nobody()), 0.0, LIMITS)
    connection.receive(HELLO + FLUSHED, 0.0)
    with pytest.raises(LogProtocolError, match="not test"):
        connection.next_message(0.0)
    assert connection.state is ConnectionState.CLOSED


def test_a_peer_that_says_no_hello_is_overdue() -> None:
    connection = accepting(100.0)
    connection.receive(HELLO[:-1], 109.0)
    assert connection.next_message(109.0) is None
    assert connection.overdue(109.9) is None
    assert connection.overdue(110.0) == "no Hello within 10 s"
    assert connection.state is ConnectionState.CLOSED


def test_a_silent_peer_is_overdue_and_a_frame_without_a_body_ends_the_silence() -> None:
    connection = opened(now=0.0)
    connection.receive(keep_alive(4), 50.0)
    assert connection.next_message(50.0) is None
    assert connection.overdue(109.9) is None
    assert connection.overdue(110.0) == "silent for 60 s"


def test_a_peer_that_asks_for_nothing_is_overdue_though_it_says_that_it_is_alive() -> None:
    connection = Connection[WaltzMessage](
        WALTZ, Accepting("owner", EVERYBODY), 0.0, replace(LIMITS, request=20, silent=8)
    )
    connection.receive(HELLO, 0.0)
    for now in (0.0, 7.0, 14.0):
        connection.receive(keep_alive(4), now)
        assert connection.next_message(now) is None
        assert connection.overdue(now) is None
    connection.receive(keep_alive(4), 19.0)
    assert connection.next_message(19.0) is None
    assert connection.overdue(20.0) == "no request within 20 s"


def test_a_peer_that_has_asked_is_bound_by_silence_alone() -> None:
    connection = Connection[WaltzMessage](WALTZ, Accepting("owner", EVERYBODY), 0.0, replace(LIMITS, request=20))
    connection.receive(HELLO + FLUSHED, 0.0)
    assert connection.next_message(0.0) is not None
    assert connection.next_message(0.0) is None
    assert connection.overdue(50.0) is None


def test_messages_are_short_until_long_ones_are_allowed() -> None:
    limits = replace(LIMITS, first=len(FLUSHED) - HEADER_SIZE)
    longer = waltz_frame(4, MountRequest(ReqId(1, 2, 3, 4), 5, 6))
    assert len(longer) > len(FLUSHED)
    begun = Connection[WaltzMessage](WALTZ, Accepting("owner", EVERYBODY), 0.0, limits)
    begun.receive(HELLO + longer, 0.0)
    with pytest.raises(LogProtocolError, match="a frame says that its body has"):
        begun.next_message(0.0)
    asked = Connection[WaltzMessage](WALTZ, Accepting("owner", EVERYBODY), 0.0, limits)
    asked.receive(HELLO + FLUSHED, 0.0)
    assert asked.next_message(0.0) is not None
    asked.allow_long()
    asked.receive(longer, 0.0)
    assert asked.next_message(0.0) is not None


def test_a_long_message_has_the_time_that_its_length_takes() -> None:
    connection = Connection[WaltzMessage](WALTZ, Accepting("owner", EVERYBODY), 0.0, replace(LIMITS, rate=10))
    connection.receive(HELLO + b"L\0\4\0\0\0d", 0.0)
    assert connection.next_message(0.0) is None
    assert connection.announced == 100
    assert connection.overdue(14.9) is None
    connection.goes_on(10.0)
    assert connection.overdue(24.9) is None
    assert connection.overdue(25.0) == "a message is not whole after 15 s"


def test_a_peer_that_drips_is_overdue_though_it_is_never_silent() -> None:
    connection = opened(now=0.0)
    for second in range(5):
        connection.receive(FLUSHED[second : second + 1], float(second))
        assert connection.next_message(float(second)) is None
        assert connection.overdue(float(second)) is None
    assert connection.overdue(5.0) == "a message is not whole after 5 s"


def test_time_in_which_nothing_is_read_is_not_the_peers() -> None:
    connection = opened(now=0.0)
    connection.receive(FLUSHED, 1.0)
    assert connection.next_message(1.0) is not None
    assert connection.next_message(500.0) is None  # the message was waiting for its credit all the while
    assert connection.overdue(501.0) is None
