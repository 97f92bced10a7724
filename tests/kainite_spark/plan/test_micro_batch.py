"""The plan of a micro-batch: which task reads which entries for which job instance."""

from __future__ import annotations

import pickle
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import TargetUnavailableError
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.unit_state import UnitState
from kainite_spark.plan.micro_batch import TaskResult, plan, ranges
from kainite_spark.plan.selection import Selection
from kainite_spark.targets.fence import Fence
from support.unit_states import unit_state

FENCE = Fence("0", 1, 1)


def units(count: int, *, signatures: int = 1_000, fragments: int = 0) -> tuple[UnitState, ...]:
    step = fragments + 1
    return tuple(
        unit_state((n + 1) * step, {n % signatures}, fragments=[n * step + f + 1 for f in range(fragments)])
        for n in range(count)
    )


@given(st.sets(st.integers(0, 500), min_size=1), st.integers(0, 50))
def test_ranges_cover_every_entry_and_no_gap_wider_than_allowed(entries: set[int], max_gap: int) -> None:
    found = ranges(sorted(entries), max_gap)

    assert all(first in entries and last in entries for first, last in found)
    assert all(any(first <= entry <= last for first, last in found) for entry in entries)
    assert all(b[0] - a[1] > max_gap for a, b in pairwise(found))
    wide = [(a, b) for a, b in pairwise(sorted(entries)) if b - a > max_gap]
    assert len(found) == len(wide) + 1


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 12), st.integers(0, 2), st.integers(0, 12))
def test_every_entry_of_every_unit_is_read_once_for_its_unit_s_job_instance(
    count: int, signatures: int, instances: int, fragments: int, max_direct: int
) -> None:
    chosen = Selection(units(count, signatures=signatures, fragments=fragments))
    batch = plan(FENCE, chosen, instances, readers=3, max_direct=max_direct)
    wanted = [entry for piece in batch.slices for entry in piece.wanted]

    expected = [(e, u.tid, n) for u in chosen.units for n, e in enumerate((*u.fragments, u.tid))]
    assert sorted((w.entry, w.unit, w.number) for w in wanted) == sorted(expected)
    assert len({(w.unit, w.instance) for w in wanted}) == count
    assert {w.instance for w in wanted} == set(range(batch.instances))
    if not batch.shuffled:
        assert [{w.instance for w in piece.wanted} for piece in batch.slices] == [{i} for i in range(batch.instances)]


def test_a_result_comes_back_from_a_task_as_it_was() -> None:
    outcomes = (Outcome(1, UnitStatus.COMMITTED, 0, at_ms=17), Outcome(2, UnitStatus.FAILED, 0, "no"))
    result = TaskResult(0, outcomes, TargetUnavailableError("away"), 3, 1)
    back = pickle.loads(pickle.dumps(result))
    assert back.outcomes == outcomes
    assert [one.at_ms for one in back.outcomes] == [17, None]
    assert (str(back.problem), back.groups, back.splits) == ("away", 3, 1)


def test_disjoint_units_go_to_several_job_instances_and_conflicting_ones_to_one() -> None:
    assert plan(FENCE, Selection(units(10)), 2, 2).instances == 2
    assert plan(FENCE, Selection(units(10, signatures=1)), 2, 2).instances == 1


def test_a_serial_micro_batch_has_one_job_instance() -> None:
    assert plan(FENCE, Selection(units(10), serial=True), 4, 4).instances == 1


def test_many_job_instances_share_the_reading() -> None:
    batch = plan(FENCE, Selection(units(1_000)), 8, readers=4)

    assert batch.shuffled
    assert [len(piece.wanted) for piece in batch.slices] == [250] * 4


def test_few_entries_are_read_by_one_task_even_for_many_job_instances() -> None:
    assert len(plan(FENCE, Selection(units(50)), 8, readers=4).slices) == 1
