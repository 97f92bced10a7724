"""What comes under the name of a whole unit and is no copy of it: it is never dropped, however appends are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, permutations

import pytest

from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.format.entry import (
    NAMES,
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    Outcome,
    StatusMeta,
    UnitStatus,
)
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.unit_state import UnitState
from kainite.settings import UowOrder, UowSettings
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment, Reject

ORDERS = [UowSettings(order=UowOrder.ARRIVAL), UowSettings(order=UowOrder.DENSE, first_number=1)]


def delta(key: int) -> Fragment:
    return Fragment("T", (Delta("t", Operation.INSERT, {"id": key}, {}, {}),))


def end(count: int) -> Fragment:
    return Fragment("T", ends=(UnitEnd(count, 1),))


BAD = Fragment("T", rejects=(Reject("no delta", "{}"),))
SPOILED = {
    "two ends": (delta(1), end(1), end(2)),
    "two ends without a delta": (end(0), end(1)),
    "too many": (delta(1), delta(2), end(1)),
    "a bad line": (delta(1), BAD, end(1)),
    "one name twice": (delta(1), end(1), delta(2), end(1)),
    "an end for each batch": (delta(1), end(1), delta(2), delta(3), end(2)),
}


class Log:
    """A log whose owner gets appends."""

    def __init__(self, rules: UowSettings = ORDERS[0]) -> None:
        self.state, self.rules = FoldedLog(), rules

    def bring(self, *parts: Fragment) -> list[Entry]:
        """Makes one append; all its parts are one fragment then."""
        whole = Fragment(
            "T",
            tuple(each for part in parts for each in part.deltas),
            ends=tuple(each for part in parts for each in part.ends),
            rejects=tuple(each for part in parts for each in part.rejects),
        )
        return collect(self.state, self.rules, "s0", Position(self.state.next_id + 1), [whole], 0)

    def unit(self, uow: str) -> UnitState:
        found = self.state.find(uow)
        assert found is not None
        return found

    def resolve(self, uow: str, status: UnitStatus) -> None:
        meta = StatusMeta((Outcome(self.unit(uow).tid, status),))
        Journal(self.state, 0).write(EntryKind.STATUS, meta)

    def kept(self) -> int:
        return sum(unit.count for unit in self.state.units.values())


def appends_of(parts: Sequence[Fragment]) -> Iterator[list[Sequence[Fragment]]]:
    """Yields the parts in each order, cut into appends in each way."""
    for order in permutations(parts):
        for count in range(len(parts)):
            for places in combinations(range(1, len(parts)), count):
                yield [order[low:high] for low, high in pairwise((0, *places, len(parts)))]


@pytest.mark.parametrize("rules", ORDERS, ids=["arrival", "dense"])
@pytest.mark.parametrize("kind", SPOILED)
def test_a_spoiled_unit_is_told_and_no_delta_of_it_is_lost_however_its_appends_are_cut(
    kind: str, rules: UowSettings
) -> None:
    deltas = sum(len(part.deltas) for part in SPOILED[kind])
    for appends in appends_of(SPOILED[kind]):
        log = Log(rules)
        for parts in appends:
            log.bring(*parts)
        failed = [unit for unit in log.state.units.values() if unit.status is UnitStatus.FAILED]
        assert failed, appends
        assert all(unit.cause for unit in failed)
        kept = log.kept()
        assert kept == deltas or log.unit("T").malformed, "of a unit that nobody applies, a person looks at the source"
        log.bring(*(part for parts in appends for part in parts))
        log.bring(*appends[-1])
        assert log.kept() == kept, "a copy is none of the unit's"


def test_it_fails_as_a_unit_of_its_own_that_a_person_may_retry() -> None:
    log = Log()
    log.bring(delta(1), end(1))
    log.bring(delta(2), delta(1))
    log.bring(delta(3), end(2))
    whole, late = log.unit("T"), log.unit("T+late")
    assert (whole.status, whole.count) == (UnitStatus.IN_PROGRESS, 1)
    assert (late.status, late.count, late.fault, late.obstacle) == (UnitStatus.FAILED, 2, Fault.LATE, None)
    assert "complete with the 1 delta that its end announced: the count in its end is wrong" in (late.cause or "")


def test_another_end_alone_fails_as_a_unit_without_deltas() -> None:
    log = Log()
    log.bring(delta(1), end(1))
    log.bring(end(2))
    assert (log.unit("T+late").count, log.unit("T").count) == (0, 1)
    assert "two ends disagree: count 1, number 1, normal and count 2" in (log.unit("T+late").cause or "")


def test_a_bad_line_behind_the_end_fails_for_good() -> None:
    log = Log()
    log.bring(delta(1), end(1))
    log.bring(BAD)
    assert (log.unit("T+late").malformed, log.unit("T+late").cause) == (True, "no delta")


def test_copies_of_a_unit_that_came_in_parts_or_late_are_dropped() -> None:
    log = Log()
    for parts in ((delta(1),), (delta(2), end(3)), (delta(3),)):
        log.bring(*parts)
    for copy in ((delta(2), end(3)), (delta(3), delta(1)), (end(3),)):
        assert len(log.bring(*copy)) == 1, "the shard's position alone"


@pytest.mark.parametrize("status", [None, UnitStatus.COMMITTED, UnitStatus.DISCARDED])
@pytest.mark.parametrize("part", [delta(2), end(2), BAD], ids=["delta", "end", "bad line"])
def test_a_late_part_that_is_sent_again_is_a_copy(part: Fragment, status: UnitStatus | None) -> None:
    """Shows it makes no second late unit, which a person would retry, also when the first one is resolved."""
    log = Log()
    log.bring(delta(1), end(1))
    log.bring(part)
    if status is not None:
        log.resolve("T+late", status)
    for copy in ((part,), (delta(1), part, end(1)), (part, part)):
        assert len(log.bring(*copy)) == 1, "the shard's position alone"
    log.bring(delta(3), part)
    late = log.unit("T+late" if status is None and part != BAD else "T+late2")
    assert (late.count, late.fault) == (2 if late.uow == "T+late" and part == delta(2) else 1, Fault.LATE)


def test_a_unit_that_fails_is_not_compared_with_an_earlier_one_of_its_name() -> None:
    log = Log()
    log.bring(delta(1), end(1))
    log.resolve("T", UnitStatus.COMMITTED)
    Journal(log.state, 0).write(EntryKind.CONTROL, ControlMeta(NAMES, count=1))
    log.bring(delta(2), BAD, end(1))
    assert log.unit("T").malformed
    assert len(log.bring(delta(2))) == 1


def test_who_has_loaded_the_log_takes_what_comes_for_a_copy() -> None:
    log = Log()
    log.bring(delta(1), end(1))
    log.state = snapshot.load(snapshot.dump(log.state))
    assert len(log.bring(delta(2))) == 1
