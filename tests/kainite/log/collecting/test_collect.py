"""Collecting: whatever order deltas come in, and whatever comes twice or never."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.collecting.overdue import expire
from kainite.log.format.deltas import delta_items
from kainite.log.format.entry import (
    NAMES,
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    Outcome,
    PositionMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.unit_state import UnitState
from kainite.settings import Isolation, UowOrder, UowSettings
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.touches import Touched
from support.log_builders import delta, fragment

ARRIVAL = UowSettings()
DENSE = UowSettings(order=UowOrder.DENSE)
NOW = 1_000_000


class Log:
    """Entries as they were decided, with the state that decided them."""

    def __init__(self, rules: UowSettings = ARRIVAL) -> None:
        self.rules, self.state, self.entries = rules, FoldedLog(), list[Entry]()
        self.sequences = itertools.count(1)

    def bring(self, *fragments: Fragment, shard: str = "s0", now: int = NOW) -> list[Entry]:
        decided = collect(self.state, self.rules, shard, Position(next(self.sequences)), fragments, now)
        self.entries += decided
        return decided

    def expire(self, now: int) -> list[UnitMeta]:
        overdue = [uow for uow, unit in self.state.open.items() if unit.opened_ms <= now - self.rules.timeout * 1000]
        decided = expire(self.state, self.rules, now, overdue)
        self.entries += decided
        return [entry.meta for entry in decided if isinstance(entry.meta, UnitMeta)]

    def settle(self, *outcomes: Outcome) -> None:
        journal = Journal(self.state, NOW)
        journal.write(EntryKind.STATUS, StatusMeta(outcomes))
        self.entries += journal.entries

    def forget(self, key: str | None = None) -> None:
        """Moves all names of the tail to a segment, or forgets all names."""
        journal = Journal(self.state, NOW)
        journal.write(EntryKind.CONTROL, ControlMeta(NAMES, count=self.state.recent.tail_length, key=key))
        self.entries += journal.entries

    def unit(self, uow: str) -> UnitState:
        """Returns an unresolved unit."""
        found = self.state.find(uow)
        assert found is not None
        return found

    @property
    def units(self) -> list[UnitMeta]:
        return [entry.meta for entry in self.entries if isinstance(entry.meta, UnitMeta)]

    def only(self) -> UnitMeta:
        [unit] = self.units
        return unit

    def keys_of(self, unit: UnitMeta) -> list[int]:
        """Returns the keys that a unit's deltas write, in the log's order."""
        tid = next(tid for tid, entry in enumerate(self.entries) if entry.meta is unit)
        found = self.state.units.get(tid)
        places = (*(found or unit).fragments, tid)
        return [item["key"]["id"] for place in places for item in delta_items(self.entries[place])]


class TestComplete:
    def test_in_one_append_is_one_entry(self) -> None:
        log = Log()
        log.bring(fragment("T", [1, 2], count=2))
        assert [entry.kind for entry in log.entries] == [EntryKind.UNIT, EntryKind.POSITION]
        assert log.keys_of(log.only()) == [1, 2]
        assert log.entries[0].touched.written == {1, 2}
        assert log.only().cause is None

    def test_through_several_shards_names_its_fragments(self) -> None:
        log = Log()
        log.bring(fragment("T", [1]), shard="s0")
        log.bring(fragment("T", [2], count=3), shard="s1")
        assert log.units == []
        log.bring(fragment("T", [3]), shard="s2")
        assert log.only() == UnitMeta("T", 3, ("s0", "s1", "s2"), (0, 2))
        assert log.keys_of(log.only()) == [1, 2, 3]
        assert log.entries[4].touched.written == {1, 2, 3}

    def test_end_before_any_delta(self) -> None:
        log = Log()
        log.bring(fragment("T", count=2))
        log.bring(fragment("T", [1]))
        assert log.units == []
        log.bring(fragment("T", [2]))
        assert log.only().cause is None

    def test_without_deltas(self) -> None:
        log = Log()
        log.bring(fragment("T", count=0))
        assert log.only().count == 0

    def test_kind_is_kept(self) -> None:
        log = Log()
        log.bring(Fragment("T", (delta(1),), Touched(frozenset({1})), ends=(UnitEnd(1, None, UnitKind.CORRECTION),)))
        assert log.only().kind is UnitKind.CORRECTION

    def test_of_ten_thousand_deltas(self) -> None:
        log = Log()
        for start in range(0, 10_000, 500):
            log.bring(fragment("T", range(start, start + 500), first_ordinal=start), shard=f"s{start % 4}")
        log.bring(fragment("T", count=10_000))
        assert log.only().cause is None
        assert sorted(log.keys_of(log.only())) == list(range(10_000))


def typical_bytes(log: Log, first: int) -> int:
    """Returns how much memory one of 41 appends of ten deltas to an open unit takes while it is decided and folded.

    The median: now and then a set doubles its table.
    """
    taken = []
    for start in range(first, first + 410, 10):
        piece = fragment("T", range(start, start + 10), first_ordinal=start)
        tracemalloc.start()
        log.bring(piece)
        taken.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return sorted(taken)[len(taken) // 2]


def test_what_a_fragment_costs_does_not_depend_on_the_deltas_before_it() -> None:
    small, large = Log(), Log()
    for log, there in ((small, 100), (large, 50_000)):
        log.bring(fragment("T", range(there), first_ordinal=0))
    assert typical_bytes(large, 50_000) < 1.5 * typical_bytes(small, 100)


class TestDuplicates:
    def test_of_an_ordinal_are_dropped(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], first_ordinal=0))
        log.bring(fragment("T", [1], first_ordinal=0))
        log.bring(fragment("T", [2], first_ordinal=1, count=2))
        assert log.only().cause is None
        assert log.keys_of(log.only()) == [1, 2]

    def test_within_one_append(self) -> None:
        log = Log()
        log.bring(Fragment("T", (delta(1, 0), delta(1, 0), delta(2, 1)), ends=(UnitEnd(2), UnitEnd(2))))
        assert log.only().cause is None
        assert log.keys_of(log.only()) == [1, 2]

    def test_without_an_ordinal_do_not_complete_a_unit(self) -> None:
        log = Log()
        log.bring(fragment("T", [1]))
        log.bring(fragment("T", [1], count=2), shard="s1")
        assert log.units == []
        log.bring(fragment("T", [2]))
        assert log.only() == UnitMeta("T", 2, ("s0", "s1"), (0, 2))
        assert log.keys_of(log.only()) == [1, 2]

    def test_without_an_ordinal_within_one_append(self) -> None:
        log = Log()
        log.bring(fragment("T", [1, 1, 2], count=2))
        assert log.keys_of(log.only()) == [1, 2]

    def test_without_an_ordinal_are_recognised_after_a_snapshot(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=2))
        log.state = snapshot.load(snapshot.dump(log.state))
        log.bring(fragment("T", [1]))
        assert log.units == []
        log.bring(fragment("T", [2]))
        assert log.keys_of(log.only()) == [1, 2]

    @pytest.mark.parametrize("restart", [False, True])
    def test_two_equal_deltas_without_ordinals_leave_the_unit_incomplete_and_the_cause_says_so(
        self, restart: bool
    ) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=2), now=NOW)
        log.bring(fragment("T", [1]), now=NOW)
        if restart:
            log.state = snapshot.load(snapshot.dump(log.state))
        [failed] = log.expire(NOW + 600_000)
        assert failed.cause == (
            "1 of 2 deltas came within 600 s; 1 more without an ordinal came that equals one of them, and counts as "
            "sent again: equal deltas of one unit need ordinals"
        )

    def test_of_an_ordinal_leave_nothing_in_the_log(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], first_ordinal=0))
        assert [entry.kind for entry in log.bring(fragment("T", [1], first_ordinal=0))] == [EntryKind.POSITION]

    def test_are_counted(self, caplog: pytest.LogCaptureFixture) -> None:
        log = Log()
        log.bring(fragment("T", [1, 1, 2]))
        log.bring(fragment("T", [1, 2]))
        assert caplog.messages == ["deltas sent again, dropped"] * 2
        assert log.state.open["T"].repeated == 3

    def test_of_a_dispatched_unit_are_dropped(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=1))
        assert [entry.kind for entry in log.bring(fragment("T", [1], count=1))] == [EntryKind.POSITION]
        assert len(log.units) == 1

    def test_are_recognised_after_a_snapshot(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=1))
        log.state = snapshot.load(snapshot.dump(log.state))
        log.bring(fragment("T", [1], count=1))
        assert len(log.units) == 1


class TestFailures:
    def test_ends_that_disagree(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=2))
        log.bring(fragment("T", count=3))
        assert "two ends disagree: count 2" in str(log.only().cause)

    def test_more_deltas_than_announced(self) -> None:
        log = Log()
        log.bring(fragment("T", [1, 2]))
        log.bring(fragment("T", [3], count=2))
        assert log.only().cause == "3 deltas came, its end announced 2"

    def test_a_malformed_delta_fails_its_unit_at_its_end(self) -> None:
        log = Log()
        log.bring(Fragment("T", (delta(1),), Touched(frozenset({1})), rejects=(Reject("unknown table 'x'", "{line}"),)))
        log.bring(fragment("U", [9], count=1))
        assert [unit.uow for unit in log.units] == ["U"]
        log.bring(fragment("T", [2], count=3))
        failed = log.units[1]
        assert (failed.cause, failed.offending) == ("unknown table 'x'", "{line}")
        [unit] = [unit for unit in log.state.units.values() if unit.uow == "T"]
        assert (unit.status, unit.fault) == (UnitStatus.FAILED, Fault.MALFORMED)
        assert unit.written == {1, 2}, "it holds back what touches its rows"

    def test_an_end_that_never_comes(self) -> None:
        log = Log()
        log.bring(fragment("T", [1, 2]), now=NOW)
        assert log.expire(NOW + 599_999) == []
        [failed] = log.expire(NOW + 600_000)
        assert failed.cause == "no end came within 600 s; 2 deltas did"
        assert log.expire(NOW + 999_999) == []

    def test_a_count_that_never_comes(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=3), now=NOW)
        [failed] = log.expire(NOW + 600_000)
        assert failed.cause == "1 of 3 deltas came within 600 s"


class TestLateParts:
    """Parts that come late, of a unit that failed before it was whole."""

    def test_of_a_whole_failed_unit_are_copies_when_its_name_has_left_too(self) -> None:
        log = Log()
        log.bring(replace(fragment("T", count=1), rejects=(Reject("bad", "?"),)))
        log.bring(fragment("T", [1]))
        log.forget()
        assert [entry.kind for entry in log.bring(fragment("T", [1], count=1))] == [EntryKind.POSITION]
        assert log.unit("T").late is not None

    def test_complete_it_in_its_place(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=3), now=NOW)
        log.expire(NOW + 600_000)
        log.bring(fragment("U", [2], count=1))
        log.bring(fragment("T", [2]), shard="s1")
        failed = log.unit("T")
        assert (failed.cause, failed.count) == ("1 of 3 deltas came within 600 s", 2)
        assert failed.written == {1, 2}, "what came late is held back too"
        log.bring(fragment("T", [3]))
        failed = log.unit("T")
        assert failed.cause == (
            "1 of 3 deltas came within 600 s; all 3 deltas have come since; "
            "kainite uow retry applies the unit in its place"
        )
        assert (failed.status, failed.fault, failed.obstacle) == (UnitStatus.FAILED, Fault.INCOMPLETE, None)
        assert failed.tid < log.unit("U").tid
        assert log.keys_of(log.units[0]) == [1, 2, 3]
        assert failed.shards == ["s0", "s1"]

    def test_its_end(self) -> None:
        log = Log()
        log.bring(fragment("T", [1, 2]), now=NOW)
        log.expire(NOW + 600_000)
        assert log.unit("T").obstacle == "its end has not come; 2 deltas have"
        log.bring(fragment("T", count=2))
        assert log.unit("T").obstacle is None

    def test_copies_of_what_it_has_change_nothing(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=2, first_ordinal=0), now=NOW)
        log.expire(NOW + 600_000)
        assert [entry.kind for entry in log.bring(fragment("T", [1], first_ordinal=0))] == [EntryKind.POSITION]
        assert log.unit("T").obstacle == "1 of its 2 deltas have come"

    def test_after_it_is_whole_copies_are_dropped_and_more_fails_as_a_unit_of_its_own(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=2), now=NOW)
        log.expire(NOW + 600_000)
        log.bring(fragment("T", [2]))
        assert [entry.kind for entry in log.bring(fragment("T", [2, 1]))] == [EntryKind.POSITION]
        log.bring(fragment("T", [3]))
        assert (log.unit("T+late").count, log.unit("T").count) == (1, 2)

    def test_after_it_was_discarded_are_dropped(self) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=2), now=NOW)
        log.expire(NOW + 600_000)
        log.settle(Outcome(log.unit("T").tid, UnitStatus.DISCARDED))
        assert [entry.kind for entry in log.bring(fragment("T", [2]))] == [EntryKind.POSITION]
        assert (log.state.open, log.state.units) == ({}, {})

    @pytest.mark.parametrize(
        ("late", "lacks"),
        [
            (Fragment("T", (delta(2),), rejects=(Reject("bad", "?"),)), "bad"),
            (fragment("T", [2, 3]), "3 deltas came, its end announced 2"),
            (fragment("T", [2], count=5), "two ends disagree: count 2, number None, normal and count 5"),
        ],
    )
    def test_that_contradict_it_leave_it_failed(self, late: Fragment, lacks: str) -> None:
        log = Log()
        log.bring(fragment("T", [1], count=2), now=NOW)
        log.expire(NOW + 600_000)
        log.bring(late)
        assert str(log.unit("T").obstacle).startswith(lacks)
        assert lacks in str(log.unit("T").cause)
        assert "retry" not in str(log.unit("T").cause)

    def test_of_a_malformed_unit_are_held_back_too_and_never_applied(self) -> None:
        log = Log()
        log.bring(
            Fragment("T", (delta(1),), Touched(frozenset({1})), rejects=(Reject("bad", "?"),), ends=(UnitEnd(4),))
        )
        log.bring(fragment("T", [2]))
        assert log.unit("T").written == {1, 2}
        log.bring(fragment("T", [3, 4]))
        assert (log.unit("T").obstacle is None, log.unit("T").malformed) == (False, True)

    def test_hold_back_nothing_when_relaxed(self) -> None:
        log = Log(UowSettings(isolation=Isolation.RELAXED))
        log.bring(fragment("T", [1], count=3), now=NOW)
        log.expire(NOW + 600_000)
        log.bring(fragment("T", [2]))
        assert (log.unit("T").written, log.unit("T").count) == (set(), 2)

    def test_come_before_its_turn_and_it_is_sound(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("B", [2], count=2, number=2), now=NOW)
        log.bring(fragment("A", count=1, number=1), now=NOW + 300_000)
        log.expire(NOW + 600_000)
        log.bring(fragment("B", [3]))
        log.bring(fragment("A", [1]))
        assert [(unit.uow, unit.cause) for unit in log.units] == [("A", None), ("B", None)]

    def test_of_a_unit_that_waited_failed_for_its_turn(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("B", [2], count=2, number=2), now=NOW)
        log.expire(NOW + 600_000)
        log.bring(fragment("A", [1], count=1, number=1))
        assert log.unit("B").fault is Fault.INCOMPLETE
        log.bring(fragment("B", [3]))
        assert log.unit("B").obstacle is None

    def test_that_tell_its_number_let_the_others_go_on(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1]), now=NOW)
        log.bring(fragment("B", [2], count=1, number=2), now=NOW + 599_000)
        log.expire(NOW + 600_000)
        log.bring(fragment("A", count=1, number=1))
        assert [(unit.uow, unit.number) for unit in log.units] == [("A", None), ("number:1", 1), ("B", 2)]
        assert log.unit("A").obstacle is None

    @pytest.mark.parametrize("whole", [True, False])
    def test_of_a_number_that_was_given_up_wait_for_a_retry_with_all_their_deltas(self, whole: bool) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=1, number=1), fragment("D", [4], count=1, number=4), now=NOW)
        log.expire(NOW + 600_000)
        log.bring(fragment("B", [2, 22] if whole else [2], count=2, number=2))
        late = log.unit("B")
        assert (late.status, late.fault) == (UnitStatus.FAILED, Fault.LATE_NUMBER)
        assert (late.obstacle is None) == whole
        log.bring(fragment("B", [22]))
        assert log.unit("B").obstacle is None
        assert log.keys_of(log.units[-1]) == [2, 22]

    @pytest.mark.parametrize("last", [[22], []], ids=["a delta", "the end"])
    def test_that_are_copies_of_what_the_unit_entry_has_are_dropped(self, last: list[int]) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=1, number=1), fragment("D", [4], count=1, number=4), now=NOW)
        log.expire(NOW + 600_000)
        log.bring(fragment("B", [2]))
        log.bring(fragment("B", last, count=1 + len(last), number=2))
        log.bring(fragment("B", last, count=1 + len(last), number=2), fragment("B", [2]))
        assert log.unit("B").fault is Fault.LATE_NUMBER
        assert (log.unit("B").count, log.unit("B").obstacle) == (1 + len(last), None)

    @pytest.mark.parametrize("last", [[2], []], ids=["a delta", "the end"])
    def test_that_are_copies_of_a_misfits_last_part_are_dropped(self, last: list[int]) -> None:
        log = Log()
        log.bring(Fragment("T", (delta(1),), misfits=(Reject("no such column", "?"),)))
        log.bring(fragment("T", last, count=1 + len(last)))
        log.bring(fragment("T", last, count=1 + len(last)))
        assert log.unit("T").fault is Fault.MISFIT
        assert (log.unit("T").count, log.unit("T").obstacle) == (1 + len(last), None)
        restored = snapshot.load(snapshot.dump(log.state))
        assert restored.find("T") == log.unit("T")

    def test_the_last_of_several_numbers_that_were_given_up(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("D", [4], count=1, number=4), now=NOW)
        log.expire(NOW + 600_000)
        log.bring(fragment("C", [3], count=1, number=3))
        assert log.unit("C").fault is Fault.LATE_NUMBER
        assert log.unit("missing:1-3").fault is Fault.MISSING_NUMBER

    def test_a_number_below_the_first_is_no_late_one(self) -> None:
        log = Log(UowSettings(order=UowOrder.DENSE, first_number=5))
        log.bring(fragment("A", [1], count=1, number=4))
        assert log.unit("A").fault is Fault.MALFORMED


@given(st.data())
def test_whatever_comes_when_a_unit_is_lost_only_if_it_stays_incomplete(data: st.DataObject) -> None:
    """Brings a unit's parts, some of them twice, and expires it, in any order, with a crash anywhere."""
    rules = data.draw(st.sampled_from([ARRIVAL, DENSE]))
    deltas = [fragment("T", [key], first_ordinal=key if key % 2 else None) for key in range(3)]
    parts = [*deltas, fragment("T", count=3, number=1)]
    steps = data.draw(st.permutations([*range(4), *data.draw(st.lists(st.integers(0, 3), max_size=4)), "expire"]))
    log, now = Log(rules), NOW
    for step in steps:
        now += 1_000_000
        if step == "expire":
            log.expire(now)
        else:
            log.bring(parts[step], now=now)
        folded = FoldedLog()
        for tid, entry in enumerate(log.entries):
            folded.apply(tid, entry, NOW)
        assert snapshot.dump(snapshot.load(snapshot.dump(folded))) == snapshot.dump(folded)
        if data.draw(st.booleans(), "crash"):
            log.state = data.draw(st.sampled_from([folded, snapshot.load(snapshot.dump(folded))]))
    unit = log.unit("T")
    assert unit.obstacle is None
    assert unit.status is (UnitStatus.FAILED if unit.fault else UnitStatus.IN_PROGRESS)
    [meta] = [meta for meta in log.units if meta.uow == "T"]
    assert sorted(log.keys_of(meta)) == [0, 1, 2]
    assert unit.written == {0, 1, 2}
    assert log.state.open == {}


class TestDenseOrder:
    def test_releases_in_order_of_numbers(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("C", [3], count=1, number=3))
        log.bring(fragment("B", [2], count=1, number=2))
        assert log.units == []
        log.bring(fragment("A", [1], count=1, number=1))
        assert [(unit.uow, unit.number) for unit in log.units] == [("A", 1), ("B", 2), ("C", 3)]
        assert log.keys_of(log.units[1]) == [2]

    def test_survives_a_snapshot(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=1, number=1), fragment("C", [3], count=1, number=3))
        log.state = snapshot.load(snapshot.dump(log.state))
        log.bring(fragment("B", [2], count=1, number=2))
        assert [unit.uow for unit in log.units] == ["A", "B", "C"]

    def test_a_failed_unit_keeps_its_place(self) -> None:
        log = Log(DENSE)
        log.bring(Fragment("B", (delta(2),), rejects=(Reject("bad", "line"),), ends=(UnitEnd(2, 2),)))
        assert log.units == []
        log.bring(fragment("A", [1], count=1, number=1))
        assert [(unit.uow, unit.cause) for unit in log.units] == [("A", None), ("B", "bad")]

    def test_an_incomplete_unit_that_times_out_keeps_its_place(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("B", [2], count=2, number=2), now=NOW)
        log.bring(fragment("A", count=1, number=1), now=NOW + 300_000)
        assert log.expire(NOW + 600_000) == []
        log.bring(fragment("A", [1]))
        assert [(unit.uow, unit.cause) for unit in log.units] == [("A", None), ("B", "1 of 2 deltas came within 600 s")]

    def test_a_number_that_never_comes_is_stood_in_for(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=1, number=1), fragment("D", [4], count=1, number=4))
        assert log.expire(NOW + 599_999) == []
        gap = log.expire(NOW + 600_000)
        assert [(unit.uow, unit.number, unit.cause is None) for unit in gap] == [
            ("missing:2-3", 3, False),
            ("D", 4, True),
        ]
        late = log.bring(fragment("B", [2], count=1, number=2))
        assert "comes after it was given up" in str(late[0].meta)

    def test_units_that_wait_for_their_turn_go_when_the_order_is_no_longer_asked_for(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("D", [4], count=1, number=4), fragment("C", [3], count=1, number=3))
        log.rules = ARRIVAL
        assert [unit.uow for unit in log.expire(NOW)] == ["C", "D"]
        assert (log.state.open, log.state.ready) == ({}, {})

    def test_a_gap_of_a_thousand_numbers_costs_one_entry(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=1, number=1), fragment("Z", [2], count=1, number=1_002))
        assert [unit.uow for unit in log.expire(NOW + 600_000)] == ["missing:2-1001", "Z"]

    def test_a_gap_ends_where_an_incomplete_unit_stands(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("D", [4], count=1, number=4), now=NOW)
        log.bring(fragment("C", [3], count=2, number=3), now=NOW + 300_000)
        assert [unit.uow for unit in log.expire(NOW + 600_000)] == ["missing:1-2"]
        assert [unit.uow for unit in log.expire(NOW + 900_000)] == ["C", "D"]

    def test_without_a_number(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=1))
        assert "no number" in str(log.only().cause)

    def test_a_number_used_twice_fails_the_second(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=1, number=1), fragment("B", [2], count=1, number=1))
        assert [(unit.uow, unit.cause) for unit in log.units] == [("A", None), ("B", "number 1 is that of unit A too")]
        log.bring(fragment("C", [3], count=1, number=2))
        assert log.units[-1].cause is None

    def test_an_incomplete_unit_does_not_drive_out_the_one_that_waits_with_its_number(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=2, number=2), now=NOW)
        log.bring(fragment("B", [2], count=1, number=2), now=NOW + 300_000)
        log.expire(NOW + 600_000)
        log.bring(fragment("C", [3], count=1, number=1))
        assert [(unit.uow, unit.cause is None) for unit in log.units] == [("A", False), ("C", True), ("B", True)]

    @pytest.mark.parametrize("rest_comes", [True, False])
    def test_a_number_that_another_unit_took_while_this_one_was_incomplete(self, rest_comes: bool) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=2, number=1), fragment("B", [2], count=1, number=1))
        if rest_comes:
            log.bring(fragment("A", [3]))
        log.expire(NOW + 600_000)
        assert [(unit.uow, unit.number, unit.cause is None) for unit in log.units] == [
            ("B", 1, True),
            ("A", None, False),
        ]
        log.bring(fragment("C", [4], count=1, number=2))
        assert [unit.uow for unit in log.units] == ["B", "A", "C"]
        assert log.state.open == {}


class TestCopiesOfUnitsWhoseNamesHaveLeft:
    """A unit was dispatched, its name is not remembered any more, and it is sent again."""

    def log(self, rules: UowSettings = DENSE) -> Log:
        log = Log(rules)
        log.bring(fragment("A", [1, 2], count=2, number=1), fragment("B", [3], count=1, number=2))
        log.forget()
        return log

    def test_a_whole_one_is_dropped_by_its_number(self, caplog: pytest.LogCaptureFixture) -> None:
        log = self.log()
        log.bring(fragment("A", [1, 2], count=2, number=1), fragment("B", [3], count=1, number=2))
        assert [unit.uow for unit in log.units] == ["A", "B"]
        assert "units sent again, dropped" in caplog.text

    def test_one_in_parts_is_discarded_when_its_end_comes(self) -> None:
        for parts in (([1], 2, [2]), ([2], 2, []), ([], 2, [1, 2])):
            log = self.log()
            before, count, after = parts
            log.bring(fragment("A", before))
            log.bring(fragment("A", count=count, number=1))
            log.bring(fragment("A", after))
            assert log.state.open == {}
            assert [unit.uow for unit in log.state.units.values()] == ["A", "B"]
            assert log.units[-1].cause == "sent again: its number was dispatched before"

    def test_one_whose_end_comes_too_late_cannot_be_retried(self) -> None:
        log = self.log()
        log.bring(fragment("A", [1, 2]))
        log.expire(NOW + 600_000)
        log.bring(fragment("A", count=2, number=1))
        again = [unit for unit in log.state.units.values() if unit.uow == "A"][-1]
        assert again.status is UnitStatus.FAILED
        assert "number 1 is that of a unit whose name is not remembered any more" in str(again.obstacle)

    @pytest.mark.parametrize("parts", [1, 2])
    def test_without_an_order_of_numbers_it_fails_and_a_person_decides(self, parts: int) -> None:
        log = self.log(ARRIVAL)
        if parts == 2:
            log.bring(fragment("A", [1]))
        log.bring(fragment("A", [1, 2], count=2, number=1))
        again = [unit for unit in log.state.units.values() if unit.uow == "A"][-1]
        assert (again.status, again.fault, again.obstacle) == (UnitStatus.FAILED, Fault.LATE_NUMBER, None)
        assert "discard this unit if it is that one, sent again" in str(again.cause)

    def test_a_new_unit_is_none_whatever_its_number(self) -> None:
        log = self.log(ARRIVAL)
        log.bring(
            fragment("C", [5], count=1, number=3), fragment("D", [6], count=1), fragment("E", [7], count=1, number=0)
        )
        assert all(unit.cause is None for unit in log.units)

    def test_a_number_that_was_given_up_is_that_of_no_unit(self) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=1, number=1), fragment("D", [4], count=1, number=4))
        log.expire(NOW + 600_000)
        log.forget()
        for uow, number in (("B", 2), ("C", 3)):
            log.bring(fragment(uow, [number], count=1, number=number))
            assert log.unit(uow).fault is Fault.LATE_NUMBER
        log.bring(fragment("A", [1], count=1, number=1), fragment("D", [4], count=1, number=4))
        assert [unit.uow for unit in log.state.units.values()] == ["A", "missing:2-3", "D", "B", "C"]

    @pytest.mark.parametrize(("first", "last"), [([1], [2]), ([1, 2], []), ([1], [1, 2])])
    @pytest.mark.parametrize("fault", [Fault.LATE_NUMBER, Fault.MISFIT])
    def test_a_unit_that_fails_when_it_is_whole_collects_no_more(
        self, first: list[int], last: list[int], fault: Fault
    ) -> None:
        log = self.log(ARRIVAL)
        misfits = (Reject("no such column", "?"),) if fault is Fault.MISFIT else ()
        log.bring(replace(fragment("C", first), misfits=misfits))
        log.bring(fragment("C", last, count=2, number=1 if fault is Fault.LATE_NUMBER else 3))
        failed = log.unit("C")
        assert (failed.fault, failed.late, failed.obstacle) == (fault, None, None)

    @pytest.mark.parametrize("key", [None, "segment"])
    def test_another_unit_under_a_used_number_fails_while_the_names_are_known(self, key: str | None) -> None:
        log = Log(DENSE)
        log.bring(fragment("A", [1], count=1, number=1))
        if key:
            log.forget(key)
        log.bring(fragment("B", [2], count=1, number=1))
        assert "number 1 is that of" in str(log.unit("B").obstacle)


def brought(units: int, seed: int, *, duplicates: bool) -> tuple[list[tuple[str, Fragment]], dict[str, list[int]]]:
    """Returns deltas of several units, each alone, over 4 shards in a random order, some of them twice."""
    chance = random.Random(seed)
    expected = {f"T-{n}": list(range(n * 10, n * 10 + chance.randint(1, 4))) for n in range(1, units + 1)}
    pieces = [
        fragment(uow, [key], first_ordinal=place) for uow, keys in expected.items() for place, key in enumerate(keys)
    ]
    pieces += [fragment(uow, count=len(keys), number=int(uow[2:])) for uow, keys in expected.items()]
    pieces += chance.sample(pieces, len(pieces) // 2) if duplicates else []
    chance.shuffle(pieces)
    return [(f"s{chance.randrange(4)}", piece) for piece in pieces], expected


@given(st.integers(1, 6), st.integers(), st.booleans(), st.sampled_from([ARRIVAL, DENSE]), st.integers(0, 30))
def test_any_order_any_shards_any_duplicates_give_the_same_units(
    units: int, seed: int, duplicates: bool, rules: UowSettings, restart: int
) -> None:
    pieces, expected = brought(units, seed, duplicates=duplicates)
    log = Log(rules)
    for place, (shard, piece) in enumerate(pieces):
        if place == restart:
            log.state = snapshot.load(snapshot.dump(log.state))
        log.bring(piece, shard=shard)
    assert {unit.uow: sorted(log.keys_of(unit)) for unit in log.units} == expected
    assert all(unit.cause is None for unit in log.units)
    if rules is DENSE:
        assert [unit.number for unit in log.units] == list(range(1, units + 1))
    assert log.state.open == {}


@given(st.data())
def test_no_resending_splitting_or_reordering_makes_anything_of_a_unit_but_the_whole_or_nothing(
    data: st.DataObject,
) -> None:
    """Sends a unit's deltas again and again, all or some of them, in pieces, through several shards."""
    numbered = data.draw(st.booleans(), "ordinals")
    keys = data.draw(st.lists(st.integers(0, 3), max_size=4), "the rows that the deltas write")
    deltas = [delta(key, place if numbered else None) for place, key in enumerate(keys)]
    parts = st.sampled_from(range(len(keys) + 1))  # the last is the unit's end
    copies = data.draw(st.permutations([*range(len(keys) + 1), *data.draw(st.lists(parts, max_size=6), "again")]))
    del copies[data.draw(st.integers(len(copies) // 2, len(copies)), "arrived") :]
    log = Log()
    while copies:
        size = data.draw(st.integers(1, len(copies)), "in one append")
        piece, copies = copies[:size], copies[size:]
        log.bring(
            Fragment(
                "T",
                tuple(deltas[place] for place in piece if place < len(keys)),
                ends=tuple(UnitEnd(len(keys)) for place in piece if place == len(keys)),
            ),
            shard=data.draw(st.sampled_from(["s0", "s1"])),
        )
        if data.draw(st.booleans(), "restart"):
            log.state = snapshot.load(snapshot.dump(log.state))
    for unit in log.units:
        assert unit.cause is None
        assert sorted(log.keys_of(unit)) == sorted(keys)
        assert numbered or len(set(keys)) == len(keys), "equal deltas that nothing tells apart complete no unit"
    assert len(log.units) + len(log.state.open) <= 1


@given(st.integers(1, 6), st.integers(), st.booleans())
def test_folding_the_entries_again_gives_the_same_state(units: int, seed: int, duplicates: bool) -> None:
    pieces, _ = brought(units, seed, duplicates=duplicates)
    log = Log(DENSE)
    for shard, piece in pieces[: len(pieces) // 2]:
        log.bring(piece, shard=shard)
    folded = FoldedLog()
    for tid, entry in enumerate(log.entries):
        folded.apply(tid, entry, NOW)
    assert snapshot.dump(folded) == snapshot.dump(log.state)
    assert snapshot.dump(snapshot.load(snapshot.dump(folded))) == snapshot.dump(folded)


def test_the_shards_position_follows_every_append() -> None:
    log = Log()
    log.bring(shard="s3")
    assert log.entries == [Entry(EntryKind.POSITION, PositionMeta.of("s3", Position(1)))]
    assert log.state.positions == {"s3": Position(1)}


def test_entries_are_folded_in_order_only() -> None:
    with pytest.raises(ValueError, match="entry 5 folded where 0 is next"):
        FoldedLog().apply(5, Entry(EntryKind.POSITION, PositionMeta.of("s", Position(1))), NOW)
