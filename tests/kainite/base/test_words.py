"""Numbers of things are told as people say them."""

from __future__ import annotations

from kainite.base.words import are, counted


def test_one_thing_has_its_word_without_an_s() -> None:
    assert (counted(1), counted(12_345), counted(0, "row")) == ("1 unit", "12,345 units", "0 rows")
    assert [are(number) for number in (0, 1, 2)] == ["are", "is", "are"]
