"""The lag is that of units that wait, and is warned of once in a while."""

from __future__ import annotations

import pytest

from kainite.log.client import ReadingReport
from kainite.log.collecting.watermark import Held, Watermark
from kainite.log.state.folded import FoldedLog
from kainite.owner.watermark_lag import LONG_BEHIND_S, TELL_S, WatermarkLag
from kainite.settings import UowEnd, UowOrder, UowSettings
from kainite.store.memory import MemoryStore
from kainite.uow.signature import Signatures
from support.log_builders import fragment
from support.main_log import MainLog

RULES = UowSettings(end=UowEnd.WATERMARK, order=UowOrder.TIME)
WARNING = "units wait for a shard to be read"


class World:
    """A watermark, a clock, and a log in which one unit is open."""

    def __init__(self, rules: UowSettings = RULES) -> None:
        self.now = 0.0
        self.watermark = Watermark(lambda: self.now)
        self.lag = WatermarkLag(self.watermark, rules, lambda: self.now)
        log = MainLog(MemoryStore(), Signatures(None))
        log.append(fragment("T", [1]))
        self.state = log.state


def test_nothing_holds_a_log_in_which_no_unit_waits() -> None:
    world = World()
    assert world.lag.held_by(FoldedLog()) is None
    assert world.lag.seconds(FoldedLog()) == 0.0


def test_where_units_have_ends_the_watermark_holds_nothing() -> None:
    world = World(UowSettings())
    assert world.lag.held_by(world.state) is None


def test_a_new_owner_does_not_warn_before_the_shards_had_their_time(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    assert world.lag.held_by(world.state) == Held(None, None)
    world.now = LONG_BEHIND_S - 1
    assert world.lag.seconds(world.state) == 0.0
    assert WARNING not in caplog.text
    for world.now, times in ((LONG_BEHIND_S, 1), (LONG_BEHIND_S + TELL_S - 1, 1), (LONG_BEHIND_S + TELL_S, 2)):
        world.lag.seconds(world.state)
        assert caplog.text.count(WARNING) == times


def test_the_lag_is_the_slowest_shards(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.now = LONG_BEHIND_S
    world.watermark.learn(int(world.now * 1000))
    world.watermark.report(ReadingReport(frozenset({"s0"}), {}, {"s0": 5.0}, {}))
    assert world.lag.seconds(world.state) == pytest.approx(5.0, abs=1.0)
    assert WARNING not in caplog.text, "five seconds are not long"
    assert world.lag.long_held_by(world.state) is None


def test_a_shard_that_is_read_far_behind_or_by_nobody_holds_units_back_for_long() -> None:
    world = World()
    assert world.lag.long_held_by(world.state) == Held(None, None)
    world.watermark.learn(0)
    world.watermark.report(ReadingReport(frozenset({"s0"}), {}, {"s0": 0.0}, {}))
    assert world.lag.long_held_by(world.state) is None
    world.now = 2 * LONG_BEHIND_S
    held = world.lag.long_held_by(world.state)
    assert held is not None
    assert held.shard == "s0"
    assert world.lag.long_held_by(FoldedLog()) is None
