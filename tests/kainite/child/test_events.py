"""Records are called by their places, in logs and in messages."""

from __future__ import annotations

import pytest

from kainite.base.position import Position
from kainite.child.events import Span


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (Position(7), Position(7), "record 7"),
        (Position(7), Position(9), "records 7 to 9"),
        (Position(7, 0), Position(7, 2), f"records {Position(7, 0)} to {Position(7, 2)}"),
    ],
)
def test_one_record_is_told_from_several(first: Position, last: Position, text: str) -> None:
    assert str(Span(first, last)) == text
