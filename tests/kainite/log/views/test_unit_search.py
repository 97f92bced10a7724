"""Searching among all units of a log."""

from __future__ import annotations

from kainite.log.format.entry import EntryKind, FragmentMeta, Outcome, UnitStatus
from kainite.log.state.unit_filter import UnitFilter
from kainite.log.state.unit_state import UnitState
from kainite.log.views.followed_units import FollowedUnits
from kainite.log.views.unit_search import all_tables, find
from support.growing_log import GrowingLog, P, one_entry


def test_a_search_has_the_filters_meaning_pages_and_counts_of_all_statuses() -> None:
    log = GrowingLog()
    tids = [log.unit(f"T-{number}", "a" if number % 2 else "b") for number in range(10)]
    log.append(one_entry(EntryKind.FRAGMENT, FragmentMeta("open-1", "shard-1", 1), "c"))
    log.settle(
        Outcome(tids[3], UnitStatus.FAILED, 1, "violates x [23503]"),
        Outcome(tids[4], UnitStatus.BLOCKED, None, "waits for 3"),
    )
    units = FollowedUnits(log.store, P)
    units.refresh()

    everything = find(units, UnitFilter(), 0, 4)
    assert ([row.uow for row in everything.rows], everything.total) == (["open-1", "T-9", "T-8", "T-7"], 11)
    assert everything.tables[:3] == [["c"], ("a",), ("b",)]
    assert everything.counts == {"collecting": 1, "in progress": 8, "failed": 1, "blocked": 1}
    assert [row.uow for row in find(units, UnitFilter(), 9, 4).rows] == ["T-1", "T-0"]
    assert find(units, UnitFilter(), 50, 4).rows == []

    failed = find(units, UnitFilter(statuses=("failed",), tables=("a",)))
    assert ([row.uow for row in failed.rows], failed.total, failed.counts["in progress"]) == (["T-3"], 1, 4)
    assert [row.uow for row in find(units, UnitFilter(names=("*-1",))).rows] == ["open-1", "T-1"]
    assert [row.uow for row in find(units, UnitFilter(causes=("WAITS",))).rows] == ["T-4"]
    assert [row.uow for row in find(units, UnitFilter(statuses=("collecting",))).rows] == ["open-1"]
    assert all_tables(units) == ["a", "b", "c"]
    named = units.named("T-3")
    assert isinstance(named, UnitState)
    assert units.row(named).status == "failed"
    assert units.named("T-99") is None
