"""The peers' messages: golden bytes, every message read back, and what its fields may not hold."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import LogProtocolError
from kainite.base.position import Position
from kainite.peers.messages import (
    MAX_NUMBER,
    PEERS,
    AppendBroken,
    Appended,
    BeginAnswer,
    BeginRequest,
    BeginStream,
    Elsewhere,
    FeedBatch,
    FeedTaken,
    FeedUpTo,
    Follow,
    Holder,
    Join,
    Joined,
    Message,
    OutcomesAt,
    PositionAnswer,
    PositionRequest,
    ReadingAnswer,
    ReadingRequest,
    RequestRefused,
    RowAnswer,
    RowRequest,
    SentPosition,
    ShardAppend,
)

AT = SentPosition.of(Position(4963, 1))
GOLDEN: list[tuple[Message, str]] = [
    (Join(7, 0, "t/0", "s", "w", "p", "i"), "98a44a6f696e0700a3742f30a173a177a170a169"),
    (Joined(7, 0, 100), "94a64a6f696e65640700" + "64"),
    (Elsewhere(0, 0, "h:1"), "94a9456c736577686572650000a3683a31"),
    (RequestRefused(7, 3, "no"), "94ae526571756573745265667573656407" + "03a26e6f"),
    (AppendBroken(7, 3, "no"), "94ac417070656e6442726f6b656e07" + "03a26e6f"),
    (
        ShardAppend(7, 3, "s", AT, AT, AT, memoryview(b"a"), memoryview(b"b")),
        "99ab5368617264417070656e640703a173" + 3 * "92a43439363301" + "c40161c40162",
    ),
    (
        ShardAppend(7, 3, "s", None, AT, AT, memoryview(b"a"), memoryview(b"b")),
        "99ab5368617264417070656e640703a173c0" + 2 * "92a43439363301" + "c40161c40162",
    ),
    (BeginRequest(7, 3, 17), "94ac426567696e52657175657374" + "070311"),
    (BeginStream(7, 3, 17, "1:a:2"), "95ab426567696e53747265616d" + "070311" + "a5313a613a32"),
    (BeginAnswer(7, 3, 17), "94ab426567696e416e73776572" + "070311"),
    (Appended(7, 3), "93a8417070656e6465640703"),
    (PositionRequest(7, 3, "s"), "94af506f736974696f6e526571756573740703a173"),
    (PositionAnswer(7, 3, None), "94ae506f736974696f6e416e737765720703c0"),
    (ReadingRequest(7, 1, "", 17, True), "96ae52656164696e67526571756573740701a0" + "11c3"),
    (
        ReadingAnswer(7, 1, frozenset({"s"}), {"s": 1.5}, {}, {"s": 17}, frozenset({"s"})),
        "98ad52656164696e67416e737765720701" + "91a17381a173cb3ff800000000000080" + "81a1731191a173",
    ),
    (Follow(7, 0, "t/0", "f", 5, 100, 10, True), "99a6466f6c6c6f770700a3742f30a166" + "05640ac3"),
    (FeedBatch(7, 0, b"i", None), "95a9466565644261746368" + "0700c40169c0"),
    (FeedUpTo(7, 0, 5), "94a84665656455705" + "46f070005"),
    (FeedTaken(7, 0, 5, 9), "95a946656564546" + "16b656e07000509"),
    (OutcomesAt(7, 0, -1), "94aa4f7574636f6d657341740700ff"),
    (RowRequest(0, 0, "t/0", "x", {"id": "1"}), "96aa526f7752657175657374" + "0000a3742f30a17881a26964a131"),
    (
        RowAnswer(7, 0, (Holder(1, "T", "failed", None, 0, None),), 1),
        "95a9526f77416e7377657207009196" + "01a154a66661696c6564c000c001",
    ),
]


@pytest.mark.parametrize(("message", "body"), GOLDEN, ids=[type(message).__name__ for message, _ in GOLDEN])
def test_golden_bodies(message: Message, body: str) -> None:
    assert PEERS.encode(1, message).hex() == body
    assert PEERS.decode(1, bytes.fromhex(body)) == message


@pytest.mark.parametrize("message", [message for message, _ in GOLDEN])
def test_a_body_that_is_cut_or_too_long_is_refused(message: Message) -> None:
    body = PEERS.encode(1, message)
    for broken in (*(body[:size] for size in range(len(body))), body + b"\0"):
        with pytest.raises(LogProtocolError, match="cannot be read"):
            PEERS.decode(1, broken)


@pytest.mark.parametrize(
    "said",
    [
        ["Unknown", 1, 1],
        ["Joined", -1, 0, 1],
        ["Joined", 1, MAX_NUMBER + 1, 1],
        ["Joined", 1, 0, -1],
        ["Joined", 1, 0, 1.5],
        ["Joined", 1, 0, 1, 2],
        ["Elsewhere", 1, 0, "x" * 1_025],
        ["PositionAnswer", 1, 0, ["", 0]],
        ["PositionAnswer", 1, 0, ["-1", 0]],
        ["PositionAnswer", 1, 0, ["1\n", 0]],
        ["PositionAnswer", 1, 0, ["1" * 201, 0]],
        ["PositionAnswer", 1, 0, ["1", -1]],
        ["ReadingAnswer", 1, 0, ["s"], {"s": -0.5}, {}, {}, {}],
        ["ReadingAnswer", 1, 0, ["s"], {}, {}, {"s": -1}, {}],
        ["ReadingAnswer", 1, 0, ["s"], {"s": float("nan")}, {}, {}, {}],
        ["ReadingAnswer", 1, 0, ["s"], {}, {"s": float("inf")}, {}, {}],
        ["OutcomesAt", 1, 0, -2],
        ["RowRequest", 1, 0, "l", "t", {"id": 1}],
        ["RowAnswer", 1, 0, [[1]], 1],
        {"Joined": 1},
        [[[[[[]]]]]],
    ],
)
def test_what_no_field_may_hold_is_refused(said: Any) -> None:
    with pytest.raises(LogProtocolError):
        PEERS.decode(1, msgspec.msgpack.encode(said))


@given(st.integers(0, 10**56), st.integers(0, 2**40))
def test_a_position_of_any_length_comes_back(sequence: int, sub: int) -> None:
    position = Position(sequence, sub)
    answer = PEERS.decode(1, PEERS.encode(1, PositionAnswer(1, 1, SentPosition.of(position))))
    assert isinstance(answer, PositionAnswer)
    assert answer.place is not None
    assert answer.place.position == position


def test_depth_and_announced_lengths_cost_nothing() -> None:
    for body in (b"\x91" * 100_000, b"\xdd\xff\xff\xff\xff", b"\x98\xadReadingAnswer\x01\x01\xdd\xff\xff\xff\xff"):
        with pytest.raises(LogProtocolError):
            PEERS.decode(1, body)
