"""Units end without anything new of them: overdue, or complete by the watermark."""

from __future__ import annotations

import math

from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.collecting.overdue import expire, release, release_turn
from kainite.log.collecting.unit_entries import RELEASED
from kainite.log.format.entry import Entry, Fault, FragmentMeta, UnitMeta
from kainite.log.state.folded import FoldedLog
from kainite.settings import UowEnd, UowOrder, UowSettings
from kainite.uow.fragment import Fragment
from support.log_builders import fragment

ARRIVAL, DENSE = UowSettings(), UowSettings(order=UowOrder.DENSE, first_number=1)


def collected(rules: UowSettings, *fragments: Fragment) -> FoldedLog:
    state = FoldedLog()
    collect(state, rules, "s", Position(1), fragments, 0)
    return state


def units(entries: list[Entry]) -> list[tuple[str, Fault | None]]:
    return [(entry.meta.uow, entry.meta.fault) for entry in entries if isinstance(entry.meta, UnitMeta)]


def test_only_an_overdue_unit_fails() -> None:
    state = collected(ARRIVAL, fragment("A", [1]), fragment("B", [2], count=2))
    assert units(expire(state, ARRIVAL, 0, ["B"])) == [("B", Fault.INCOMPLETE)]
    assert list(state.open) == ["A"]


def test_a_unit_whose_turn_has_not_come_is_given_up_in_its_place() -> None:
    state = collected(DENSE, fragment("B", [2], count=2, number=2))
    entries = expire(state, DENSE, 0, ["B"])
    assert isinstance(entries[0].meta, FragmentMeta)
    assert entries[0].meta.fault is Fault.INCOMPLETE
    assert units(entries) == [("missing:1", Fault.MISSING_NUMBER), ("B", Fault.INCOMPLETE)]


def test_one_failed_unit_stands_for_the_numbers_that_do_not_come() -> None:
    state = collected(DENSE, fragment("C", [2], count=1, number=4))
    assert units(expire(state, DENSE, 0, ["C"])) == [("missing:1-3", Fault.MISSING_NUMBER), ("C", None)]


def test_the_watermark_releases_what_has_no_end() -> None:
    rules = UowSettings(end=UowEnd.WATERMARK, grace=1.0)
    part = Fragment("T", identities=(1,), time=5_000_000, arrived_ms=7)
    state = collected(rules, part)
    assert release(state, rules, 0, 1006.0) == []
    assert units(release(state, rules, 0, math.inf)) == [("T", None)]


def test_thousands_that_waited_for_one_number_go_in_portions() -> None:
    waiting = [fragment(f"T-{number}", [number], count=1, number=number) for number in range(2, 3 * RELEASED)]
    state = collected(DENSE, *waiting)
    collect(state, DENSE, "s", Position(2), [fragment("T-1", [1], count=1, number=1)], 0)
    assert 0 < len(state.ready) < len(waiting)
    gone = len(waiting) + 1 - len(state.ready)
    while portion := units(release_turn(state, DENSE, 0)):
        assert len(portion) <= RELEASED
        gone += len(portion)
    assert (gone, state.open, state.next_number) == (len(waiting) + 1, {}, 3 * RELEASED)
    assert release_turn(state, ARRIVAL, 0) == []
