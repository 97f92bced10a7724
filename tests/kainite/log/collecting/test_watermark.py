"""Units without ends: complete when every shard is read past them, late when they come after that."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.collecting.collect import begin, collect, leased
from kainite.log.collecting.overdue import expire, release
from kainite.log.collecting.unit_entries import RELEASED
from kainite.log.collecting.watermark import Held, Watermark
from kainite.log.format.deltas import deltas_of
from kainite.log.format.entry import (
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    Outcome,
    RefitMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.loading import load_state
from kainite.log.state.unit_state import UnitState
from kainite.owner.collected_stream import stream_entries
from kainite.settings import LogSettings, UowEnd, UowOrder, UowSettings
from kainite.store.memory import MemoryStore
from kainite.uow.conflicts import conflict
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.delta import UnitEnd
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.touches import Touched
from support.log_builders import fragment
from support.next_append import append_next
from support.owned_log import owned_log
from support.waiting import until

RULES = UowSettings(end=UowEnd.WATERMARK, grace=5.0)
BY_TIME = replace(RULES, order=UowOrder.TIME)
GRACE = 5_000
NOON = 1_700_000_000_000
"""Noon by Kinesis' clock, milliseconds."""

BOTH = frozenset({"s0", "s1"})


class Shards:
    """Two shards, and a clock that shows anything."""

    def __init__(self) -> None:
        self.now = 77.0
        self.awaited: set[str] = set()
        self.watermark = Watermark(lambda: self.now, lambda: self.awaited)

    def report(
        self, *, tips: dict[str, float] | None = None, arrived: dict[str, int] | None = None,
        shards: Iterable[str] = BOTH,
    ) -> float:  # fmt: skip
        self.watermark.report(ReadingReport(frozenset(shards), {}, tips or {}, arrived or {}))
        return self.watermark.until_ms()


class TestTheWatermark:
    def test_is_unknown_until_every_shard_has_told(self) -> None:
        shards = Shards()
        assert shards.watermark.until_ms() == -math.inf
        assert shards.report(arrived={"s0": NOON}) == -math.inf
        assert shards.watermark.held_by() == Held("s1", None)
        assert shards.report(arrived={"s1": NOON + 7}) == NOON - 1

    def test_is_unknown_while_no_shard_is_known(self) -> None:
        assert Shards().report(arrived={"s0": NOON}, shards=()) == -math.inf
        assert Shards().watermark.held_by() == Held(None, None)

    def test_is_that_of_the_shard_that_is_read_least_far(self) -> None:
        shards = Shards()
        shards.report(arrived={"s0": NOON, "s1": NOON + 60_000})
        assert shards.watermark.until_ms() == NOON - 1
        held = shards.watermark.held_by()
        assert held.shard == "s0"
        assert held.seconds == pytest.approx(60, abs=0.1)

    def test_an_empty_shard_is_read_up_to_the_time_that_records_of_others_prove(self) -> None:
        shards = Shards()
        shards.report(arrived={"s0": NOON})
        shards.now += 3
        assert shards.report(tips={"s0": 0.0, "s1": 1.0}) == pytest.approx(NOON + 2_000, abs=10)

    def test_a_tip_that_was_told_before_any_record_came_counts_afterwards(self) -> None:
        shards = Shards()
        assert shards.report(tips={"s0": 0.0, "s1": 0.0}) == -math.inf
        shards.now += 1
        shards.watermark.learn(NOON)
        assert shards.watermark.until_ms() == pytest.approx(NOON - 1_000, abs=10)

    def test_an_old_record_proves_less_than_a_young_one(self) -> None:
        shards = Shards()
        shards.report(arrived={"s0": NOON - 3_600_000})
        shards.report(tips={"s1": 0.0}, arrived={"s0": NOON})
        shards.report(arrived={"s0": NOON - 1_800_000})
        assert shards.watermark.until_ms() == NOON - 1, "and a shard never goes back"

    def test_a_clock_that_runs_ahead_of_kinesis_takes_it_nowhere(self) -> None:
        shards = Shards()
        shards.report(arrived={"s0": NOON, "s1": NOON})
        for seconds in range(1, 10_000, 100):
            shards.now = 77.0 + seconds * 1.0005  # a clock as bad as none is
            assert shards.report(tips={"s0": 0.0, "s1": 0.0}) <= NOON + seconds * 1000

    def test_time_that_passes_alone_takes_it_nowhere(self) -> None:
        shards = Shards()
        before = shards.report(tips={"s0": 0.0, "s1": 0.0}, arrived={"s0": NOON})
        shards.now += 3_600
        assert shards.watermark.until_ms() <= before

    def test_a_young_record_proves_little_of_an_old_tip(self) -> None:
        shards = Shards()
        shards.report(tips={"s0": 0.0}, arrived={"s1": NOON})
        shards.now += 86_400
        later = shards.report(arrived={"s1": NOON + 86_400_000 + 9_000})
        assert later <= NOON, "Kinesis' clock has gained on this one since s0 was read"

    def test_a_parent_holds_it_until_its_children_are_read(self) -> None:
        shards = Shards()
        shards.report(tips={"s0": 0.0}, arrived={"s1": NOON})
        shards.now += 60
        held = shards.report(tips={"s1": 0.0}, shards=BOTH)
        assert held <= NOON + 1, "s0 was closed"
        assert shards.report(tips={"s1": 0.0}, shards={"s1", "s2", "s3"}) == -math.inf
        assert shards.watermark.held_by().shard in {"s2", "s3"}
        assert shards.report(tips={"s1": 0.0, "s2": 0.0, "s3": 0.0}, shards={"s1", "s2", "s3"}) > NOON + 59_000

    def test_a_stream_that_is_added_holds_it_although_a_daemon_that_does_not_know_it_tells_last(self) -> None:
        shards, old, new = Shards(), {"1:a:1:s0"}, {"1:a:1:s0", "1:b:1:s0"}
        before = shards.report(tips={"1:a:1:s0": 0.0}, arrived={"1:a:1:s0": NOON}, shards=old)
        shards.awaited.add("1:b:1")
        shards.now += 20
        assert shards.report(tips={"1:a:1:s0": 0.0}, shards=old) <= before
        assert shards.report(shards=new) == -math.inf
        assert shards.report(tips={"1:a:1:s0": 0.0}, shards=old) == -math.inf
        assert shards.watermark.held_by() == Held("1:b:1:s0", None)
        assert shards.report(tips={"1:b:1:s0": 0.0}, shards=new) > NOON + 19_000

    def test_a_stream_that_is_added_holds_it_before_the_next_report(self) -> None:
        shards = Shards()
        assert shards.report(arrived={"1:a:1:s0": NOON}, shards={"1:a:1:s0"}) == NOON - 1
        shards.awaited.add("1:b:1")
        assert shards.watermark.until_ms() == shards.watermark.read_until_ms() == -math.inf
        assert shards.watermark.held_by() == Held("1:b:1:?", None)


class Log:
    """Entries as they were decided, with the state that decided them."""

    def __init__(self, rules: UowSettings = RULES) -> None:
        self.rules, self.state, self.entries = rules, FoldedLog(), list[Entry]()
        self.sequences = itertools.count(1)

    def bring(self, *fragments: Fragment, shard: str = "s0") -> list[Entry]:
        decided = collect(self.state, self.rules, shard, Position(next(self.sequences)), fragments, 0)
        self.entries += decided
        return decided

    def begin(self, at_ms: int) -> list[Entry]:
        return begin(self.state, at_ms, 0)

    def release(self, until_ms: float) -> list[str]:
        decided = release(self.state, self.rules, 0, until_ms)
        self.entries += decided
        return [entry.meta.uow for entry in decided if isinstance(entry.meta, UnitMeta)]

    def settle(self, uow: str, status: UnitStatus = UnitStatus.COMMITTED) -> None:
        journal = Journal(self.state, 0)
        journal.write(EntryKind.STATUS, StatusMeta((Outcome(self.unit(uow).tid, status),)))
        self.entries += journal.entries

    def unit(self, uow: str) -> UnitState:
        """Returns an unresolved unit."""
        found = self.state.find(uow)
        assert found is not None, f"no unit {uow}"
        return found

    def faults(self) -> dict[str, Fault | None]:
        return {unit.uow: unit.fault for unit in self.state.units.values()}


def part(uow: str, *keys: int, arrived: int = NOON, time: int | None = NOON) -> Fragment:
    """Returns deltas of a unit that was committed, and arrived, at these times by clocks that agree, milliseconds."""
    return replace(fragment(uow, keys), arrived_ms=arrived, time=None if time is None else time * 1_000_000)


class TestAUnit:
    def test_ends_when_all_shards_are_read_past_its_commit_and_its_last_record_by_the_grace(self) -> None:
        log = Log()
        log.bring(part("T", 1))
        log.bring(part("T", 2, arrived=NOON + 700), shard="s1")
        assert log.release(-math.inf) == []
        assert log.release(NOON + 700 + GRACE - 1) == []
        assert log.release(NOON + 700 + GRACE) == ["T"]
        unit = log.unit("T")
        assert (unit.count, unit.status, sorted(unit.written)) == (2, UnitStatus.IN_PROGRESS, [1, 2])
        assert unit.shards == ("s0", "s1")
        assert log.release(math.inf) == []

    def test_whose_sources_clock_is_behind_ends_by_its_records(self) -> None:
        log = Log()
        log.bring(part("T", 1, time=NOON - 3_600_000))
        assert log.release(NOON + GRACE - 1) == []
        assert log.release(NOON + GRACE) == ["T"]

    def test_whose_sources_clock_is_ahead_is_held_back(self) -> None:
        log = Log()
        log.bring(part("T", 1, time=NOON + 60_000))
        assert log.release(NOON + 59_000 + GRACE) == []
        assert log.release(NOON + 60_000 + GRACE) == ["T"]

    def test_that_its_clock_holds_back_for_too_long_fails_and_a_retry_can_apply_it(self) -> None:
        log = Log(BY_TIME)
        log.bring(part("T", 1, time=NOON + 3_600_000_000))
        assert [entry.kind for entry in expire(log.state, log.rules, 0, {"T"})] == [EntryKind.UNIT]
        unit = log.unit("T")
        assert (unit.fault, unit.status, unit.obstacle) == (Fault.LATE, UnitStatus.FAILED, None)
        assert unit.cause is not None
        assert "the stream's clock did not pass its commit time" in unit.cause
        log.bring(part("U", 2))
        assert log.release(NOON + GRACE) == ["U"]
        assert log.faults()["U"] is None, "the time ahead of all is nobody's past"

    def test_without_any_commit_time_fails(self) -> None:
        log = Log()
        log.bring(part("T", 1, time=None))
        assert log.release(NOON + GRACE) == ["T"]
        assert log.unit("T").malformed
        assert "'time' is missing" in (log.unit("T").cause or "")

    def test_copies_do_not_hold_it_back(self) -> None:
        log = Log()
        log.bring(part("T", 1))
        log.bring(part("T", 1, arrived=NOON + 4_000), shard="s1")
        assert log.release(NOON + GRACE) == ["T"]
        assert log.unit("T").count == 1

    def test_with_a_line_that_is_no_delta_fails_when_it_ends(self) -> None:
        log = Log()
        log.bring(part("T", 1), replace(part("T"), rejects=(Reject("odd", "{}"),)))
        assert log.release(NOON + GRACE) == ["T"]
        assert (log.unit("T").malformed, log.unit("T").cause) == (True, "odd")

    def test_with_an_end_of_its_own_ends_by_it(self) -> None:
        log = Log()
        log.bring(replace(part("T", 1), ends=(UnitEnd(1),)))
        assert log.unit("T").status is UnitStatus.IN_PROGRESS

    @pytest.mark.parametrize("ends_first", [False, True])
    def test_with_an_end_that_is_sent_again_is_recognised(self, ends_first: bool) -> None:
        log = Log()
        whole = replace(part("T", 1, 2), ends=(UnitEnd(2),))
        parts = (part("T", 1), replace(part("T", 2), ends=(UnitEnd(2),)))
        log.bring(*(parts[::-1] if ends_first else (whole,)))
        log.settle("T")
        log.state = snapshot.load(snapshot.dump(log.state))
        for again in (whole, *parts, part("T", 2, 1)):
            assert [entry.kind for entry in log.bring(again)] == [EntryKind.POSITION]
        log.bring(part("T", 3))
        assert log.faults() == {"T+late": Fault.LATE}, "its end announced two deltas"

    def test_with_an_end_has_no_place_in_the_order_of_times(self) -> None:
        log = Log(BY_TIME)
        log.bring(replace(part("T", 1), ends=(UnitEnd(1),)))
        assert log.unit("T").malformed
        assert log.state.latest_time is None

    def test_of_another_rule_is_not_touched(self) -> None:
        log = Log(UowSettings())
        entries = log.bring(part("T", 1))
        assert [entry.meta.watermark for entry in entries if isinstance(entry.meta, FragmentMeta)] == [False]
        log.rules = RULES
        assert log.release(math.inf) == []

    def test_goes_with_others_in_order_of_commit_some_at_a_time(self) -> None:
        log = Log()
        log.bring(*(part(f"T{number:04}", number, time=NOON - number) for number in range(RELEASED + 2)))
        first = log.release(math.inf)
        assert first == sorted(first, reverse=True)
        assert len(first) == RELEASED
        assert log.release(math.inf) == ["T0001", "T0000"]

    def test_goes_on_after_a_snapshot(self) -> None:
        log = Log()
        log.bring(part("T", 1))
        log.state = snapshot.load(snapshot.dump(log.state))
        assert log.release(NOON + GRACE - 1) == []
        assert log.release(NOON + GRACE) == ["T"]


class TestTheOrderOfTimes:
    def test_lets_a_unit_wait_for_an_earlier_one(self) -> None:
        log = Log(BY_TIME)
        log.bring(part("late", 1, time=NOON + 1))
        log.bring(part("early", 2, arrived=NOON + 4_000))
        assert log.release(NOON + 1 + GRACE) == []
        assert log.release(NOON + 4_000 + GRACE) == ["early", "late"]

    def test_breaks_ties_by_name(self) -> None:
        log = Log(BY_TIME)
        log.bring(part("b", 1), part("c", 2), part("a", 3))
        assert log.release(NOON + GRACE) == ["a", "b", "c"]

    def test_does_not_wait_for_a_later_one_or_one_without_time(self) -> None:
        log = Log(BY_TIME)
        log.bring(part("a", 1), part("b", 2, time=NOON + 9_000), part("c", 3, time=None, arrived=NOON + 60_000))
        assert log.release(NOON + GRACE) == ["a"]

    def test_makes_a_unit_late_that_comes_behind_a_later_one(self) -> None:
        log = Log(BY_TIME)
        log.bring(part("b", 1))
        assert log.release(NOON + GRACE) == ["b"]
        log.settle("b")
        log.state = snapshot.load(snapshot.dump(log.state))
        log.bring(part("a", 1, arrived=NOON + 60_000))
        log.bring(part("c", 1, arrived=NOON + 60_000))
        assert log.release(NOON + 60_000 + GRACE) == ["a", "c"]
        assert log.faults() == {"a": Fault.LATE, "c": None}
        assert "before that of unit b" in (log.unit("a").cause or "")
        assert conflict(log.unit("c"), log.unit("a"))

    def test_is_the_order_of_all_units_that_are_on_time(self) -> None:
        log = Log()
        log.bring(part("a", 1), part("b", 2))
        log.release(math.inf)
        log.rules = BY_TIME
        log.bring(part("aa", 3))
        log.release(math.inf)
        assert log.faults()["aa"] is Fault.LATE


class TestAShardThatIsNotReadFromItsBeginning:
    """A unit whose records may stand before the place where reading began is not known to be whole."""

    def test_fails_units_that_were_under_way_then(self) -> None:
        log = Log()
        log.begin(NOON)
        log.bring(part("T", 1), part("U", 2, time=NOON + GRACE, arrived=NOON + GRACE))
        log.bring(part("V", 2, 3, time=NOON + GRACE + 1, arrived=NOON + GRACE))
        log.state = snapshot.load(snapshot.dump(log.state))
        assert log.release(math.inf) == ["T", "U", "V"]
        assert log.faults() == {"T": Fault.LATE, "U": Fault.LATE, "V": None}
        torn = log.unit("T")
        assert "when reading began" in (torn.cause or "")
        assert (torn.status, torn.obstacle) == (UnitStatus.FAILED, None), "a person decides"
        assert conflict(log.unit("V"), log.unit("U")), "it holds back what conflicts with it"

    def test_is_read_from_the_first_time_that_was_proposed(self) -> None:
        log = Log()
        assert [entry.kind for entry in log.begin(NOON)] == [EntryKind.CONTROL]
        assert log.begin(NOON - 1) == log.begin(NOON + 7) == []
        assert snapshot.load(snapshot.dump(log.state)).started_ms == NOON

    def test_is_each_streams_own_and_each_is_awaited_until_its_leases_are_there(self) -> None:
        log, streams = Log(), ("1:a:1", "1:b:1")
        assert begin(log.state, NOON, 0, streams[0])
        assert begin(log.state, 0, 0, streams[1]), "it is read from TRIM_HORIZON"
        assert not begin(log.state, NOON + 7, 0, streams[0])
        log.state = snapshot.load(snapshot.dump(log.state))
        assert (log.state.started, log.state.awaited) == ({streams[0]: NOON}, set(streams))
        assert leased(log.state, streams, 0)
        assert not leased(log.state, streams, 0)
        assert begin(log.state, NOON + 7, 0, streams[0]), "its leases are gone: it is added again"
        log.state = snapshot.load(snapshot.dump(log.state))
        assert (log.state.started, log.state.awaited) == ({streams[0]: NOON}, {streams[0]})

    async def test_is_awaited_by_each_later_owner_whatever_the_daemons_name(self) -> None:
        store, settings = MemoryStore(), LogSettings(table="t", owner="a", enabled=True, put_interval=0.0, poll=60.0)
        known = ReadingReport(frozenset({"1:a:1:s0"}), {}, {"1:a:1:s0": 0.0}, {"1:a:1:s0": NOON + 10 * GRACE})
        async with owned_log(store, settings, RULES) as owner:
            await owner.begin(0, "1:b:1")
        async with owned_log(store, replace(settings, owner="b"), RULES) as owner:
            await append_next(owner, "1:a:1:s0", Position(1), Position(1), [part("T", 1)])
            owner.report(known)
            assert owner.held_by() == Held("1:b:1:?", None)

    async def test_is_awaited_when_it_is_added_again_although_reports_named_it_before_it_was_forgotten(self) -> None:
        store, settings = MemoryStore(), LogSettings(table="t", owner="a", enabled=True, put_interval=0.0, poll=60.0)
        stream = "1:b:1"
        async with owned_log(store, settings, RULES) as owner:
            await owner.begin(NOON, stream)
            owner.report(ReadingReport(frozenset({"1:a:1:s0", "1:b:1:s0"}), {}, {}, {}))
            await owner.write(lambda state: leased(state, {stream}, 0))  # as kainite leases forget does
            assert await owner.begin(NOON + 7, stream) == NOON
            assert owner.state.awaited == {stream}

    async def test_is_answered_for_when_the_time_is_durable(self) -> None:
        store, settings = MemoryStore(), LogSettings(table="t", owner="a", enabled=True, put_interval=0.0, poll=60.0)
        async with owned_log(store, settings, RULES) as owner:
            assert await asyncio.gather(*(owner.begin(NOON + n) for n in range(3))) == [NOON] * 3
            assert load_state(store, settings.partition).started_ms == NOON
        async with owned_log(store, replace(settings, owner="b"), RULES) as owner:
            assert await owner.begin(NOON + 60_000) == NOON
            assert await owner.position("s0") is None
        assert load_state(store, settings.partition).next_id == 1

    def test_is_read_anew_from_a_stream_that_the_log_adopts(self) -> None:
        log = Log()
        log.begin(NOON)
        for entries in (stream_entries(log.state, one, "l", adopt=True) for one in ("old", "new")):
            assert entries
        assert log.state.started_ms is None


class TestWhatComesAfterwards:
    def released(self, rules: UowSettings = RULES) -> Log:
        log = Log(rules)
        log.bring(part("T", 1, 2))
        assert log.release(NOON + GRACE) == ["T"]
        return log

    @pytest.mark.parametrize("resolved", [False, True])
    @pytest.mark.parametrize("restarted", [False, True])
    def test_is_dropped_where_the_unit_has_it(self, resolved: bool, restarted: bool) -> None:
        log = self.released()
        if resolved:
            log.settle("T")
        if restarted:
            log.state = snapshot.load(snapshot.dump(log.state))
        assert [entry.kind for entry in log.bring(part("T", 2, 1))] == [EntryKind.POSITION]

    def test_is_a_late_unit_where_the_unit_does_not_have_it(self) -> None:
        log = self.released()
        log.bring(part("T", 2, 3, arrived=NOON + 9_000))
        late = log.unit("T+late")
        assert (late.count, late.fault, late.status, late.obstacle) == (1, Fault.LATE, UnitStatus.FAILED, None)
        assert "9000 ms after" in (late.cause or "")
        log.bring(part("U", 3, arrived=NOON + 9_000))
        log.release(math.inf)
        assert conflict(log.unit("U"), late), "it holds back what conflicts with it"

    def test_more_of_it_belongs_to_the_same_late_unit_until_that_is_resolved(self) -> None:
        log = self.released()
        log.bring(part("T", 3))
        log.bring(part("T", 4, 3), shard="s1")
        assert log.unit("T+late").count == 2
        assert set(log.unit("T+late").written) == {3, 4}
        assert not log.bring(part("T", 3, 4))[:-1], "copies of late deltas"
        log.settle("T+late", UnitStatus.DISCARDED)
        assert not log.bring(part("T", 3, 4))[:-1], "what a person has discarded does not come again"
        log.bring(part("T", 5))
        assert log.unit("T+late2").count == 1

    def test_more_of_it_is_another_late_unit_while_the_first_is_applied(self) -> None:
        log = self.released()
        log.bring(part("T", 3))
        late = log.unit("T+late")
        journal = Journal(log.state, 0)
        journal.write(EntryKind.REFIT, RefitMeta(late.tid, late.uow, late.count), Touched(frozenset({3})))
        log.settle("T+late", UnitStatus.IN_PROGRESS)
        log.bring(part("T", 4))
        assert log.faults() == {"T": None, "T+late": None, "T+late2": Fault.LATE}
        assert not log.bring(part("T", 3, 4))[:-1], "copies of late deltas"

    def test_with_a_line_that_is_no_delta_can_never_be_applied(self) -> None:
        log = self.released()
        log.bring(part("T", 3))
        log.bring(replace(part("T"), rejects=(Reject("odd", "{}"),)))
        assert log.unit("T+late").obstacle == "odd"

    def test_is_late_where_the_units_deltas_are_not_remembered_any_more(self) -> None:
        log = self.released()
        log.settle("T")
        log.state.ended.disregard()
        log.bring(part("T", 1))
        assert log.unit("T+late").fault is Fault.LATE
        assert "sent again" in (log.unit("T+late").cause or "")

    def test_after_a_unit_that_was_late_itself_belongs_to_it(self) -> None:
        log = self.released(BY_TIME)
        log.bring(part("S", 8))
        log.release(math.inf)
        assert log.faults()["S"] is Fault.LATE
        log.bring(part("S", 9))
        assert log.unit("S").count == 2
        assert "S+late" not in log.faults()

    def test_no_source_may_use_the_name_of_a_late_unit(self) -> None:
        log = Log()
        log.bring(part("T+late7", 1))
        assert log.release(NOON + GRACE) == ["T+late7"]
        assert log.unit("T+late7").malformed


@given(st.data())
def test_no_unit_is_torn_and_what_is_late_fails(data: st.DataObject) -> None:
    """Reads the records of five units from three shards at different paces; the watermark is that of the shards."""
    shards = ["s0", "s1", "s2"]
    records: list[tuple[str, int, str, int]] = []  # shard, arrival, unit, row
    for number in range(5):
        commit = data.draw(st.integers(0, 10_000))
        delays = data.draw(st.lists(st.integers(0, 12_000), min_size=1, max_size=4))
        for row, delay in enumerate(delays):
            records.append((data.draw(st.sampled_from(shards)), commit + delay, f"T{number}", 10 * number + row))
    commits = {uow: min(at for _, at, name, _ in records if name == uow) for _, _, uow, _ in records}
    log = Log(data.draw(st.sampled_from([RULES, BY_TIME])))
    left = {shard: sorted((at, uow, row) for where, at, uow, row in records if where == shard) for shard in shards}
    reached = dict.fromkeys(shards, 0)
    while any(left.values()):
        shard = data.draw(st.sampled_from([shard for shard in shards if left[shard]]))
        at, uow, row = left[shard].pop(0)
        log.bring(part(uow, row, arrived=NOON + at, time=NOON + commits[uow]), shard=shard)
        reached[shard] = at if left[shard] else 100_000
        log.release(NOON + min(reached.values()) - 1)
    log.release(math.inf)
    on_time = {unit.uow: unit.count for unit in log.state.units.values() if unit.fault is None}
    for uow, commit in commits.items():
        rows = sorted(at for _, at, name, _ in records if name == uow)
        gaps = [later - earlier for earlier, later in itertools.pairwise([commit, *rows])]
        if uow in on_time and max(gaps) <= GRACE:
            assert on_time[uow] == len(rows), "torn"
    total = sum(unit.count for unit in log.state.units.values())
    assert total == len(records), "lost, or applied twice"


class TestAnOwner:
    """A whole owner: releases on its timer, by what its readers report, and applies what is late when it is asked."""

    SETTINGS = LogSettings(table="t", owner="a", enabled=True, put_interval=0.0, poll=0.01)

    async def test_releases_a_unit_and_retries_what_came_late_of_it(self) -> None:
        store, rules = MemoryStore(), replace(RULES, grace=0.0)
        async with owned_log(store, self.SETTINGS, rules) as owner:
            owner.judge_by(CurrentCatalogue(lambda: None, None, interval=0.0))
            await append_next(owner, "s0", Position(1), Position(1), (part("T", 1),))
            owner.report(ReadingReport(frozenset({"s0", "s1"}), {}, {"s0": 0.0}, {"s0": NOON}))
            await append_next(owner, "s1", Position(1), Position(1), (part("T", 2),))
            assert list(owner.state.open) == ["T"], "nobody has told of s1"
            owner.report(ReadingReport(frozenset({"s0", "s1"}), {}, {"s0": 0.0, "s1": 0.0}, {"s0": NOON}))
            await until(lambda: owner.state.find("T") is not None)
            await append_next(owner, "s1", Position(2), Position(2), (part("T", 2, 3),))
            request = store.put_request("0", {"action": "retry", "uow": "T+late", "by": "a test"})
            await until(lambda: store.take_answer("0", request) is not None)
            late = owner.state.find("T+late")
            assert late is not None
            assert (late.status, late.fault, late.count) == (UnitStatus.IN_PROGRESS, None, 1)
            (entry,) = [one for batch in store.read_batches("0", late.entries[0], late.entries[0], strong=True)
                        for tid, one in batch.entries_from(late.entries[0]) if tid == late.entries[0]]  # fmt: skip
            assert [delta.key for delta in deltas_of(entry)] == [{"id": 3}]

    async def test_releases_nothing_by_reports_that_lack_a_stream_that_has_begun(self) -> None:
        """Holds a unit that comes through both streams, while a daemon has not read the changed settings."""
        store, rules, first, added = MemoryStore(), replace(RULES, grace=0.0), "1:a:1:s0", "1:b:1:s0"
        old = ReadingReport(frozenset({first}), {}, {first: 0.0}, {first: NOON})
        async with owned_log(store, self.SETTINGS, rules) as owner:
            owner.judge_by(CurrentCatalogue(lambda: None, None, interval=0.0))
            owner.report(old)
            await owner.begin(1, "1:b:1")
            await append_next(owner, first, Position(1), Position(1), (part("T", 1),))
            looks = list[ReadingReport]()

            def tell() -> None:
                looks.append(old)
                owner.report(old)

            with owner.asking(tell):
                owner.report(old)
                await until(lambda: len(looks) >= 3 or not owner.state.open)
            assert list(owner.state.open) == ["T"]
            await append_next(owner, added, Position(1), Position(1), (part("T", 2),))
            owner.report(ReadingReport(frozenset({first, added}), {}, {first: 0.0, added: 0.0}, {first: NOON}))
            await until(lambda: owner.state.find("T") is not None)
            unit = owner.state.find("T")
            assert unit is not None
            assert unit.count == 2

    async def test_refuses_a_retry_of_a_late_unit_of_which_more_came_while_it_was_judged(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, rules = MemoryStore(), replace(RULES, grace=0.0)
        async with owned_log(store, self.SETTINGS, rules) as owner:
            owner.judge_by(CurrentCatalogue(lambda: None, None, interval=0.0))
            await append_next(owner, "s0", Position(1), Position(1), (part("T", 1),))
            owner.report(ReadingReport(frozenset({"s0"}), {}, {"s0": 0.0}, {"s0": NOON}))
            await until(lambda: owner.state.find("T") is not None)
            await append_next(owner, "s0", Position(2), Position(2), (part("T", 2),))
            assert owner.refitting is not None
            judged = owner.refitting.judged

            async def meanwhile(unit: UnitState) -> object:
                found = await judged(unit)
                await append_next(owner, "s0", Position(3), Position(3), (part("T", 3),))
                return found

            monkeypatch.setattr(owner.refitting, "judged", meanwhile)
            request = store.put_request("0", {"action": "retry", "uow": "T+late", "by": "a test"})
            await until(lambda: not store.read_requests("0"))
            assert "more of unit T+late came" in str(store.take_answer("0", request))
            late = owner.state.find("T+late")
            assert late is not None
            assert (late.status, late.count) == (UnitStatus.FAILED, 2)

    async def test_begins_anew_after_a_mount(self) -> None:
        store, rules = MemoryStore(), replace(RULES, grace=0.0)
        async with owned_log(store, self.SETTINGS, rules) as owner:
            await append_next(owner, "s0", Position(1), Position(1), (part("T", 1),))
        async with owned_log(store, self.SETTINGS, rules) as owner:
            owner.report(ReadingReport(frozenset({"s0"}), {}, {}, {}))
            await asyncio.to_thread(lambda: None)
            assert list(owner.state.open) == ["T"]
            owner.report(ReadingReport(frozenset({"s0"}), {}, {}, {"s0": NOON + 1}))
            await until(lambda: owner.state.find("T") is not None)

    async def test_releases_what_a_former_owner_collected_though_no_more_records_come(self) -> None:
        store, rules = MemoryStore(), replace(RULES, grace=0.0)
        async with owned_log(store, self.SETTINGS, rules) as owner:
            await append_next(owner, "s0", Position(1), Position(1), (part("T", 1),))
        async with owned_log(store, self.SETTINGS, rules) as owner:
            assert list(owner.state.open) == ["T"]
            owner.report(ReadingReport(frozenset({"s0"}), {}, {"s0": 0.0}))
            await until(lambda: owner.state.find("T") is not None)
