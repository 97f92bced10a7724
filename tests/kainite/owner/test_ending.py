"""When the owner looks whether units are complete, and asks how far shards are read."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.collecting.collect import collect
from kainite.log.collecting.watermark import Watermark, next_due_ms, ripe
from kainite.log.format.entry import Entry
from kainite.log.state.folded import FoldedLog
from kainite.log.state.open_unit import OpenUnit
from kainite.owner import ending as ending_module
from kainite.owner.ending import Ending
from kainite.settings import UowEnd, UowOrder, UowSettings
from kainite.uow.delta import UnitEnd
from support.log_builders import fragment
from support.waiting import until

RULES = UowSettings(end=UowEnd.WATERMARK, grace=5.0)
NOON = 1_700_000_000_000
"""Noon by Kinesis' clock, milliseconds; this clock shows 100 s then."""


@dataclass
class Owner:
    """A state, two shards, and a clock that shows what the test says."""

    state: FoldedLog = field(default_factory=FoldedLog)
    now: float = 100.0
    asked: int = 0
    looks: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watermark = Watermark(lambda: self.now)
        self.watermark.learn(NOON)
        self.watermark.until_ms = self.look  # type: ignore[method-assign]
        self.ending = Ending(self.watermark, RULES)
        self.ending.readers.add(self.ask)

    def ask(self) -> None:
        self.asked += 1

    def look(self) -> float:
        self.looks.append(Watermark.until_ms(self.watermark))
        return self.looks[-1]

    async def write(self, decide: Callable[[FoldedLog], Sequence[Entry]]) -> None:
        decide(self.state)

    def collect(self, uow: str, at: int = NOON) -> None:
        part = replace(fragment(uow, [1]), time=at * 1_000_000, arrived_ms=at)
        collect(self.state, RULES, "s0", Position(self.state.next_id + 1), [part], 0)
        self.ending.collected()

    def read(self, *shards: str) -> None:
        tips = dict.fromkeys(shards, 0.0)
        self.watermark.report(ReadingReport(frozenset({"s0", "s1"}), {}, tips, {}))
        self.ending.reported()

    def released(self) -> list[str]:
        return [unit.uow for unit in self.state.units.values()]


@contextmanager
def at_work(monkeypatch: pytest.MonkeyPatch) -> Iterator[Owner]:
    """Runs an owner whose pauses are short."""
    for name in ("LOOK_S", "ASK_S", "MOST_S"):
        monkeypatch.setattr(ending_module, name, 0.001)
    owner = Owner()
    running = asyncio.create_task(owner.ending.run(owner))
    try:
        yield owner
    finally:
        running.cancel()


async def test_readers_are_asked_once_a_unit_waits_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with at_work(monkeypatch) as owner:
        for _ in range(20):
            await asyncio.sleep(0)
        owner.collect("T")
        seen = owner.looks
        await until(lambda: len(seen) > 3)
        assert owner.asked == 0, "no shard can be read so far before the grace is over"
        owner.now += 5.1
        await until(lambda: owner.asked > 3)
        owner.read("s0")
        asked = owner.asked
        await until(lambda: owner.asked > asked + 3)
        assert owner.released() == []
        owner.read("s0", "s1")
        await until(lambda: owner.released() == ["T"])
        asked = owner.asked
        owner.collect("U", NOON + 10_000)
        seen.clear()
        await until(lambda: len(seen) > 3)
        assert owner.asked == asked


async def test_a_report_is_looked_at_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    with at_work(monkeypatch) as owner:
        monkeypatch.setattr(ending_module, "ASK_S", 3600.0)
        owner.now += 5.1
        owner.collect("T")
        await until(lambda: owner.asked > 0)
        owner.read("s0", "s1")
        await until(lambda: owner.released() == ["T"])


async def test_without_units_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    with at_work(monkeypatch) as owner:
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(owner.looks) <= 1


async def test_looks_that_take_long_leave_time_to_append(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def slow(units: Iterable[OpenUnit], rules: UowSettings) -> float:
        seen.append(time.perf_counter())
        time.sleep(0.005)  # as hundreds of thousands of open units take
        return next_due_ms(units, rules)

    monkeypatch.setattr(ending_module, "next_due_ms", slow)
    with at_work(monkeypatch) as owner:
        owner.collect("T")
        await until(lambda: len(seen) > 3)
    assert min(later - earlier for earlier, later in itertools.pairwise(seen)) >= 5 * 0.005


UNITS = st.builds(
    lambda place, time, arrived, ends: OpenUnit(
        f"T-{place}", 0, time=None if time is None else time * 1_000_000, arrived_ms=arrived, end=ends
    ),
    st.integers(0, 50), st.none() | st.integers(0, 50), st.none() | st.integers(0, 50),
    st.sampled_from([None, UnitEnd(1)]),
)  # fmt: skip


@given(st.lists(UNITS, unique_by=lambda unit: unit.uow), st.sampled_from([UowOrder.TIME, UowOrder.ARRIVAL]))
def test_the_next_look_is_due_when_the_first_unit_is_ripe(units: list[OpenUnit], order: UowOrder) -> None:
    rules = replace(RULES, order=order, grace=0.003)
    due_ms = next_due_ms(units, rules)
    assert ripe(units, rules, due_ms - 0.5) == []
    assert bool(ripe(units, rules, due_ms)) is (due_ms < math.inf)
