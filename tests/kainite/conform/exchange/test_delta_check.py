"""What a child gives, read as the daemon reads it, without a target."""

from __future__ import annotations

import pytest

from kainite.conform.exchange.delta_check import DeltaCheck

DELTA = b'{"uow":"T","table":"t","op":"insert","key":{"id":1},"row":{"id":1}}'
SAME = b'{"row": {"id":1}, "key":{"id":1}, "op":"insert", "table":"t", "uow":"T"}'


def test_deltas_are_counted_in_one_spelling() -> None:
    check = DeltaCheck()
    check.emitted(b'{"action":"emit","deltas":[' + DELTA + b"," + SAME + b"]}")
    check.answered(SAME)

    assert list(check.given().values()) == [3]
    assert check.taken() == ()


def test_numbers_that_differ_in_digits_are_other_deltas() -> None:
    check = DeltaCheck()
    for digits in (b"0.10000000000000000001", b"0.10000000000000000002"):
        check.answered(DELTA.replace(b'"row":{"id":1}', b'"row":{"id":1,"x":' + digits + b"}"))

    assert len(check.given()) == 2


def test_messages_for_the_next_stage_are_any_bytes() -> None:
    check = DeltaCheck(for_next_stage=True)
    check.answered(b"\xff no delta")
    check.answered(b"\xff no delta")

    assert list(check.given().values()) == [2]
    assert check.taken() == ()


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (b'{"uow":"T","table":"t","op":"move"}', "'op' must be one of"),
        (b'{"uow":"T", ', "no JSON, does an EOM stand in its payload?"),
        (b"\xef\xbb\xbf" + DELTA, "a byte-order mark stands before its first message"),
        (b"ready\n" + DELTA, "text stands before its JSON, a start banner perhaps: 'ready'"),
        (b"ready", "no JSON, a start banner perhaps: 'ready'"),
    ],
)
def test_what_is_no_delta_is_told_once_with_the_reason(message: bytes, cause: str) -> None:
    check = DeltaCheck()
    check.answered(message)

    (told,) = check.taken()
    assert cause in told
    assert check.taken() == ()


def test_a_line_that_cannot_be_read_counts_as_one() -> None:
    check = DeltaCheck()
    check.emitted(b'{"action":"emit","deltas":[{')

    assert list(check.given().values()) == [1]
    assert len(check.taken()) >= 1


def test_only_the_first_few_are_told() -> None:
    check = DeltaCheck()
    for _ in range(50):
        check.answered(b"no JSON")

    assert len(check.taken()) == 10
