"""Group commit: bisection down to the refused unit, blocked units, retries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.clock import epoch_ms
from kainite.base.errors import (
    TargetBusyError,
    TargetFencedError,
    TargetUnavailableError,
)
from kainite.log.format.entry import UnitStatus
from kainite.uow.delta import Delta, Operation
from kainite_spark.executor.apply_options import ApplyOptions, Retry
from kainite_spark.executor.group_commit import apply_units, groups
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from support.scripted_session import Scripted

FENCE = Fence("0", 1, 0)
TWICE = (Delta("t", Operation.INSERT, {}, {"a": 1}, {}),) * 2


def unit(tid: int, *written: int, deltas: tuple[Delta, ...] = TWICE) -> Unit:
    return Unit(tid, f"T-{tid}", deltas, frozenset(written or {1_000 + tid}))


def run(target: Scripted, units: Sequence[Unit], group_units: int = 500) -> list[str]:
    chosen = ApplyOptions(group_units=group_units, retry=Retry(tries=3, first=0.5, limit=0.6))
    return [str(outcome.status) for outcome in apply_units(target, FENCE, units, chosen, 3, lambda _: None)]


def test_a_failed_unit_costs_twice_the_logarithm_of_its_group() -> None:
    target = Scripted(refused={317})
    statuses = run(target, [unit(tid) for tid in range(500)])
    assert [tid for tid, status in enumerate(statuses) if status != "committed"] == [317]
    assert target.committed == [tid for tid in range(500) if tid != 317]
    assert len(target.groups) <= 2 * 9 + 2


def test_groups_are_no_larger_than_asked() -> None:
    target = Scripted()
    run(target, [unit(tid) for tid in range(7)], group_units=3)
    assert target.groups == [[0, 1, 2], [3, 4, 5], [6]]


def test_what_the_source_s_order_can_do_is_done() -> None:
    assert run(Scripted(refused={1}, refused_in_order=()), [unit(tid) for tid in range(3)]) == ["committed"] * 3


@pytest.mark.parametrize("applied", [False, True])
def test_a_unit_whose_deltas_cannot_be_read_fails_alone_and_no_target_is_given_it(applied: bool) -> None:
    target = Scripted(committed=[3] if applied else [])
    units = [unit(tid, *((5,) if tid in (3, 6) else ())) for tid in range(8)]
    units[3] = replace(units[3], deltas=(), fault="no deltas")
    outcomes = apply_units(target, FENCE, units, ApplyOptions(), 3, lambda _: None)
    assert sorted(target.committed) == ([*range(8)] if applied else [0, 1, 2, 4, 5, 7])
    failed = [(outcome.tid, outcome.cause) for outcome in outcomes if outcome.status is not UnitStatus.COMMITTED]
    assert failed == ([] if applied else [(3, "no deltas"), (6, "waits for unit 3 (T-3), which is failed")])
    assert not any(3 in group for group in target.groups)


def test_a_unit_of_one_delta_is_not_tried_twice() -> None:
    target = Scripted(refused={0})
    run(target, [unit(0, deltas=TWICE[:1])])
    assert target.groups == [[0]]


def test_outcomes_name_the_instance_and_the_cause() -> None:
    (outcome,) = apply_units(Scripted(refused={0}), FENCE, [unit(0)], instance=3)
    assert (outcome.tid, outcome.instance, outcome.cause) == (0, 3, "refused [0]")


def test_a_committed_unit_says_when_that_was_known() -> None:
    before = epoch_ms()
    outcomes = apply_units(Scripted(refused={1}), FENCE, [unit(0), unit(1)])
    assert before <= (outcomes[0].at_ms or 0) <= epoch_ms()
    assert outcomes[1].at_ms is None


def test_a_held_unit_does_not_hold_back_an_earlier_one() -> None:
    # Unit 4 is blocked by 1 before its group is bisected, and shares a row with 3, which was not tried yet.
    units = [unit(0), unit(1, 7), unit(2), unit(3, 8), unit(4, 7, 8)]
    assert run(Scripted(refused={1, 2}), units, group_units=2) == [
        "committed",
        "failed",
        "failed",
        "committed",
        "blocked",
    ]


def test_a_unit_applied_before_is_not_applied_again() -> None:
    target = Scripted(committed=[0, 2])
    assert run(target, [unit(tid) for tid in range(4)]) == ["committed"] * 4
    assert target.groups == [[1, 3]]


def test_a_lost_answer_to_a_commit_is_asked_for() -> None:
    target = Scripted(lost_answers={2})
    assert run(target, [unit(0), unit(1)]) == ["committed"] * 2
    assert target.committed == [0, 1]


def test_a_target_that_stays_away_is_reported() -> None:
    with pytest.raises(TargetUnavailableError):
        run(Scripted(away={2, 3, 4}), [unit(0)])


def test_a_refused_group_is_split_unfolded() -> None:
    target = Scripted(refused={5})
    run(target, [unit(tid) for tid in range(8)], group_units=4)
    assert target.groups == [[0, 1, 2, 3], [4, 5, 6, 7], [4, 5], [4], [5], [5], [6, 7]]
    assert target.folded == [True, True, False, False, False, False]


def test_a_busy_group_is_split_folded_and_a_unit_alone_is_never_folded() -> None:
    target = Scripted(locked={1})
    run(target, [unit(tid) for tid in range(4)])
    assert list(zip(target.groups, target.folded, strict=True)) == [
        ([0, 1, 2, 3], True),
        ([0, 1], True),
        ([0], False),
        ([1], False),
        ([2, 3], True),
    ]


def test_folding_can_be_switched_off() -> None:
    target = Scripted()
    apply_units(target, FENCE, [unit(0), unit(1)], ApplyOptions(fold=False))
    assert target.folded == [False]


def test_waits_double_up_to_their_limit() -> None:
    waits: list[float] = []
    options = ApplyOptions(retry=Retry(tries=5, first=1.0, limit=3.0))
    apply_units(Scripted(away={1, 2, 3, 4}), FENCE, [unit(0)], options, sleep=waits.append)
    assert waits == [1.0, 2.0, 3.0, 3.0]


def test_a_fenced_task_gives_up_at_once() -> None:
    class Fenced(Scripted):
        def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
            raise TargetFencedError("a newer job")

    with pytest.raises(TargetFencedError):
        run(Fenced(), [unit(0)])


@pytest.mark.parametrize("how", ["locked", "deadly"])
def test_a_busy_unit_is_delayed_alone_and_holds_back_only_what_conflicts(how: str) -> None:
    units = [unit(0), unit(1, 7), unit(2, 7, 8), unit(3, 8), *(unit(tid) for tid in range(4, 40))]
    target = Scripted(locked={1} if how == "locked" else (), deadly={1} if how == "deadly" else ())
    outcomes = apply_units(target, FENCE, units, ApplyOptions(retry=Retry(tries=3)), sleep=lambda _: None)
    assert target.committed == [0, *range(4, 40)]
    assert [(o.tid, o.status, bool(o.cause)) for o in outcomes if o.status != "committed"] == [
        (1, "in progress", True)
    ], "2 and 3 have no outcome: they were not tried"


def test_a_target_that_is_away_delays_nothing() -> None:
    # Every call fails, also the question which units are applied.
    class Gone(Scripted):
        def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
            if self.groups:
                raise TargetUnavailableError("gone")
            return set()

    with pytest.raises(TargetUnavailableError):
        run(Gone(deadly={0, 1}), [unit(0), unit(1)])


def test_many_locked_rows_hold_a_job_instance_up_for_a_limited_time() -> None:
    @dataclass
    class Slow(Scripted):
        now: float = 0.0

        def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
            try:
                super().apply(fence, units, folded=folded)
            except TargetBusyError:
                self.now += 1.0
                raise

    target = Slow(locked=range(0, 2_000, 3))
    left = [unit(tid) for tid in range(2_000)]
    delayed = set[int]()
    for _ in range(1_000):
        began = target.now
        outcomes = apply_units(target, FENCE, left, clock=lambda: target.now)
        assert target.now - began <= 21
        assert outcomes, "each call gets further"
        done = {outcome.tid for outcome in outcomes}
        delayed |= {outcome.tid for outcome in outcomes if outcome.status == "in progress"}
        left = [each for each in left if each.tid not in done]
        if not left:
            break
    assert delayed == set(range(0, 2_000, 3))
    assert len(target.committed) == 2_000 - len(delayed)


def test_a_unit_blocked_early_waits_too_for_a_unit_that_is_delayed_after_that() -> None:
    # 4 is found blocked by 1 before 3, which shares its group and a row with it, is found locked.
    units = [unit(0), unit(1, 7), unit(2), unit(3, 8), unit(4, 7, 8), unit(5, 7)]
    target = Scripted(refused={1}, locked={3})
    options = ApplyOptions(group_units=2)
    outcomes = apply_units(target, FENCE, units, options)
    assert [(o.tid, str(o.status)) for o in outcomes] == [
        (0, "committed"), (1, "failed"), (2, "committed"), (3, "in progress"),
    ]  # fmt: skip


def test_groups_are_no_larger_in_bytes_than_asked_and_a_large_unit_is_alone() -> None:
    units = [Unit(tid, "u", TWICE, size=size) for tid, size in enumerate([4, 4, 4, 50, 1, 9, 9])]
    assert [[unit.tid for unit in group] for group in groups(units, 500, 10)] == [[0, 1], [2], [3], [4, 5], [6]]


lists = st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=2), max_size=20)


@given(
    rows=lists,
    refused=st.sets(st.integers(0, 19)),
    group_units=st.integers(1, 8),
    away=st.sets(st.integers(1, 200), max_size=30),
    lost=st.sets(st.integers(1, 200), max_size=10),
)
def test_outcomes_do_not_depend_on_groups_or_on_a_shaky_target(
    rows: list[set[int]], refused: set[int], group_units: int, away: set[int], lost: set[int]
) -> None:
    units = [unit(tid, *written) for tid, written in enumerate(rows)]
    expected, held = [], set[int]()
    for each in units:
        status = "blocked" if held & each.written else "failed" if each.tid in refused else "committed"
        held |= each.written if status != "committed" else set()
        expected.append(status)
    target = Scripted(refused=refused, away=away, lost_answers=lost)
    options = ApplyOptions(group_units=group_units, retry=Retry(tries=100))
    outcomes = apply_units(target, FENCE, units, options, sleep=lambda _: None)
    assert [str(outcome.status) for outcome in outcomes] == expected
    assert target.committed == [unit.tid for unit, status in zip(units, expected, strict=True) if status == "committed"]
