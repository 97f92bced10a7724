"""Tests what the log's owner tells the meter of units and batches."""

from __future__ import annotations

import asyncio

from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.collecting.watermark import Held
from kainite.log.format.entry import EntryKind, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.owner.unit_metrics import UnitMetrics
from kainite.settings import LogSettings, UowEnd, UowSettings
from kainite.store.memory import MemoryStore
from support.log_builders import fragment
from support.metric_sums import Sums
from support.next_append import append_next
from support.outcomes_log import OutcomesLog
from support.owned_log import owned_log
from support.waiting import until

SETTINGS = LogSettings(table="t", owner="a", enabled=True, lease=2.0, heartbeat=0.05, put_interval=0.0, poll=0.02)


async def test_units_are_counted_from_their_place_to_their_outcome() -> None:
    store, sums = MemoryStore(), Sums()
    async with owned_log(store, SETTINGS, UowSettings(), meter=Meter(sums)) as log:
        await append_next(
            log, "s", Position(1), Position(2), [fragment("A", [1, 2], count=2), fragment("B", [2], count=1)]
        )
        await append_next(log, "s", Position(3), Position(3), [fragment("C", [7])])
        OutcomesLog(store).report(Outcome(0, UnitStatus.COMMITTED), Outcome(1, UnitStatus.FAILED, cause="refused"))
        await until(lambda: sums.values[metric.UNITS_FAILED] == 1)
    told = sums.values
    assert (told[metric.UNITS_COLLECTED], told[metric.UNIT_DELTAS]) == (2, 3)
    assert (told[metric.UNITS_COMMITTED], told[metric.UNITS_DISCARDED]) == (1, 0)
    assert told[metric.LOG_BATCHES] == sums.seen[metric.LOG_PUT_TIME] >= 2
    assert told[metric.LOG_BYTES] > 0
    assert sums.seen[metric.LOG_APPEND_TIME] >= 2


def test_a_sample_tells_what_is_not_resolved_and_how_old_the_oldest_is() -> None:
    sums, now = Sums(), 0.0
    metrics = UnitMetrics(Meter(sums), lambda: now)
    state = FoldedLog()
    journal = Journal(state, 0)
    metrics.sample(state)
    assert sums.values[metric.OLDEST_UNIT] == 0
    _dispatch(journal, "A")
    metrics.sample(state)
    now = 40.0
    _dispatch(journal, "B")
    metrics.sample(state)
    assert (sums.values[metric.UNITS_IN_PROGRESS], sums.values[metric.OLDEST_UNIT]) == (2, 40_000)
    _resolve(journal, Outcome(0, UnitStatus.FAILED, cause="refused"), Outcome(1, UnitStatus.BLOCKED))
    metrics.sample(state)
    standing = (metric.UNITS_IN_PROGRESS, metric.FAILED_UNITS, metric.BLOCKED_UNITS, metric.OLDEST_UNIT)
    assert [sums.values[each] for each in standing] == [0, 1, 1, 0]


def _dispatch(journal: Journal, uow: str) -> None:
    journal.write(EntryKind.UNIT, UnitMeta(uow, 1))


def _resolve(journal: Journal, *outcomes: Outcome) -> None:
    journal.write(EntryKind.STATUS, StatusMeta(outcomes))


async def test_an_owner_that_leaves_has_nothing_any_more() -> None:
    sums, state = Sums(), FoldedLog()
    _dispatch(Journal(state, 0), "A")
    sampling = asyncio.create_task(UnitMetrics(Meter(sums), lambda: 0.0).sample_on(lambda: (state, 7.0)))
    await until(lambda: sums.values[metric.UNITS_IN_PROGRESS] == 1)
    assert sums.values[metric.WATERMARK_BEHIND] == 7_000
    sampling.cancel()
    await until(lambda: sums.values[metric.UNITS_IN_PROGRESS] == 0)
    await until(lambda: sums.values[metric.WATERMARK_BEHIND] == 0)


async def test_a_shard_that_nobody_reads_holds_units_back_and_is_told() -> None:
    now, sums = 0.0, Sums()
    rules = UowSettings(end=UowEnd.WATERMARK)
    async with owned_log(MemoryStore(), SETTINGS, rules, meter=Meter(sums), clock=lambda: now) as log:
        assert log.held_by() is None, "no unit waits"
        await append_next(log, "s", Position(1), Position(1), [fragment("A", [1])])
        log.report(ReadingReport(frozenset({"s", "t"}), {"s": 0.0}, {"s": 0.0}, {"s": 1_000}))
        held = log.held_by()
        assert isinstance(held, Held)
        assert (held.shard, held.seconds) == ("t", None)
        assert "nobody tells how far shard t is read" in str(held)
