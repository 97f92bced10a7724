"""The client's side of a connection, byte by byte: what it sends when, and what it refuses to hear."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kainite.peers.connection.shard_messages import (
    VERSION,
    Elsewhere,
    Join,
    Joined,
    PositionAnswer,
    PositionRequest,
    ReadingAnswer,
    ReadingRequest,
    ShardAppend,
    ShardAppended,
    ShardRefused,
)

from kainite.base.errors import LogProtocolError, LogRequestError, LogUnavailableError
from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.format.entry import ReqId
from kainite.peers.connection.frames import FrameDecoder
from kainite.peers.connection.hello import Hello, decode_hello, encode_hello
from kainite.peers.sharing.conversation import MAX_NUMBER, Answered, Asked, Conversation, Opened, Phase
from kainite.waltz.wire.layouts import Message
from kainite.waltz.wire.versions import decode_message, encode_message

GENERATION = 7
CREDIT = 100


def req(number: int = 0, generation: int = GENERATION) -> ReqId:
    return ReqId(0, generation, 0, number)


class Bench:
    """A conversation, and what its owner has heard."""

    def __init__(self) -> None:
        self.client = Conversation("p", "s", "w", "process", GENERATION)
        self._decoder = FrameDecoder()
        self._greeted = False

    def heard(self) -> list[Message | Hello]:
        """Returns what the client has sent since the last call."""
        self._decoder.receive(self.client.to_send())
        found: list[Message | Hello] = []
        while (frame := self._decoder.next_frame()) is not None:
            if self._greeted:
                found.append(decode_message(VERSION, frame.body))
            else:
                self._greeted = True
                self._decoder.expect_messages(VERSION)
                found.append(decode_hello(frame.body))
        return found

    def say(self, *messages: Message) -> list[Opened | Answered | Asked]:
        return self.client.receive(b"".join(encode_message(VERSION, message) for message in messages))

    def append(self, size: int) -> int:
        return self.client.append("s0", Position(1), Position(2), b"x" * size, b"", frozenset())


@pytest.fixture
def greeted() -> Bench:
    bench = Bench()
    assert bench.heard() == [Hello((VERSION,), "w")]
    assert bench.client.receive(encode_hello(Hello((0, VERSION), "owner"))) == []
    assert bench.heard() == [Join(req(), "p", "s", "w", "process")]
    return bench


@pytest.fixture
def bench(greeted: Bench) -> Bench:
    assert greeted.say(Joined(req(), CREDIT)) == [Opened()]
    assert greeted.client.phase is Phase.OPEN
    return greeted


def test_requests_are_answered_under_their_numbers(bench: Bench) -> None:
    appended, asked, refused = bench.append(10), bench.client.position("s1"), bench.append(10)
    first, second, third = bench.heard()
    assert isinstance(first, ShardAppend)
    assert isinstance(third, ShardAppend)
    assert second == PositionRequest(req(asked), "s1")
    heard = bench.say(
        PositionAnswer(req(asked), Position(2**180, 3)),
        ShardRefused(req(refused), "overlaps"),
        ShardAppended(req(appended)),
    )
    assert heard[0] == Answered(asked, Position(2**180, 3))
    assert heard[2] == Answered(appended)
    error = heard[1].error if isinstance(heard[1], Answered) else None
    assert isinstance(error, LogRequestError)
    assert str(error) == "overlaps"


def test_appends_wait_for_credit_in_their_order_and_questions_do_not(bench: Bench) -> None:
    first, second, third = bench.append(60), bench.append(50), bench.append(10)
    asked = bench.client.position("s1")
    assert [message.req_id.sequence for message in bench.heard() if not isinstance(message, Hello)] == [first, asked]
    bench.say(ShardAppended(req(first)))
    assert [message.req_id.sequence for message in bench.heard() if not isinstance(message, Hello)] == [second, third]


def test_one_append_of_any_size_is_allowed(bench: Bench) -> None:
    large = bench.append(10 * CREDIT)
    small = bench.append(1)
    assert [message.req_id.sequence for message in bench.heard() if not isinstance(message, Hello)] == [large]
    bench.say(ShardAppended(req(large)))
    assert [message.req_id.sequence for message in bench.heard() if not isinstance(message, Hello)] == [small]


def test_the_owners_questions_are_answered_under_its_numbers(bench: Bench) -> None:
    assert bench.say(ReadingRequest(req(5), "full")) == [Asked(5, "full")]
    told = ReadingReport(frozenset({"s0", "s1"}), {"s0": 1.5}, {"s0": 0.5}, {"s0": 17}, {"s0": 16})
    bench.client.reading(5, told)
    bench.client.reading(6, None)
    assert bench.heard() == [
        ReadingAnswer(req(5), frozenset({"s0", "s1"}), {"s0": 1.5}, {"s0": 0.5}, {"s0": 17}, {"s0": 16}),
        ReadingAnswer(req(6), frozenset(), {}),
    ]


def test_a_newer_owner_than_head_named_is_as_good(greeted: Bench) -> None:
    assert greeted.say(Joined(req(generation=GENERATION + 1), CREDIT)) == [Opened()]
    greeted.client.position("s0")
    assert greeted.heard() == [PositionRequest(req(1, GENERATION + 1), "s0")]


@pytest.mark.parametrize(
    "message", [Joined(req(generation=GENERATION - 1), CREDIT), Elsewhere(req(), "10.0.0.7:7070")], ids=["old", "other"]
)
def test_whoever_does_not_own_the_log_is_left(greeted: Bench, message: Message) -> None:
    with pytest.raises(LogUnavailableError, match=r"replaced|10\.0\.0\.7:7070"):
        greeted.say(message)
    assert greeted.client.phase is Phase.ENDED


def test_an_owner_that_ceases_to_be_one_is_left(bench: Bench) -> None:
    with pytest.raises(LogUnavailableError):
        bench.say(Elsewhere(req(), ""))
    with pytest.raises(LogUnavailableError):
        bench.client.position("s0")


@pytest.mark.parametrize(
    "message",
    [
        ShardAppended(req(9)),
        PositionAnswer(req(1), None),
        ShardAppended(req(1, GENERATION + 1)),
        Join(req(), "p", "s", "w", "process"),
        Joined(req(), CREDIT),
    ],
    ids=["unasked", "twice", "another generation", "a client's", "again"],
)
def test_what_an_owner_must_not_say_ends_the_conversation(bench: Bench, message: Message) -> None:
    asked = bench.client.position("s0")
    bench.say(PositionAnswer(req(asked), None))
    with pytest.raises(LogProtocolError):
        bench.say(message)
    assert bench.client.phase is Phase.ENDED


@pytest.mark.parametrize(
    "begin",
    [
        lambda bench: bench.client.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        lambda bench: bench.client.receive(encode_hello(Hello((0, 1, 2, 3, 4), None))),
    ],
    ids=["another protocol", "an earlier release"],
)
def test_whoever_speaks_no_common_version_is_left(begin: Callable[[Bench], object]) -> None:
    bench = Bench()
    with pytest.raises(LogProtocolError):
        begin(bench)


def test_nothing_is_asked_before_the_owner_takes_requests(greeted: Bench) -> None:
    with pytest.raises(LogUnavailableError):
        greeted.append(1)


def test_numbers_begin_again_before_they_overflow(bench: Bench) -> None:
    bench.client._number = MAX_NUMBER - 1  # noqa: SLF001 - two thousand million requests take too long
    assert [bench.client.position("s0") for _ in range(2)] == [MAX_NUMBER, 1]
