"""Whole units in one fragment: the quick way writes what the general way writes, and leaves others alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.log.collecting import collect as collecting
from kainite.log.collecting.collect import collect
from kainite.log.collecting.whole_units import taken_whole
from kainite.log.format.entry import EntryKind
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.settings import Isolation, UowEnd, UowOrder, UowSettings
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.scheme import Scheme
from kainite.uow.touches import Touched

TOUCHED = Touched(frozenset({1, 2}), frozenset({3}), ("t",), (), "keys 3")
RULES = st.builds(
    UowSettings,
    order=st.sampled_from([UowOrder.ARRIVAL, UowOrder.DENSE]),
    isolation=st.sampled_from(list(Isolation)),
)
FRAGMENTS = st.builds(
    Fragment,
    uow=st.sampled_from("ABCDE"),
    touched=st.just(TOUCHED),
    ends=st.lists(
        st.builds(UnitEnd, st.integers(0, 3), st.none() | st.integers(0, 4), st.sampled_from(list(UnitKind))),
        max_size=2,
    ).map(tuple),
    rejects=st.sampled_from([(), (), (), (Reject("no delta", "{}"),)]),
    identities=st.lists(st.integers(0, 2) | st.just(b"x" * 16), max_size=3).map(tuple),
    misfits=st.sampled_from([(), (), (), (Reject("no table", "{}"),)]),
    scheme=st.sampled_from([None, Scheme({})]),
    time=st.none() | st.just(17),
    arrived_ms=st.none() | st.just(18),
)


@given(RULES, st.lists(st.lists(FRAGMENTS, max_size=4), max_size=6))
def test_the_log_is_the_same_without_the_quick_way(rules: UowSettings, calls: list[list[Fragment]]) -> None:
    quick, general = FoldedLog(), FoldedLog()
    for number, call in enumerate(calls):
        place = "s", Position(number)
        entries = collect(quick, rules, *place, call, number)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(collecting, "taken_whole", lambda *_: False)
            assert collect(general, rules, *place, call, number) == entries
    assert snapshot.dump(quick) == snapshot.dump(general)


WHOLE = {"uow": "A", "touched": TOUCHED, "ends": (UnitEnd(1, 1),), "identities": (0,)}


def kind_of_entry(rules: UowSettings, **changed: object) -> EntryKind | None:
    """Returns the kind of the entry that the quick way writes; None for a unit that it leaves alone."""
    journal = Journal(FoldedLog(), 0)
    taken = taken_whole(journal, rules, "s", Fragment(**{**WHOLE, **changed}))  # type: ignore[arg-type]
    kinds = [entry.kind for entry in journal.entries]
    assert len(kinds) == taken
    return kinds[0] if taken else None


@pytest.mark.parametrize("rules", [UowSettings(), UowSettings(order=UowOrder.DENSE)])
def test_a_plain_unit_is_dispatched(rules: UowSettings) -> None:
    assert kind_of_entry(rules) is EntryKind.UNIT


def test_a_plain_unit_with_a_later_number_is_kept_for_its_turn() -> None:
    assert kind_of_entry(UowSettings(order=UowOrder.DENSE), ends=(UnitEnd(1, 2),)) is EntryKind.FRAGMENT


@pytest.mark.parametrize(
    ("rules", "changed"),
    [
        (UowSettings(end=UowEnd.WATERMARK), {}),
        (UowSettings(order=UowOrder.TIME), {}),
        (UowSettings(order=UowOrder.DENSE), {"ends": (UnitEnd(1, 0),)}),
        (UowSettings(order=UowOrder.DENSE), {"ends": (UnitEnd(1, 2),), "identities": (b"x" * 16,)}),
        (UowSettings(order=UowOrder.DENSE), {"ends": (UnitEnd(1),)}),
        (UowSettings(), {"ends": (UnitEnd(2, 1),)}),
        (UowSettings(), {"ends": ()}),
        (UowSettings(), {"identities": (0, 0), "ends": (UnitEnd(2, 1),)}),
        (UowSettings(), {"rejects": (Reject("no delta", ""),)}),
        (UowSettings(), {"misfits": (Reject("no table", ""),)}),
    ],
)
def test_a_unit_that_is_not_plain_is_left_to_the_general_way(rules: UowSettings, changed: dict[str, object]) -> None:
    assert kind_of_entry(rules, **changed) is None
