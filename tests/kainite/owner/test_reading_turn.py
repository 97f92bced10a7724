"""While too many units are being collected, the shards that are least far are read on, and nothing stops for good."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.collecting.collect import collect
from kainite.log.collecting.watermark import Watermark
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.owner.reading_turn import SLACK_MS, ReadingTurn
from kainite.owner.turn_lag import LONG_S, TurnLag
from kainite.settings import LogSettings, UowOrder, UowSettings
from support.log_builders import fragment

RULES = UowSettings(order=UowOrder.DENSE)
SETTINGS = LogSettings("t", "a", enabled=True, backlog_units=3)


class World:
    """A log in which some units wait for number 1, and a clock."""

    def __init__(self, units: int, bounds: LogSettings = SETTINGS) -> None:
        self.now = 1_000.0
        self.watermark = Watermark(lambda: self.now)
        self.turns = TurnLag(self.watermark, RULES, lambda: self.now)
        self.turn = ReadingTurn(self.watermark, self.turns, bounds, lambda: self.now)
        self.state = FoldedLog()
        waiting = [fragment(f"T-{number}", [number], count=1, number=number) for number in range(2, units + 2)]
        collect(self.state, RULES, "s0", Position(1), waiting, 0)

    @property
    def hold_ms(self) -> int | None:
        return self.turn.hold_ms(self.state)

    def report(self, arrived: dict[str, int], **told: frozenset[str]) -> None:
        shards = told.get("shards", frozenset(arrived))
        self.watermark.report(ReadingReport(shards, {}, arrived=arrived, waiting=told.get("waiting", frozenset())))


def test_all_shards_are_read_below_the_bound() -> None:
    world = World(2)
    world.report({"s0": 10, "s1": 9_999_999})
    assert world.hold_ms is None
    assert world.turn.backlog(world.state) is None


def test_at_the_bound_a_shard_that_is_far_ahead_waits_and_the_slowest_is_read_on() -> None:
    world = World(3)
    world.report({"s0": 5_000_000, "s1": 9_000_000})
    hold = world.hold_ms
    assert hold is not None
    assert 5_000_000 <= hold < 9_000_000
    world.report({"s0": 9_000_000, "s1": 9_000_000})
    hold = world.hold_ms
    assert hold is not None
    assert hold >= 9_000_000


def test_a_shard_of_which_nothing_is_known_holds_the_others_unless_it_waits_for_its_parent() -> None:
    world = World(3)
    world.report({"parent": 50_000}, shards=frozenset({"parent", "child"}))
    assert world.hold_ms == 0
    world.report({"parent": 50_000}, shards=frozenset({"parent", "child"}), waiting=frozenset({"child"}))
    assert world.hold_ms == 50_000 - 1 + SLACK_MS


def test_the_bytes_of_units_that_are_being_collected_have_a_bound_too_which_outlives_a_restart() -> None:
    world = World(1, replace(SETTINGS, backlog_bytes=1 << 20))
    collect(world.state, RULES, "s1", Position(1), [fragment("large", range(3_000), first_ordinal=0)], 0)
    assert world.hold_ms == 0
    world.state = snapshot.load(snapshot.dump(world.state))
    assert world.hold_ms == 0
    collect(world.state, RULES, "s1", Position(2), [fragment("large", [1], count=3_001, number=7)], 0)
    assert (world.hold_ms, world.state.open_deltas) == (0, 3_002)
    collect(world.state, RULES, "s1", Position(3), [fragment("T-1", [1], count=1, number=1)], 0)
    assert list(world.state.open) == ["large"]
    bad = fragment("large", [1, 2], count=3_002, number=8)
    collect(world.state, RULES, "s1", Position(4), [bad], 0)
    assert world.state.open_deltas == sum(unit.count for unit in world.state.open.values())


def test_what_waits_and_for_what_is_said(caplog: pytest.LogCaptureFixture) -> None:
    world = World(3)
    world.report({"s0": 1}, shards=frozenset({"s0", "stuck"}))
    world.turns.look(world.state)
    world.now += LONG_S
    told = str(world.turn.backlog(world.state))
    assert "3 units of about 0 MiB are being collected" in told
    assert "wait for number 1" in told
    assert "nobody tells how far shard stuck is read" in told
    for _ in range(2):
        world.turn.tell(world.state)
    assert caplog.messages == ["too many units are being collected"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 3_000_000), min_size=1, max_size=12), min_size=2, max_size=4),
    st.lists(st.integers(0, 3), max_size=60),
)
def test_whatever_stands_on_the_shards_all_of_it_is_read(arrivals: list[list[int]], turns: list[int]) -> None:
    """Reads each shard to its end, although the log is over its bound for ever and readers take turns at random."""
    world = World(3)
    left = {f"s{number}": sorted(times) for number, times in enumerate(arrivals)}
    done: dict[str, int] = {}

    def read(shard: str) -> bool:
        at = done.get(shard)
        if not left[shard] or (at is not None and world.hold_ms is not None and at > world.hold_ms):
            return False
        done[shard] = left[shard].pop(0)
        return True

    def report() -> None:
        at_tip = {shard: 0.0 for shard, more in left.items() if not more}
        world.watermark.report(ReadingReport(frozenset(left), {}, at_tip, dict(done)))

    for turn in turns:
        read(f"s{turn % len(left)}")
        report()
    for _ in range(sum(map(len, arrivals)) * 2):
        world.now += 3_000.0  # the tips of shards that are read to their ends are of now
        report()
        read_on = [shard for shard in left if read(shard)]
        assert read_on or not any(left.values())
    assert not any(left.values())
