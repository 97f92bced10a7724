"""Units that are followed are those of the whole table, however the log grows, and whatever a refresh leaves unread."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from kainite.log.format.entry import EntryKind, FragmentMeta, Outcome, UnitStatus
from kainite.log.views.followed_units import FollowedUnits
from kainite.log.views.unit_table import LogRow, read_present_rows
from kainite.store.memory import MemoryStore
from support.growing_log import GrowingLog, P, one_entry


def rows(units: FollowedUnits) -> list[LogRow]:
    return [*map(units.row, units.dispatched()), *map(units.row, units.open.values())]


def indexed(row: LogRow) -> LogRow:
    """Returns a row without the columns that are not in the log's index, and without its age-old conflicts."""
    return replace(row, signature=[], trans_in=None, offending=None, conflict=None)


def whole(log: GrowingLog) -> list[LogRow]:
    return [indexed(row) for row in read_present_rows(log.store, P)]


@pytest.mark.parametrize("seed", range(8))
def test_they_are_the_rows_of_the_table(seed: int) -> None:
    draw, log = random.Random(seed), GrowingLog()
    units, pending, made = FollowedUnits(log.store, P), list[tuple[int, Outcome]](), list[int]()
    for step in range(120):
        match draw.randrange(6):
            case 0 | 1:
                made.append(log.unit(f"T-{step}"))
            case 2:
                log.append(one_entry(EntryKind.FRAGMENT, FragmentMeta(f"F-{draw.randrange(5)}-{seed}", "shard-1", 1)))
            case 3 if made:
                outcome = Outcome(draw.choice(made), draw.choice([*UnitStatus]), 1, "because", 9_000)
                pending.append((log.settle(outcome), outcome))
            case 4 if pending:
                log.copy(pending[-1][0], *(outcome for _, outcome in pending))
                pending.clear()
            case _:
                while not units.refresh(0.0 if draw.random() < 0.5 else 60.0).complete:
                    pass
                assert [indexed(row) for row in rows(units)] == whole(log)
                dispatched = [row for row in rows(units) if row.id is not None]
                assert units.counts() == Counter(row.status for row in dispatched)
                assert [unit.tid for unit in units.latest()] == [row.id for row in reversed(dispatched)]


def test_what_is_applied_is_told_once_and_with_its_time() -> None:
    log = GrowingLog()
    units, tid = FollowedUnits(log.store, P), log.unit("T")
    units.refresh()
    done = Outcome(tid, UnitStatus.COMMITTED, 1, None, 9_000)
    at = log.settle(done)
    early = units.refresh()
    assert (early.applied, list(early.outcomes)) == ((), [""])
    assert units.row(next(units.dispatched())).applied_ms == 9_000
    log.copy(at, done)
    assert [each.at_ms for each in units.refresh().applied] == [9_000]
    log.copy(at, done)
    assert units.refresh().applied == ()


def test_truncated_units_are_forgotten_and_a_reader_that_fell_behind_begins_anew() -> None:
    log = GrowingLog()
    units, other = FollowedUnits(log.store, P), FollowedUnits(log.store, P)
    first = log.unit("gone")
    units.refresh()
    log.copy(-1, Outcome(first, UnitStatus.COMMITTED, 1, None, 9_000))
    kept = log.unit("kept")
    units.refresh()
    other.refresh(0.0)
    log.unit("last")
    log.truncate(kept)
    assert not units.refresh().anew
    found = other.refresh()
    while not found.complete:
        found = other.refresh()
    for each in (units, other):
        assert [row.uow for row in rows(each)] == ["kept", "last"]
        assert each.counts() == {"in progress": 2}
        assert each.unit(first) is None


def test_a_log_of_nobody_is_empty_and_another_log_is_read_anew() -> None:
    store = MemoryStore()
    units = FollowedUnits(store, P)
    assert units.refresh().complete
    assert units.head is None
    log = GrowingLog()
    log.unit("T")
    units = FollowedUnits(log.store, P)
    units.refresh()
    head = log.store.read_head(P)
    assert head is not None
    log.store.swap_head(P, replace(head, generation=head.generation - 1, version="x"), head)
    assert units.refresh().anew
    assert len(units) == 1
