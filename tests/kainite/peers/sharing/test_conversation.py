"""The client's side of a connection, byte by byte: what it sends when, and what it refuses to hear."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogProtocolError, LogRequestError, LogUnavailableError
from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.peers.messages import (
    MAX_NUMBER,
    Appended,
    Elsewhere,
    Join,
    Joined,
    Message,
    PositionAnswer,
    PositionRequest,
    ReadingAnswer,
    ReadingRequest,
    RequestRefused,
    SentPosition,
    ShardAppend,
)
from kainite.peers.sharing.conversation import (
    Answered,
    Asked,
    MemberConversation,
    MemberHeard,
    MemberName,
    MemberPhase,
    Opened,
    Places,
)

GENERATION = 7
CREDIT = 100
JOIN = Join(GENERATION, 0, "p", "s", "w", "process")


class Bench:
    """A conversation, and what its owner has heard."""

    def __init__(self) -> None:
        self.client = MemberConversation(MemberName("p", "s", "w", "process"), GENERATION)

    def heard(self) -> list[Message]:
        """Returns what the client has said since the last call."""
        return self.client.to_send()

    def numbers(self) -> list[int]:
        """Returns the numbers of what the client has said since the last call."""
        return [message.number for message in self.heard()]

    def say(self, *messages: Message) -> list[MemberHeard]:
        return [self.client.take(message) for message in messages]

    def append(self, size: int) -> int:
        return self.client.append("s0", Places(Position(1), Position(2), None), b"x" * size, b"", frozenset())


@pytest.fixture
def greeted() -> Bench:
    bench = Bench()
    assert bench.heard() == [JOIN]
    return bench


@pytest.fixture
def bench(greeted: Bench) -> Bench:
    assert greeted.say(Joined(GENERATION, 0, CREDIT)) == [Opened()]
    assert greeted.client.phase is MemberPhase.OPEN
    return greeted


def test_requests_are_answered_under_their_numbers(bench: Bench) -> None:
    appended, asked, refused = bench.append(10), bench.client.position("s1"), bench.append(10)
    first, second, third = bench.heard()
    assert isinstance(first, ShardAppend)
    assert isinstance(third, ShardAppend)
    assert second == PositionRequest(GENERATION, asked, "s1")
    heard = bench.say(
        PositionAnswer(GENERATION, asked, SentPosition.of(Position(2**180, 3))),
        RequestRefused(GENERATION, refused, "overlaps"),
        Appended(GENERATION, appended),
    )
    assert heard[0] == Answered(asked, Position(2**180, 3))
    assert heard[2] == Answered(appended)
    error = heard[1].error if isinstance(heard[1], Answered) else None
    assert isinstance(error, LogRequestError)
    assert str(error) == "overlaps"


def test_appends_wait_for_credit_in_their_order_and_questions_do_not(bench: Bench) -> None:
    first, second, third = bench.append(60), bench.append(50), bench.append(10)
    asked = bench.client.position("s1")
    assert bench.numbers() == [first, asked]
    bench.say(Appended(GENERATION, first))
    assert bench.numbers() == [second, third]


def test_one_append_of_any_size_is_allowed(bench: Bench) -> None:
    large = bench.append(10 * CREDIT)
    small = bench.append(1)
    assert bench.numbers() == [large]
    bench.say(Appended(GENERATION, large))
    assert bench.numbers() == [small]


def test_the_owners_questions_are_answered_under_its_numbers(bench: Bench) -> None:
    assert bench.say(ReadingRequest(GENERATION, 5, "full")) == [Asked(5, "full")]
    assert bench.say(ReadingRequest(GENERATION, 6, "", None, True)) == [Asked(6, "", None, True)]
    told = ReadingReport(frozenset({"s0", "s1"}), {"s0": 1.5}, {"s0": 0.5}, {"s0": 17})
    bench.client.reading(5, told)
    bench.client.reading(6, None)
    assert bench.heard() == [
        ReadingAnswer(GENERATION, 5, frozenset({"s0", "s1"}), {"s0": 1.5}, {"s0": 0.5}, {"s0": 17}),
        ReadingAnswer(GENERATION, 6, frozenset(), {}),
    ]


def test_a_newer_owner_than_head_named_is_as_good(greeted: Bench) -> None:
    assert greeted.say(Joined(GENERATION + 1, 0, CREDIT)) == [Opened()]
    greeted.client.position("s0")
    assert greeted.heard() == [PositionRequest(GENERATION + 1, 1, "s0")]


@pytest.mark.parametrize(
    "message", [Joined(GENERATION - 1, 0, CREDIT), Elsewhere(GENERATION, 0, "10.0.0.7:7070")], ids=["old", "other"]
)
def test_whoever_does_not_own_the_log_is_left(greeted: Bench, message: Message) -> None:
    with pytest.raises(LogUnavailableError, match=r"replaced|10\.0\.0\.7:7070"):
        greeted.say(message)
    assert greeted.client.phase is MemberPhase.ENDED


def test_an_owner_that_ceases_to_be_one_is_left(bench: Bench) -> None:
    with pytest.raises(LogUnavailableError):
        bench.say(Elsewhere(GENERATION, 0, ""))
    with pytest.raises(LogUnavailableError):
        bench.client.position("s0")


@pytest.mark.parametrize(
    "message",
    [
        Appended(GENERATION, 9),
        PositionAnswer(GENERATION, 1, None),
        Appended(GENERATION + 1, 1),
        JOIN,
        Joined(GENERATION, 0, CREDIT),
    ],
    ids=["unasked", "twice", "another generation", "a client's", "again"],
)
def test_what_an_owner_must_not_say_ends_the_conversation(bench: Bench, message: Message) -> None:
    asked = bench.client.position("s0")
    bench.say(PositionAnswer(GENERATION, asked, None))
    with pytest.raises(LogProtocolError):
        bench.say(message)
    assert bench.client.phase is MemberPhase.ENDED


def test_nothing_is_asked_before_the_owner_takes_requests(greeted: Bench) -> None:
    with pytest.raises(LogUnavailableError):
        greeted.append(1)


def test_numbers_begin_again_before_they_overflow(bench: Bench) -> None:
    bench.client._number = MAX_NUMBER - 1  # noqa: SLF001 - two thousand million requests take too long
    assert [bench.client.position("s0") for _ in range(2)] == [MAX_NUMBER, 1]
