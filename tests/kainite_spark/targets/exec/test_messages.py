"""Requests to a loader, byte by byte, and the meaning of its answers."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import (
    ChildProtocolError,
    KainiteError,
    TargetFencedError,
    TargetInterruptedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.exec import messages as say
from kainite_spark.targets.exec.messages import LoaderReply, read_answer
from kainite_spark.targets.fence import Fence

FENCE = Fence("log/0", 3, 12)


def test_requests_to_the_byte() -> None:
    assert say.prepare() == b'{"action":"prepare"}'
    assert say.take_over("log/0", 3) == b'{"action":"takeOver","logPartition":"log/0","generation":3}'
    assert say.begin_micro_batch(FENCE) == (
        b'{"action":"beginMicroBatch","logPartition":"log/0","generation":3,"microBatch":12}'
    )
    assert say.applied("log/0", {18, 17}) == b'{"action":"applied","logPartition":"log/0","transactionIds":[17,18]}'
    assert say.trim(FENCE, 17) == (
        b'{"action":"trim","logPartition":"log/0","generation":3,"microBatch":12,"below":17}'
    )
    assert say.common_mark(FENCE, 17) == (
        b'{"action":"mark","logPartition":"log/0","generation":3,"microBatch":12,"everywhereBelow":17}'
    )


def test_a_unit_to_the_byte() -> None:
    deltas = (
        Delta("t", Operation.INSERT, {"id": 1}, {"v": "ü\u2028"}, {}, ordinal=0),
        Delta("t", Operation.UPDATE, {"id": 1}, {"v": None}, {"v": 0.1}),
        Delta("t", Operation.DELETE, {"id": 1}, {}, {}),
    )
    assert say.load(FENCE, Unit(17, "T-17", ()), deltas) == (
        b'{"action":"load","logPartition":"log/0","generation":3,"microBatch":12,"transactionId":17,"uow":"T-17",'
        b'"deltas":[{"table":"t","op":"insert","key":{"id":1},"row":{"id":1,"v":"\\u00fc\\u2028"}},'
        b'{"table":"t","op":"update","key":{"id":1},"row":{"v":null},"before":{"v":0.1}},'
        b'{"table":"t","op":"delete","key":{"id":1}}]}'
    )


@pytest.mark.parametrize(
    ("messages", "reply"),
    [
        ([], LoaderReply()),
        ([b'{"applied":[17,18]}'], LoaderReply(frozenset({17, 18}))),
        ([b'{"applied":[17]}', b' {"applied": [18]} '], LoaderReply(frozenset({17, 18}))),
        ([b'{"applied":[]}'], LoaderReply()),
        ([b'{"trimmed":4}'], LoaderReply(trimmed=4)),
    ],
)
def test_what_a_loader_may_say_of_itself(messages: list[bytes], reply: LoaderReply) -> None:
    assert read_answer(messages) == reply


@pytest.mark.parametrize(
    ("message", "error", "text"),
    [
        (b'{"bad":"two\\nlines"}', TargetRejectedError, "two lines"),
        (b'{"bad":""}', TargetRejectedError, "the loader answered 'bad' without a cause"),
        (b'{"bad":{"code":7}}', TargetRejectedError, "{'code': 7}"),
        (b'{"fenced":true}', TargetFencedError, "True"),
        (b'{"retry":"locked"}', TargetInterruptedError, "locked"),
    ],
)
def test_what_it_does_not_do_is_an_error_with_its_words(message: bytes, error: type[KainiteError], text: str) -> None:
    with pytest.raises(error) as raised:
        read_answer([message])
    assert str(raised.value) == text


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"ok",
        b"[]",
        b"{}",
        b'{"loaded":1}',
        b'{"applied":"17"}',
        b'{"applied":[true]}',
        b'{"trimmed":4.5}',
        b'{"bad":"x","fenced":"y"}',
        b'{"bad":"x"',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_anything_else_is_no_answer(message: bytes) -> None:
    with pytest.raises(ChildProtocolError, match="which is no answer: say nothing, or one of"):
        read_answer([message])


@given(st.lists(st.binary(max_size=30), max_size=3))
def test_whatever_it_says_is_understood_or_is_no_answer(messages: list[bytes]) -> None:
    with suppress(ChildProtocolError, TargetRejectedError, TargetFencedError, TargetUnavailableError):
        assert isinstance(read_answer(messages), LoaderReply)
