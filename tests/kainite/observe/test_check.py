"""The words and the order of checks."""

from __future__ import annotations

import pytest

from kainite.observe.check import Check, Level, spoken, worst


def test_the_worst_check_is_the_verdict() -> None:
    assert worst(()) is Level.OK
    assert (
        worst([Check("a", Level.NOTE, ""), Check("b", Level.DEGRADED, ""), Check("c", Level.OK, "")]) is Level.DEGRADED
    )


def test_trouble_is_what_needs_a_person() -> None:
    assert [level for level in Level if level.is_trouble] == [Level.DEGRADED, Level.BROKEN]


def test_a_check_is_told_by_its_words() -> None:
    told = Check("owner", Level.BROKEN, "nobody", "start one").as_json()
    assert told == {"name": "owner", "level": "broken", "cause": "nobody", "remedy": "start one"}


def test_a_check_is_read_from_its_words_and_from_those_of_another_release() -> None:
    check = Check("owner", Level.BROKEN, "nobody", "start one")
    assert Check.told(check.as_json()) == check
    assert Check.told({"name": "owner", "level": "worse"}) == Check("owner", Level.UNKNOWN, "")


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0.0 s"), (0.44, "0.4 s"), (75, "75 s"), (720, "12 min"), (12_600, "3.5 h")]
)
def test_times_are_told_for_people(seconds: float, text: str) -> None:
    assert spoken(seconds) == text
