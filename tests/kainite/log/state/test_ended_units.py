"""The deltas of units that the watermark ended are remembered, so far as there is room."""

from __future__ import annotations

import pytest

from kainite.log.state import ended_units
from kainite.log.state.ended_units import EndedUnits, is_late_name, late_name, on_time_name

A, B, C = (bytes([number]) * 16 for number in range(3))


def test_a_delta_is_known_by_its_unit_and_its_identity() -> None:
    ended = EndedUnits()
    ended.add("T", 5, (A, 0))
    ended.add("T", 9, (C,))
    assert ended.has("T", (A, B, C, 0, 1)) == [True, False, True, True, False]
    assert ended.has("U", (A,)) == [False]
    assert (ended.due_ms("T"), ended.due_ms("U")) == (5, None)
    assert EndedUnits((uow, *remembered) for uow, remembered in ended.captured().items()).has("T", (A, B)) == [
        True,
        False,
    ]


def test_the_oldest_units_leave_but_never_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_units, "MOST_DELTAS", 3)
    ended = EndedUnits()
    ended.add("T", 1, (A, B))
    ended.add("U", 2, (A, B))
    assert ("T" in ended, "U" in ended) == (False, True)
    ended.add("V", 3, (A, B, C, 0, 1))
    assert len(ended) == 1
    assert all(ended.has("V", (A, B, C, 0, 1)))


def test_units_without_deltas_leave_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_units, "MOST_DELTAS", 3)
    ended = EndedUnits()
    for number in range(10):
        ended.add(f"T{number}", 1, ())
    assert len(ended) <= 3


def test_who_decides_nothing_remembers_nothing() -> None:
    ended = EndedUnits()
    ended.add("T", 1, (A,))
    ended.disregard()
    ended.add("U", 1, (A,))
    assert len(ended) == 0


@pytest.mark.parametrize("name", ["T", "T+later", "T+late-1", "+latest"])
def test_other_names_are_no_late_units(name: str) -> None:
    assert not is_late_name(name)
    assert on_time_name(name) == name


@pytest.mark.parametrize("number", [1, 2, 30])
def test_a_late_unit_is_called_after_its_unit(number: int) -> None:
    assert on_time_name(late_name("T", number)) == "T"
    assert late_name("T", 1) == "T+late"
