"""The fold of a follower is the log's, as far as it goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.log.format.entry import (
    TARGETS,
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    Meta,
    OperationKind,
    OperationMeta,
    OperationResult,
    Outcome,
    RefitMeta,
    SchemeMeta,
    StatusMeta,
    TargetMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.followed import NOTED, FollowedLog
from kainite.settings.assignment import TableAssignment
from kainite.uow.delta import UnitEnd
from kainite.uow.touches import Touched
from support.followed_log import is_alike

NAMES = st.sampled_from(["A", "B", "C"])
IDS = st.integers(0, 12)
TOUCHED = st.builds(
    Touched, st.frozensets(st.integers(1, 5), max_size=2), tables=st.sampled_from([(), ("t",), ("u",), ("t", "u")])
)
ASSIGNED = TableAssignment((("one", ("t",)), ("two", ("u",))))
MOVED = TableAssignment((("two", ("t",)), ("one", ())))
ENTRIES = st.one_of(
    st.builds(
        lambda uow, touched, size: Entry(EntryKind.FRAGMENT, FragmentMeta(uow, "s0", 1, end=UnitEnd(size)), touched),
        NAMES, TOUCHED, st.integers(1, 3),
    ),
    st.builds(
        lambda to: Entry(EntryKind.CONTROL, ControlMeta(TARGETS, key=to.as_text())), st.sampled_from([ASSIGNED, MOVED])
    ),
    st.builds(
        lambda uow, count, touched: Entry(EntryKind.FRAGMENT, FragmentMeta(uow, "s0", count), touched),
        NAMES, st.sampled_from([1, NOTED, NOTED + 1]), TOUCHED,
    ),
    st.builds(
        lambda uow, size: Entry(EntryKind.FRAGMENT, FragmentMeta(uow, "s0", 1, end=UnitEnd(size, None))),
        NAMES, st.integers(1, 3),
    ),
    st.builds(lambda uow, touched: Entry(EntryKind.UNIT, UnitMeta(uow, 1), touched), NAMES, TOUCHED),
    st.builds(
        lambda uow, fault: Entry(EntryKind.UNIT, UnitMeta(uow, 1, cause="odd", fault=fault)),
        NAMES, st.sampled_from([Fault.INCOMPLETE, Fault.LATE, Fault.MISFIT]),
    ),
    st.builds(lambda tid, uow, touched: Entry(EntryKind.REFIT, RefitMeta(tid, uow, 1), touched), IDS, NAMES, TOUCHED),
    st.builds(lambda name: Entry(EntryKind.SCHEME, SchemeMeta(name, {"t": ("a", ("b",))})), NAMES),
    st.builds(
        lambda what: Entry(EntryKind.OPERATION, OperationMeta("r", what, "", "ann", "why", 0, OperationResult.DONE)),
        st.sampled_from([OperationKind.PAUSE, OperationKind.RESUME]),
    ),
    st.builds(
        lambda tid, status, through: Entry(EntryKind.STATUS, StatusMeta((Outcome(tid, status),), through)),
        IDS, st.sampled_from(UnitStatus), st.none() | IDS,
    ),
    st.builds(
        lambda name, tid, status, through: Entry(EntryKind.TARGET, TargetMeta(name, (Outcome(tid, status),), through)),
        st.sampled_from(ASSIGNED.names), IDS, st.sampled_from(UnitStatus), IDS,
    ),
)  # fmt: skip


def is_possible(meta: Meta, state: FoldedLog) -> bool:
    """Returns whether an owner may write such an entry: of one name one unit waits, and a failed one is judged anew."""
    if isinstance(meta, RefitMeta):
        unit = state.units.get(meta.unit)
        return unit is None or (unit.uow == meta.uow and unit.status is UnitStatus.FAILED)
    return not isinstance(meta, UnitMeta) or state.find(meta.uow) is None


@given(st.lists(ENTRIES, max_size=25), st.integers(0, 25), st.booleans(), st.booleans())
def test_a_follower_that_begins_anywhere_has_the_units_of_the_whole_fold(
    entries: list[Entry], begin: int, several: bool, snapped: bool
) -> None:
    if several:
        entries = [Entry(EntryKind.CONTROL, ControlMeta(TARGETS, key=ASSIGNED.as_text())), *entries]
    whole, before, later = FoldedLog(), FoldedLog(), list[Entry]()
    for entry in (entry for entry in entries if is_possible(entry.meta, whole)):
        for state in (whole, before) if whole.next_id < begin else (whole,):
            state.apply(state.next_id, entry, 0)
        if before.next_id < whole.next_id:
            later.append(entry)
    followed = FollowedLog(snapshot.load(snapshot.dump(before)) if snapped else before)
    for entry in later:
        followed.apply(followed.next_id, entry, 0)
    assert is_alike(followed, whole)
    assert [followed.failed(uow) for uow in "ABC"] == [whole.failed(uow) for uow in "ABC"]


def test_entries_come_in_order() -> None:
    with pytest.raises(ValueError, match="entry 1 folded where 0 is next"):
        FollowedLog().apply(1, Entry(EntryKind.STATUS, StatusMeta()), 0)
