"""What the units had that an owner has dispatched lately."""

from __future__ import annotations

import pytest

from kainite.log.state import handed_out
from kainite.log.state.handed_out import HandedOut
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject


def test_a_unit_tells_which_deltas_it_has() -> None:
    units = HandedOut()
    units.add("T-1", UnitEnd(2), (1, b"2"))
    unit = units.get("T-1")
    assert unit is not None
    assert [unit.known(asked) for asked in ((1, 3), (b"2", b"1"), ())] == [{1}, {b"2"}, set()]
    assert units.get("T-2") is None


@pytest.mark.parametrize(
    ("known", "other", "differs"),
    [
        (UnitEnd(2, 7), UnitEnd(2, 7), False),
        (UnitEnd(2, 7), UnitEnd(3, 7), True),
        (UnitEnd(2, 7), UnitEnd(2, 8), True),
        (UnitEnd(2, 7), UnitEnd(2), True),
        (UnitEnd(2), UnitEnd(2, 7), False),
        (UnitEnd(2), UnitEnd(2, kind=UnitKind.CORRECTION), True),
    ],
    ids=["the same", "count", "number", "no number", "the log took the number", "kind"],
)
def test_another_end_differs_in_what_the_log_still_knows(known: UnitEnd, other: UnitEnd, differs: bool) -> None:
    units = HandedOut()
    units.add("T", known, ())
    unit = units.get("T")
    assert unit is not None
    assert unit.differs(other) is differs


def test_the_oldest_leave_and_a_name_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed_out, "MOST_DELTAS", 7)
    units = HandedOut()
    for name in ("a", "b", "a", "b"):
        units.add(name, UnitEnd(2), (1, 2))
    assert len(units) == 2
    units.add("c", UnitEnd(2), (1, 2))
    assert [units.get(name) is None for name in ("a", "b", "c")] == [True, False, False]
    units.add("large", UnitEnd(9), tuple(range(9)))
    assert len(units) == 0


def test_late_parts_are_remembered_with_their_unit_and_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed_out, "MOST_DELTAS", 50)
    units, bad = HandedOut(), Reject("no delta", "{}")
    units.add_late("T", Fragment("T", identities=(1,)))
    assert len(units) == 0, "nobody knows what the unit had"
    units.add("T", UnitEnd(1), (1,))
    units.add_late("T", Fragment("T", identities=(2,), ends=(UnitEnd(2),), rejects=(bad,)))
    unit = units.get("T")
    assert unit is not None
    assert unit.known((1, 2, 3)) == {1, 2}
    assert bad in unit.told
    assert (unit.differs(UnitEnd(2)), unit.differs(UnitEnd(3))) == (False, True)
    units.add("other", UnitEnd(6), range(6))
    assert len(units) == 2
    units.add("more", UnitEnd(1), (1,))
    assert units.get("T") is None
    units.forget("other")
    units.forget("unknown")
    assert len(units) == 1
