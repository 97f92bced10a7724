"""A question that is asked rarely."""

from __future__ import annotations

from kainite.console.rarely import Rarely


def test_an_answer_is_kept_for_a_while() -> None:
    now, asked = 0.0, 0

    def ask() -> int:
        nonlocal asked
        asked += 1
        return asked

    question = Rarely(ask, 15.0, lambda: now)
    assert asked == 0
    assert [question() for _ in range(3)] == [1, 1, 1]
    now = 14.9
    assert question() == 1
    now = 15.0
    assert (question(), question()) == (2, 2)
