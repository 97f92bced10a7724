"""Failed units and the units that they hold back: against a serial model, and case by case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.unit_state import UnitState
from kainite.settings import Consistency, OnFailure
from kainite.uow.conflicts import conflict
from kainite.uow.delta import UnitKind
from kainite.uow.scheme import MIXED
from kainite.uow.touched.key import ROW
from kainite.uow.touches import Touched
from kainite_spark.plan.backlog import Backlog
from kainite_spark.plan.busy_units import PATIENCE
from support.unit_states import unit_state

COMMITTED, FAILED, BLOCKED = UnitStatus.COMMITTED, UnitStatus.FAILED, UnitStatus.BLOCKED
IN_PROGRESS, DISCARDED = UnitStatus.IN_PROGRESS, UnitStatus.DISCARDED
CORRECTION = UnitKind.CORRECTION


ALL: Final = 100
"""Signatures from here on stand for several rows each; the ones below for one."""


def unit(
    tid: int, *written: int, read: Sequence[int] = (), kind: UnitKind = UnitKind.NORMAL, scheme: str = "S"
) -> UnitState:
    return unit_state(tid, map(signature, written), map(signature, read), kind=kind, scheme=scheme, tables=("t",))


def signature(of: int) -> int:
    return of if of >= ALL else of | ROW


def backlog_of(
    *units: UnitState, policy: OnFailure = OnFailure.BLOCK, consistency: Consistency = Consistency.CONFLICT
) -> Backlog:
    """Returns a backlog of units that all wait."""
    held = Backlog({one.tid: one for one in units}, policy, consistency)
    for one in units:
        held.add(one.tid)
    return held


def run(
    units: Sequence[UnitState], broken: set[int], busy: set[int] | None = None, untried: set[int] | None = None
) -> list[Outcome]:
    """Does what the tasks of a micro-batch do: a broken unit fails, later units that conflict are not tried.

    A busy unit is delayed; neither a delayed unit nor an untried one is passed by later units that conflict.
    """
    stuck: list[UnitState] = []
    postponed: list[UnitState] = []
    results = []
    for candidate in units:
        if candidate.tid in (untried or ()) or any(conflict(candidate, one) for one in postponed):
            postponed.append(candidate)
            continue
        if candidate.tid in (busy or ()) and not any(conflict(candidate, one) for one in stuck):
            postponed.append(candidate)
            results.append(Outcome(candidate.tid, IN_PROGRESS, cause="locked"))
            continue
        if any(conflict(candidate, one) for one in stuck):
            results.append(Outcome(candidate.tid, BLOCKED))
        elif candidate.tid in broken:
            results.append(Outcome(candidate.tid, FAILED, cause="refused"))
        else:
            results.append(Outcome(candidate.tid, COMMITTED, instance=0))
        if results[-1].status is not COMMITTED:
            stuck.append(candidate)
    return results


@dataclass
class Bench:
    """Units, what is wrong with them, and what the log shows of them."""

    policy: OnFailure = OnFailure.BLOCK
    broken: set[int] = field(default_factory=set)
    shown: dict[int, tuple[UnitStatus, str | None]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    busy: set[int] = field(default_factory=set)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.units: dict[int, UnitState] = {}
        self.held = Backlog(self.units, self.policy)

    def add(self, *units: UnitState) -> None:
        for candidate in units:
            self.units[candidate.tid] = candidate
            self.held.add(candidate.tid)
            self.shown[candidate.tid] = (IN_PROGRESS, None)

    def step(self, max_units: int = 100, untried: set[int] | None = None) -> list[int]:
        """Runs one micro-batch; returns its units."""
        chosen = self.held.take(max_units, 100, self.now)
        results = run(chosen.units, self.broken, self.busy, untried)
        self.order += [result.tid for result in results if result.status is COMMITTED]
        self.held.settle(results, self.now)
        for outcome in self.held.take_changes():
            assert self.shown[outcome.tid] != (outcome.status, outcome.cause), "told again what the log shows"
            self.shown[outcome.tid] = (outcome.status, outcome.cause)
        return [candidate.tid for candidate in chosen.units]

    def settle(self) -> None:
        """Lets all locks go, then runs until nothing can run any more."""
        self.busy.clear()
        while self.held.waiting or self.held.delayed:
            self.now += 100
            self.step()

    def statuses(self) -> dict[int, UnitStatus]:
        return {tid: status for tid, (status, _) in self.shown.items()}


def test_a_unit_is_failed_only_after_a_second_try_in_log_order_with_those_behind_it() -> None:
    bench = Bench(broken={0})
    bench.add(unit(0, 1), unit(1, 1), unit(2, 9))

    assert bench.step() == [0, 1, 2]
    assert bench.statuses() == {0: IN_PROGRESS, 1: IN_PROGRESS, 2: COMMITTED}
    bench.broken.clear()
    assert bench.step() == [0, 1]
    assert bench.order == [2, 0, 1]


def test_a_failed_unit_holds_back_what_conflicts_with_it_also_at_second_hand_and_nothing_else() -> None:
    bench = Bench(broken={0})
    bench.add(unit(0, 1), unit(1, 1, 2), unit(2, 2), unit(3, 3), unit(4, 4, read=[2]))
    bench.settle()
    bench.add(unit(5, 4), unit(6, 5))
    bench.settle()

    assert bench.order == [3, 6]
    assert bench.shown[0] == (FAILED, "refused")
    assert bench.shown[1] == (BLOCKED, "waits for 0")
    assert bench.shown[4] == (BLOCKED, "waits for 1")
    assert bench.shown[5] == (BLOCKED, "waits for 4")


def test_units_that_only_read_what_a_failed_one_reads_go_on() -> None:
    bench = Bench(broken={0})
    bench.add(unit(0, 1, read=[7]), unit(1, 2, read=[7]))
    bench.settle()

    assert bench.order == [1]


def test_a_retried_unit_goes_first_and_those_behind_it_follow_in_log_order() -> None:
    bench = Bench(broken={1})
    bench.add(unit(1, 1), unit(2, 1), unit(3, 1))
    bench.settle()
    bench.broken.clear()
    bench.held.retry(1)
    bench.add(unit(4, 1))
    bench.settle()

    assert bench.order == [1, 2, 3, 4]


def test_a_retried_unit_that_fails_again_holds_back_again() -> None:
    bench = Bench(broken={1})
    bench.add(unit(1, 1), unit(2, 1))
    bench.settle()
    bench.held.retry(1)
    bench.shown[1] = (IN_PROGRESS, None)
    bench.settle()

    assert bench.statuses() == {1: FAILED, 2: BLOCKED}


def test_discarding_a_failed_unit_releases_what_waits_only_for_it() -> None:
    bench = Bench(broken={0, 1})
    bench.add(unit(0, 1), unit(1, 2), unit(2, 1), unit(3, 1, 2))
    bench.settle()
    bench.held.forget_resolved({0})
    bench.settle()

    assert bench.order == [2]
    assert bench.shown[3] == (BLOCKED, "waits for 1")


def test_a_correction_passes_the_failed_unit_which_is_then_discarded_and_its_followers_released() -> None:
    bench = Bench(broken={0})
    bench.add(unit(0, 1), unit(1, 1), unit(2, 1, kind=CORRECTION), unit(3, 1))
    bench.settle()

    assert bench.order == [2, 1, 3]
    assert bench.shown[0] == (DISCARDED, "overtaken by 2")


def test_a_correction_takes_the_failed_unit_s_place_and_every_other_pair_keeps_its_order() -> None:
    # 1, 2 and 4 wait for 0; 3 stands in for 0. Row 2 joins 2 and 5, which have nothing to do with 0's row.
    bench = Bench(broken={0})
    bench.add(unit(0, 1), unit(1, 1), unit(2, 1, 2), unit(3, 1, kind=CORRECTION), unit(4, 1), unit(5, 2))
    bench.settle()

    assert bench.order.index(3) < bench.order.index(1) < bench.order.index(2) < bench.order.index(4)
    assert bench.order.index(2) < bench.order.index(5)
    assert bench.statuses()[0] is DISCARDED


@pytest.mark.parametrize("max_units", [1, 9])
def test_a_second_correction_waits_for_what_was_blocked_behind_the_failed_unit_that_the_first_one_replaced(
    max_units: int,
) -> None:
    bench = Bench(broken={0})
    bench.add(unit(0, 1, 2), unit(1, 2), unit(2, 1, kind=CORRECTION), unit(3, 2, kind=CORRECTION))
    while bench.held.waiting:
        bench.step(max_units)

    assert bench.order == [2, 1, 3]
    assert bench.statuses() == {0: DISCARDED, 1: COMMITTED, 2: COMMITTED, 3: COMMITTED}


def test_two_delayed_corrections_of_one_failed_unit_are_not_tried_together() -> None:
    bench = Bench(broken={0}, busy={2, 3})
    bench.add(unit(0, 1, 2), unit(1, 2))
    bench.settle()
    bench.busy = {2, 3}
    bench.add(unit(2, 1, kind=CORRECTION))
    bench.step()
    bench.add(unit(3, 2, kind=CORRECTION))
    bench.step()
    bench.settle()

    assert bench.order == [2, 1, 3]


def test_nothing_is_released_before_the_correction_commits() -> None:
    bench = Bench(broken={0, 2})
    bench.add(unit(0, 1), unit(1, 1), unit(2, 1, kind=UnitKind.REVERSAL))
    bench.settle()

    assert bench.order == []
    assert bench.statuses() == {0: FAILED, 1: BLOCKED, 2: FAILED}


def test_a_correction_waits_when_another_failed_unit_holds_back_what_it_conflicts_with() -> None:
    # 0 and 1 fail; 2 waits for 1; the correction 3 may pass 0 but conflicts with 2, an earlier unit.
    bench = Bench(broken={0, 1})
    bench.add(unit(0, 1), unit(1, 2), unit(2, 2, 3), unit(3, 1, 3, kind=CORRECTION))
    bench.settle()

    assert bench.order == []
    assert bench.statuses()[3] is BLOCKED


def test_a_correction_waits_for_a_failed_unit_that_it_may_touch_and_says_so() -> None:
    bench = Bench(broken={0, 1})
    bench.add(unit(0, 1), unit(1, 2, ALL), unit(2, 1, kind=CORRECTION, read=[ALL]), unit(3, 1))
    bench.settle()

    assert bench.order == []
    assert bench.statuses() == {0: FAILED, 1: FAILED, 2: BLOCKED, 3: BLOCKED}
    cause = bench.shown[2][1] or ""
    assert cause.startswith("waits for 1, which has failed: this correction may touch it")
    assert cause.endswith("kainite uow discard T-1, or retry")

    bench.broken = {0}
    bench.held.retry(1)
    bench.shown[1] = (IN_PROGRESS, None)
    bench.settle()
    assert bench.order == [1, 2, 3]
    assert bench.shown[0] == (DISCARDED, "overtaken by 2")


@pytest.mark.parametrize("why", ["a token of several rows", "another scheme", "no scheme", "mixed schemes"])
def test_a_correction_replaces_no_unit_of_which_it_writes_no_certain_row(why: str) -> None:
    schemes = {"another scheme": "R", "mixed schemes": MIXED}
    failed = unit(0, ALL if why == "a token of several rows" else 1, scheme=schemes.get(why, "S"))
    if why == "no scheme":
        failed = unit_state(0, {signature(1)})
    bench = Bench(broken={0})
    bench.add(failed)
    bench.settle()
    bench.add(unit(1, 1, ALL, kind=CORRECTION))
    bench.settle()
    assert bench.statuses() == {0: FAILED, 1: BLOCKED}
    bench.held.forget_resolved({0})
    bench.settle()
    assert bench.order == [1]


def test_with_skip_a_correction_discards_the_failed_unit_that_it_replaces_and_names_those_that_it_may_touch() -> None:
    bench = Bench(OnFailure.SKIP, broken=set(range(6)))
    bench.add(*(unit(tid, *((1,) if tid == 2 else (ALL,))) for tid in range(6)))
    bench.add(unit(6, 1), unit(7, 1, ALL, kind=CORRECTION), unit(8, 1))
    bench.settle()

    assert bench.order == [6, 7, 8]
    assert bench.shown[2] == (DISCARDED, "overtaken by 7")
    assert {bench.statuses()[tid] for tid in (0, 1, 3, 4, 5)} == {FAILED}
    status, cause = bench.shown[7]
    assert status is COMMITTED
    assert (cause or "").startswith("T-0 (id 0), T-1 (id 1), T-3 (id 3) and 2 more stays failed: this correction")


def test_with_skip_a_failed_correction_discards_nothing() -> None:
    bench = Bench(OnFailure.SKIP, broken={0, 1})
    bench.add(unit(0, 1), unit(1, 1, kind=CORRECTION))
    bench.settle()
    assert bench.statuses() == {0: FAILED, 1: FAILED}


def test_with_skip_a_correction_waits_for_a_delayed_unit_and_then_replaces_the_failed_one() -> None:
    bench = Bench(OnFailure.SKIP, broken={0}, busy={1})
    bench.add(unit(0, 1), unit(1, 2), unit(2, 1, 2, kind=CORRECTION))
    for _ in range(3):
        bench.step()
    assert bench.statuses() == {0: FAILED, 1: IN_PROGRESS, 2: BLOCKED}
    bench.settle()
    assert bench.order == [1, 2]
    assert bench.shown[0] == (DISCARDED, "overtaken by 2")


def test_what_a_failed_unit_held_back_goes_before_its_correction_if_a_person_discards_it_while_that_waits() -> None:
    # 4 corrects 0, but waits for 1, which it may touch. 2 waits for 0 alone, and 3 for both.
    bench = Bench(broken={0, 1})
    bench.add(unit(0, 1), unit(1, ALL), unit(2, 1), unit(3, 1, ALL), unit(4, 1, ALL, kind=CORRECTION))
    bench.settle()
    bench.held.forget_resolved({0})
    bench.shown[0] = (DISCARDED, None)
    bench.settle()
    assert bench.order == [2]
    bench.held.forget_resolved({1})
    bench.shown[1] = (DISCARDED, None)
    bench.settle()
    assert bench.order == [2, 3, 4]


def test_a_unit_that_is_retried_while_a_correction_passes_it_goes_before_the_correction() -> None:
    bench = Bench(broken={0})
    bench.add(unit(0, 1))
    bench.settle()
    bench.broken = {1}
    bench.add(unit(1, 1, kind=CORRECTION))
    bench.step()
    bench.broken = set()
    bench.held.retry(0)
    bench.settle()

    assert bench.order == [0, 1]


def test_a_correction_discards_no_unit_that_was_judged_anew_since_it_passed_it() -> None:
    bench = Bench(broken={0})
    bench.add(unit(0, 1))
    bench.settle()
    bench.add(unit(1, 1, kind=CORRECTION))
    bench.busy.add(1)
    assert bench.step() == [1]
    bench.units[0] = unit(0, 2)  # the catalogue has changed, and with it the signatures of a unit that is retried
    bench.shown[0] = (IN_PROGRESS, None)
    bench.held.retry(0)
    assert bench.step() == [0], "the correction, which passed it, is delayed"
    bench.settle()

    assert bench.order == [1]
    assert bench.shown[0] == (FAILED, "refused")


def test_a_unit_that_was_blocked_before_a_correction_goes_first_once_the_failed_unit_is_discarded() -> None:
    bench = Bench(broken={0})
    bench.add(unit(0, 1))
    bench.settle()
    bench.broken = {2}
    bench.add(unit(1, 1), unit(2, 1, kind=CORRECTION))
    bench.step()
    bench.broken = set()
    bench.held.forget_resolved({0})
    bench.shown[0] = (DISCARDED, None)
    bench.settle()

    assert bench.order == [1, 2]


def test_a_unit_that_was_not_tried_a_second_time_waits_for_those_before_it_that_were_found_blocked() -> None:
    # 1 waits for 0, and 2 for 1; the task had no time left for 2 (a busy unit between them took it).
    bench = Bench(broken={0})
    bench.add(unit(0, 1), unit(1, 1, 2), unit(2, 2))
    assert bench.step() == [0, 1, 2]
    assert bench.step(untried={2}) == [0, 1, 2]
    assert bench.step() == []
    assert bench.statuses() == {0: FAILED, 1: BLOCKED, 2: BLOCKED}


@pytest.mark.parametrize("policy", OnFailure)
def test_a_delayed_unit_waits_for_a_failed_one_that_holds_back_more_since(policy: OnFailure) -> None:
    bench = Bench(policy, broken={0}, busy={1})
    bench.add(unit(0, 1), unit(1, 2))
    for _ in range(2):
        bench.step()
    bench.units[0] = unit(0, 1, 2)
    bench.held.widen(0, Touched(frozenset({signature(2)})))
    bench.settle()

    assert bench.order == ([1] if policy is OnFailure.SKIP else [])


def test_a_unit_born_failed_holds_back_and_is_never_run() -> None:
    bench = Bench()
    bench.units[0] = unit(0, 1)
    bench.held.add(0, FAILED, "no JSON")
    bench.add(unit(1, 1), unit(2, 2))
    bench.settle()

    assert bench.order == [2]
    assert bench.shown[1] == (BLOCKED, "waits for 0")


def test_skip_holds_nothing_back() -> None:
    bench = Bench(OnFailure.SKIP, broken={0})
    bench.add(unit(0, 1), unit(1, 1), unit(2, 1))
    bench.settle()

    assert bench.order == [1, 2]
    assert bench.statuses()[0] is FAILED


@pytest.mark.parametrize("policy", OnFailure)
def test_a_delayed_unit_holds_back_only_what_conflicts_and_comes_again_later(policy: OnFailure) -> None:
    bench = Bench(policy, busy={0})
    bench.add(unit(0, 1), unit(1, 1, 2), unit(2, 3), unit(3, 2))
    assert bench.step() == [0, 1, 2, 3]
    assert bench.order == [2]
    assert bench.step() == [], "1 and 3 wait for 0, which is not due"
    assert bench.statuses() == {0: IN_PROGRESS, 1: BLOCKED, 2: COMMITTED, 3: BLOCKED}
    assert bench.held.delayed == 1

    bench.add(unit(4, 1), unit(5, 5))
    assert bench.step() == [4, 5][1:]
    bench.now = 1.0
    assert bench.step() == [0], "a delayed unit is tried in a micro-batch of its own"
    bench.now = 2.5
    assert bench.step() == [], "the second pause is longer"
    bench.busy.clear()
    bench.now = 3.0
    bench.step()
    bench.step()
    assert bench.order == [2, 5, 0, 1, 3, 4]
    assert bench.held.delayed == 0


def test_a_delayed_unit_that_fails_in_the_end_holds_back_as_a_failed_one() -> None:
    bench = Bench(busy={0}, broken={0})
    bench.add(unit(0, 1), unit(1, 1))
    bench.step()
    bench.settle()
    assert bench.statuses() == {0: FAILED, 1: BLOCKED}
    bench.held.forget_resolved({0})
    bench.settle()
    assert bench.order == [1]


def test_what_waits_for_a_delayed_unit_is_not_tried_with_those_that_were_refused() -> None:
    # 1 is refused and comes again at once; 3 was blocked behind 1, and conflicts with the delayed unit too.
    bench = Bench(busy={2}, broken={1})
    bench.add(unit(1, 1), unit(2, 2), unit(3, 1, 2), unit(4, 3))
    bench.step()
    bench.broken.clear()
    assert bench.step() == [1]
    bench.settle()
    assert bench.order == [4, 1, 2, 3]


def test_many_delayed_units_leave_most_of_the_time_to_the_others() -> None:
    bench = Bench(busy=set(range(20)))
    bench.add(*(unit(tid, tid) for tid in range(20)))
    bench.step()
    bench.add(*(unit(tid, tid) for tid in range(100, 110)))
    bench.now = 10.0
    chosen = bench.held.take(2, 100, 10.0)
    assert (len(chosen.units), chosen.alone) == (8, True)
    bench.held.settle(run(chosen.units, set(), bench.busy), 18.0)
    bench.now = 49.0
    assert bench.step(2) == [100, 101]
    bench.now = 50.0
    assert bench.step(2) == list(range(8, 16))


def test_units_not_tried_are_taken_again_in_log_order() -> None:
    held = backlog_of(*(unit(tid, 1) for tid in range(3)))
    held.take(2, 100)
    held.settle([Outcome(0, COMMITTED)])

    assert [candidate.tid for candidate in held.take(5, 100).units] == [1, 2]


@pytest.mark.parametrize(("max_units", "max_deltas", "expected"), [(2, 99, 2), (99, 3, 3), (99, 0, 1)])
def test_a_micro_batch_is_bounded_but_never_empty(max_units: int, max_deltas: int, expected: int) -> None:
    held = backlog_of(*(unit(tid) for tid in range(5)))
    assert len(held.take(max_units, max_deltas).units) == expected


TOKENS = st.sampled_from([0, 1, 2, ALL, ALL + 1])
SHAPES = st.tuples(
    st.sets(TOKENS, max_size=2),
    st.sets(TOKENS, max_size=1),
    st.sampled_from([UnitKind.NORMAL, UnitKind.NORMAL, CORRECTION]),
    st.booleans(),
)


def held_back(units: Sequence[UnitState], failed: set[int]) -> set[int]:
    """Returns which units wait, directly or through others, for an earlier failed one; by the definition."""
    holders: list[UnitState] = []
    for candidate in units:
        if candidate.tid in failed or any(conflict(candidate, holder) for holder in holders):
            holders.append(candidate)
    return {holder.tid for holder in holders} - failed


def test_a_withdrawn_unit_runs_no_more_and_holds_back_nothing() -> None:
    bench = Bench()
    bench.add(unit(0, 1), unit(1, 1), unit(2, 2))
    bench.busy.add(0)
    bench.step()
    assert bench.shown[0] == (IN_PROGRESS, "locked")
    bench.held.withdraw(0, "by me")
    bench.held.settle_withdrawn(())
    assert bench.step() == [1]
    assert bench.statuses() == {0: DISCARDED, 1: COMMITTED, 2: COMMITTED}


def test_a_withdrawn_correction_that_the_target_has_replaces_what_it_corrects() -> None:
    bench = Bench(broken={0})
    bench.add(unit(0, 1), unit(1, 1, kind=CORRECTION))
    bench.step()
    bench.step(untried={1})
    bench.held.withdraw(1, "by me")
    bench.held.settle_withdrawn({1})
    assert {one.tid: one.status for one in bench.held.take_changes()} == {0: DISCARDED, 1: COMMITTED}
    assert not list(bench.held.unresolved())


def test_the_log_shows_why_units_wait_until_they_are_tried_again() -> None:
    bench = Bench()
    bench.add(unit(0, 1), unit(1, 2))
    bench.step(untried={0, 1})
    bench.held.waits_for([0, 1, 7], "no target")
    assert bench.held.take_changes() == tuple(Outcome(tid, IN_PROGRESS, cause="no target") for tid in (0, 1))
    assert bench.held.take_changes() == ()
    bench.busy.add(1)
    bench.step()
    assert bench.shown == {0: (COMMITTED, None), 1: (IN_PROGRESS, "locked")}


class SerialModel(RuleBasedStateMachine):
    """Random units, faults, retries and discards, against what the rules say of every unit at rest."""

    @initialize(policy=st.sampled_from([OnFailure.BLOCK, OnFailure.BLOCK, OnFailure.SKIP]))
    def start(self, policy: OnFailure) -> None:
        self.bench = Bench(policy)
        self.units: dict[int, UnitState] = {}
        self.failed_at: set[int] = set()

    @rule(shapes=st.lists(SHAPES, min_size=1, max_size=5))
    def arrive(self, shapes: list[tuple[set[int], set[int], UnitKind, bool]]) -> None:
        for written, read, kind, broken in shapes:
            tid = len(self.units)
            self.units[tid] = unit(tid, *written, read=tuple(read), kind=kind)
            if broken:
                self.bench.broken.add(tid)
            self.bench.add(self.units[tid])

    @rule(data=st.data())
    @precondition(lambda self: self.unresolved())
    def lock(self, data: st.DataObject) -> None:
        self.bench.busy.add(data.draw(st.sampled_from(self.unresolved())))

    @rule(seconds=st.integers(0, 5))
    def unlock(self, seconds: int) -> None:
        self.bench.now += seconds
        self.bench.busy.clear()

    @rule(max_units=st.integers(1, 4), untried=st.sets(st.integers(0, 20), max_size=2))
    def apply_some(self, max_units: int, untried: set[int]) -> None:
        unresolved, failed, committed = self.unresolved(), set(self.failed()), len(self.bench.order)
        self.bench.now += 0.5
        self.bench.step(max_units, untried)
        for tid in self.bench.order[committed:]:
            self.check_order(tid, unresolved, failed)

    @rule(data=st.data(), mended=st.booleans())
    @precondition(lambda self: self.failed())
    def retry(self, data: st.DataObject, mended: bool) -> None:
        tid = data.draw(st.sampled_from(self.failed()))
        if mended:
            self.bench.broken.discard(tid)
        self.bench.held.retry(tid)
        self.bench.shown[tid] = (IN_PROGRESS, None)

    @rule(data=st.data())
    @precondition(lambda self: self.failed())
    def discard(self, data: st.DataObject) -> None:
        tid = data.draw(st.sampled_from(self.failed()))
        self.bench.held.forget_resolved({tid})
        self.bench.shown[tid] = (DISCARDED, None)

    @rule(data=st.data())
    @precondition(lambda self: self.unresolved())
    def withdraw(self, data: st.DataObject) -> None:
        tid = data.draw(st.sampled_from(self.unresolved()))
        self.bench.held.withdraw(tid, "by me")
        assert tid in set(self.bench.held.unresolved()), "its acknowledgement must not be trimmed"
        self.bench.held.settle_withdrawn(())
        changes = self.bench.held.take_changes()
        assert changes[-1] == Outcome(tid, DISCARDED, cause="by me")
        self.bench.shown.update((one.tid, (one.status, one.cause)) for one in changes)

    @rule()
    def come_to_rest(self) -> None:
        self.bench.settle()
        shown = self.bench.statuses()
        blocked = [tid for tid in self.unresolved() if tid not in self.failed()]
        assert all(shown[tid] is BLOCKED for tid in blocked)
        expected = held_back([self.units[tid] for tid in self.unresolved()], set(self.failed()))
        assert set(blocked) == (expected if self.bench.policy is OnFailure.BLOCK else set())

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert len(set(self.bench.order)) == len(self.bench.order)
        resolved = {tid for tid, status in self.bench.statuses().items() if status in (COMMITTED, DISCARDED)}
        assert set(self.bench.held.unresolved()) == self.units.keys() - resolved

    def check_order(self, tid: int, before: list[int], failed: set[int]) -> None:
        """Checks that each earlier unit in conflict is done, or failed and passed, or blocked by passed units alone.

        A unit that is passed has failed, and certainly has a row of the correction.
        """
        earlier = [self.units[e] for e in before if e < tid]
        discarded = {e for e in failed if self.bench.shown[e] == (DISCARDED, f"overtaken by {tid}")}
        assert discarded == {e.tid for e in earlier if e.tid in failed and self.replaces(tid, e)}
        if self.bench.policy is OnFailure.SKIP:
            done = self.bench.order[: self.bench.order.index(tid)]
            now_failed = failed | set(self.failed())
            for one in (e for e in earlier if conflict(e, self.units[tid]) and e.tid not in done):
                assert one.tid in now_failed, f"{tid} overtook {one.tid}"
            return
        passed = {e.tid for e in earlier if e.tid in failed and self.replaces(tid, e)}
        done = self.bench.order[: self.bench.order.index(tid)]
        # Passed units are discarded with the commit, done ones are gone: neither holds back, whatever it waited for.
        rest = [e for e in earlier if e.tid not in passed and e.tid not in done]
        for one in (e for e in earlier if conflict(e, self.units[tid]) and e.tid not in done):
            assert self.units[tid].kind is CORRECTION, f"{tid} overtook {one.tid}"
            if one.tid in passed:
                assert self.bench.statuses()[one.tid] is DISCARDED
            else:
                assert self.bench.statuses()[one.tid] is not DISCARDED
                assert one.tid in held_back(earlier, failed), f"{one.tid} was free to go before {tid}"
                assert one.tid not in held_back(rest, failed - passed), f"{one.tid} waits for others as well"

    def replaces(self, tid: int, failed: UnitState) -> bool:
        one = self.units[tid]
        return one.kind is CORRECTION and any(row & ROW for row in one.written & failed.written)

    def unresolved(self) -> list[int]:
        return [tid for tid, status in self.bench.statuses().items() if status not in (COMMITTED, DISCARDED)]

    def failed(self) -> list[int]:
        return [tid for tid, status in self.bench.statuses().items() if status is FAILED]


def test_a_correction_passes_a_failed_correction_although_the_unit_that_this_one_passed_stays_failed() -> None:
    # 1 conflicts with 0, which it could not correct; 2 waits for 1 alone, so nothing but 1 holds 3 back.
    model = SerialModel()
    model.start(OnFailure.BLOCK)
    writes_3, writes_3_and_4 = ({3}, set[int](), UnitKind.NORMAL, True), ({3, 4}, set[int](), CORRECTION, True)
    reads_4, writes_0_and_4 = (set[int](), {4}, UnitKind.NORMAL, False), ({0, 4}, set[int](), CORRECTION, False)
    model.arrive([writes_3, writes_3_and_4, reads_4, writes_0_and_4])
    while model.bench.held.waiting:
        model.apply_some(4, set())
    model.come_to_rest()

    assert model.bench.order == [3, 2]
    assert model.bench.statuses() == {0: FAILED, 1: DISCARDED, 2: COMMITTED, 3: COMMITTED}


TestSerialModel = SerialModel.TestCase
TestSerialModel.settings = settings(max_examples=200, stateful_step_count=20, deadline=None)


def test_with_prefix_the_busy_unit_that_all_wait_for_is_tried_alone_until_it_can_run() -> None:
    units = [unit(tid, tid) for tid in range(4)]
    held = backlog_of(*units, consistency=Consistency.PREFIX)
    assert held.take(9, 99, 0.0).units == tuple(units)
    held.settle([Outcome(0, COMMITTED), Outcome(1, IN_PROGRESS, cause="locked")], 1.0)

    assert held.take(9, 99, 1.1).units == (), "it is tried again after a pause"
    held.settle([], 1.1)
    assert held.take(9, 99, 2.0).units == (units[1],), "what would wait for the same lock is not sent along"
    held.settle([Outcome(1, IN_PROGRESS, cause="locked")], 3.0)
    assert held.take(9, 99, 9.0).units == (units[1],)
    held.settle([Outcome(1, COMMITTED)], 9.1)
    assert held.take(9, 99, 9.1).units == tuple(units[2:])


@pytest.mark.parametrize("policy", OnFailure)
def test_with_prefix_a_unit_that_stays_busy_is_passed_after_a_minute_unless_the_policy_is_stop(
    policy: OnFailure,
) -> None:
    units = [unit(0, 7), unit(1, 8), unit(2, 7)]
    held = backlog_of(*units, policy=policy, consistency=Consistency.PREFIX)
    assert held.take(9, 99, 0.0).units == tuple(units)
    held.settle([Outcome(0, IN_PROGRESS, cause="locked")], 0.0)
    assert held.take(9, 99, PATIENCE - 1).units == (units[0],)
    held.settle([Outcome(0, IN_PROGRESS, cause="locked")], PATIENCE + 1)
    waits_on = policy is OnFailure.STOP
    assert held.take(9, 99, PATIENCE + 1.1).units == (() if waits_on else (units[1],)), "what conflicts never passes"


def test_with_prefix_all_units_wait_a_minute_in_all_however_many_rows_are_locked() -> None:
    locked, behind = [unit(tid, tid) for tid in range(3)], unit(9, 9)
    held = backlog_of(*locked, behind, consistency=Consistency.PREFIX)
    now = 0.0
    while behind not in (chosen := held.take(99, 99, now)).units or chosen.units[0] is not behind:
        tried = chosen.units[:1]
        held.settle([Outcome(one.tid, IN_PROGRESS, cause="locked") for one in tried], now := now + 1.0)
        assert now < 2 * PATIENCE, "an unrelated unit waits for ever"
    assert PATIENCE <= now <= PATIENCE + 15
