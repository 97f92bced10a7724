"""The window of units that were dispatched last."""

from __future__ import annotations

from kainite.log.state.recent_units import RecentUnits


def test_units_are_remembered_by_name_and_number() -> None:
    recent = RecentUnits(10, [("A", 1), ("B", None)])
    recent.add("C", 3)
    assert all(uow in recent for uow in ("A", "B", "C"))
    assert "D" not in recent
    assert (recent.holder(1), recent.holder(2), recent.holder(3)) == ("A", None, "C")
    assert recent.items() == [("A", 1), ("B", None), ("C", 3)]


def test_the_oldest_leaves_first_with_its_number() -> None:
    recent = RecentUnits(2, [("A", 1), ("B", None), ("C", 3), ("D", 4)])
    assert recent.items() == [("C", 3), ("D", 4)]
    assert "A" not in recent
    assert recent.holder(1) is None


def test_what_it_lists_gives_it_again() -> None:
    recent = RecentUnits(2, [("A", 1), ("B", 2), ("C", None)])
    again = RecentUnits(recent.window, recent.items())
    assert again.items() == recent.items()
    assert again.holder(2) == "B"
