"""When units were committed at the source, arrived, were collected, dispatched and applied."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kainite.log.contract import LogStore
from kainite.log.format.entry import (
    Batch,
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    Outcome,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.views.unit_table import read_rows
from kainite.log.views.unit_times import TimedUnits, UnitTimes, load_units
from kainite.uow.delta import UnitEnd


def fragment(uow: str = "T", **more: Any) -> Entry:
    return Entry(EntryKind.FRAGMENT, FragmentMeta(uow, "s", 1, **more))


def unit(uow: str = "T", count: int = 1, **more: Any) -> Entry:
    return Entry(EntryKind.UNIT, UnitMeta(uow, count, **more))


def committed(tid: int, at_ms: int | None) -> Entry:
    return Entry(EntryKind.STATUS, StatusMeta((Outcome(tid, UnitStatus.COMMITTED, 0, at_ms=at_ms),)))


def folded(*entries: Entry) -> TimedUnits:
    """Folds entries, each formed 10 ms after the one before."""
    units = TimedUnits()
    for tid, entry in enumerate(entries):
        units.apply(tid, entry, 1000 + 10 * tid)
    return units


def test_a_unit_in_one_append_is_collected_and_dispatched_at_once() -> None:
    units = folded(unit(time=900_999_999, arrived_ms=950), committed(0, 1100))
    assert units.of(0) == UnitTimes(900, 950, 1000, 1000, 1100)


def test_the_latest_part_counts_and_a_unit_that_waits_for_its_turn_is_dispatched_later() -> None:
    parts = (
        fragment(time=2_000_000, arrived_ms=960),
        fragment(time=1_000_000, arrived_ms=955, end=UnitEnd(2)),
    )
    units = folded(*parts, unit("U"), unit(count=2, fragments=(0, 1)))
    assert units.of(3) == UnitTimes(2, 960, 1010, 1030, None)


def test_a_unit_that_the_watermark_ends_has_the_times_that_end_it() -> None:
    times: dict[str, Any] = {"time": 3_000_000, "arrived_ms": 970, "watermark": True}
    units = folded(fragment(**times), unit(fragments=(0,), **times))
    assert units.of(1) == UnitTimes(3, 970, 1000, 1010, None)


def test_where_no_arrival_is_told_units_have_the_times_of_their_batches() -> None:
    units = folded(fragment(end=UnitEnd(2)), unit(count=2, fragments=(0,)), committed(1, None))
    assert units.of(1) == UnitTimes(collected_ms=1010, dispatched_ms=1010)


def test_parts_that_come_late_for_a_failed_unit_count() -> None:
    opened = fragment(end=UnitEnd(2))
    failed = unit(fragments=(0,), cause="incomplete", fault=Fault.INCOMPLETE)
    units = folded(opened, failed, fragment(arrived_ms=980))
    assert units.of(1) == UnitTimes(None, 980, 1020, 1010, None)


def test_rows_and_the_units_of_the_index_have_the_same_times(store: LogStore) -> None:
    entries = (unit(time=900_000_000, arrived_ms=950), committed(0, 1100), fragment("open", arrived_ms=960))
    assert store.put_batch("p", Batch(0, 1, 1000, entries), "n") is None
    dispatched, opened = read_rows(store, "p")
    assert asdict(load_units(store, "p", 0).of(0)).items() <= asdict(dispatched).items()
    assert (dispatched.applied_ms, dispatched.took_s) == (1100, 0.15)
    assert (opened.arrived_ms, opened.collected_ms, opened.dispatched_ms, opened.took_s) == (960, 1000, None, None)
