"""The owner learns from readers how far shards are read: what waits for it is told, and asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.collecting.collect import collect
from kainite.log.collecting.watermark import Held
from kainite.log.format.entry import Entry
from kainite.log.state.folded import FoldedLog
from kainite.owner.reading_progress import ReadingProgress
from kainite.owner.turn_lag import LONG_S, HeldTurn
from kainite.settings import LogSettings, UowEnd, UowOrder, UowSettings
from kainite.uow.fragment import Fragment
from support.log_builders import fragment
from support.waiting import until

BY_WATERMARK = UowSettings(end=UowEnd.WATERMARK, order=UowOrder.TIME, grace=5.0)
DENSE = UowSettings(order=UowOrder.DENSE)
NOON = 1_700_000_000_000
"""Noon by Kinesis' clock, milliseconds."""


class World:
    """A folded log, what its owner knows of the reading, and a clock that shows what the test says."""

    def __init__(self, uow: UowSettings, *fragments: Fragment, bound: int = 3) -> None:
        self.now, self.state = 1_000.0, FoldedLog()
        if fragments:
            collect(self.state, uow, "s0", Position(1), fragments, NOON)
        settings = LogSettings("t", "a", enabled=True, backlog_units=bound)
        self.reading = ReadingProgress(self.state, settings, uow, lambda: self.now)

    def report(self, arrived: dict[str, int]) -> None:
        self.reading.report(ReadingReport(frozenset(arrived), {}, arrived=arrived))

    @asynccontextmanager
    async def ending(self) -> AsyncIterator[None]:
        """Dispatches units while the context is entered."""
        task = asyncio.create_task(self.reading.end_units(self))
        try:
            yield
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    async def write(self, decide: Callable[[FoldedLog], Sequence[Entry]]) -> None:
        decide(self.state)


def test_nothing_holds_a_log_up_in_which_nothing_waits() -> None:
    world = World(BY_WATERMARK)
    assert (world.reading.held_by(), world.reading.long_held_by(), world.reading.backlog()) == (None, None, None)
    assert world.reading.hold_ms is None
    assert world.reading.look() == 0.0


def test_a_unit_waits_for_the_shard_of_which_nothing_was_told() -> None:
    world = World(BY_WATERMARK, fragment("T", [1]))
    assert world.reading.held_by() == Held(None, None)
    assert world.reading.long_held_by() == Held(None, None)


def test_a_dense_log_is_held_up_by_the_number_that_did_not_come() -> None:
    world = World(DENSE, fragment("T-2", [2], count=1, number=2))
    world.report({"s0": NOON})
    world.reading.look()
    assert world.reading.long_held_by() is None
    world.now += LONG_S + 1
    world.report({"s0": NOON})
    world.reading.look()
    held = world.reading.long_held_by()
    assert isinstance(held, HeldTurn)
    assert held.number == 1


def test_beyond_the_bound_a_shard_that_is_ahead_waits_and_the_backlog_says_so() -> None:
    waiting = [fragment(f"T-{number}", [number], count=1, number=number) for number in (2, 3, 4)]
    world = World(DENSE, *waiting)
    world.report({"s0": 5_000_000, "s1": 9_000_000})
    hold = world.reading.hold_ms
    assert hold is not None
    assert 5_000_000 <= hold < 9_000_000
    backlog = world.reading.backlog()
    assert backlog is not None
    assert backlog.units == 3
    assert World(DENSE, *waiting, bound=4).reading.hold_ms is None


async def test_a_reader_is_asked_while_a_unit_waits_for_its_report_and_not_afterwards() -> None:
    world, asked = World(BY_WATERMARK, arrived("T")), list[float]()
    with world.reading.asking(lambda: asked.append(world.now)):
        async with world.ending():
            world.now += BY_WATERMARK.grace + 1
            world.reading.collected()
            await until(lambda: asked != [])
            assert "T" in world.state.open
            world.report({"s0": NOON + 6_000})
            await until(lambda: "T" not in world.state.open)
    before = len(asked)
    collect(world.state, BY_WATERMARK, "s0", Position(2), [arrived("U")], NOON)
    async with world.ending():
        world.now += BY_WATERMARK.grace + 1
        world.reading.collected()
        world.report({"s0": NOON + 20_000})
        await until(lambda: "U" not in world.state.open)
    assert len(asked) == before


async def test_a_new_owner_needs_no_record_to_know_what_kinesis_clock_shows() -> None:
    """Dispatches a unit by an empty reply alone: the unit's own arrival, which the log has, tells the clock."""
    world = World(BY_WATERMARK, arrived("T"))
    world.now += 60.0
    async with world.ending():
        world.reading.report(ReadingReport(frozenset({"s0"}), {}, {"s0": 0.0}))
        await until(lambda: "T" not in world.state.open)
    assert world.reading.look() == 0.0


def arrived(uow: str) -> Fragment:
    """Returns a fragment of a unit that is ended by the watermark; its record arrived at noon."""
    return replace(fragment(uow, [1]), arrived_ms=NOON)
