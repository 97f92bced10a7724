"""Plans a micro-batch: which task reads which entries, and which job instance gets them. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, starmap
from typing import Any, NamedTuple

from kainite.base.errors import KainiteError
from kainite.log.format.entry import Outcome
from kainite.log.state.unit_state import UnitState
from kainite_spark.plan.given_parts import GivenParts
from kainite_spark.plan.schedule import schedule
from kainite_spark.plan.selection import Selection
from kainite_spark.targets.fence import Fence

MAX_GAP = 200
"""How many unwanted entries between two wanted ones are read along; a wider gap begins another range."""

MIN_SLICE = 100
"""The fewest entries of a slice for a shuffle: with fewer, one more reading task costs more than it saves."""

MAX_DIRECT = 4
"""The most job instances that each read the log. A shuffle costs 0.3 s more; reading a batch four times costs
 milliseconds. With more instances the log would be read too often."""


class Wanted(NamedTuple):
    """An entry that holds a part of a unit; ``number`` is the entry's place among the unit's entries, from 0."""

    entry: int
    unit: int
    number: int
    instance: int


@dataclass(frozen=True, slots=True)
class Slice:
    """The entries that one task reads.

    Attributes:
        ranges: first and last transaction id of each run of entries, in order.
        wanted: the entries within the ranges that belong to the micro-batch, in order.
        given: the parts in the wanted entries; None if the task must read them.
    """

    ranges: tuple[tuple[int, int], ...]
    wanted: tuple[Wanted, ...]
    given: GivenParts | None = None

    @property
    def units(self) -> list[tuple[int, int]]:
        """Returns for each wanted entry its unit, and the entry's place among the unit's entries."""
        return [(wanted.unit, wanted.number) for wanted in self.wanted]

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # All numbers in one array: pickling the tuples one by one takes ten times as long.
        numbers = array("q", chain.from_iterable(self.wanted))
        return _slice_of, (self.ranges, numbers.tobytes(), self.given)


def _slice_of(ranges: tuple[tuple[int, int], ...], numbers: bytes, given: GivenParts | None) -> Slice:
    flat = iter(array("q", numbers))
    return Slice(ranges, tuple(map(Wanted, flat, flat, flat, flat)), given)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A planned micro-batch: ``instances`` job instances apply what the tasks of ``slices`` read.

    If ``shuffled``, any slice may hold entries for any job instance; otherwise the n-th slice holds all
    entries of the n-th job instance. If ``alone``, each unit gets a target transaction of its own.
    If ``in_order``, no unit behind a busy or refused one is tried. Of a unit in ``only`` the deltas of these tables
    alone are applied: its other tables are of other targets.
    """

    fence: Fence
    slices: tuple[Slice, ...]
    instances: int
    shuffled: bool
    alone: bool = False
    in_order: bool = False
    only: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The report of a job instance; with a ``problem``, units may lack an outcome.

    Attributes:
        groups: how many target transactions were tried.
        splits: how many groups were cut in two because the target did not take them.
    """

    instance: int
    outcomes: tuple[Outcome, ...]
    problem: KainiteError | None = None
    groups: int = 0
    splits: int = 0

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Outcomes are pickled as tuples: pickling the objects one by one takes six times as long.
        outcomes = [(one.tid, one.status, one.instance, one.cause, one.at_ms) for one in self.outcomes]
        return _task_result, (self.instance, outcomes, self.problem, self.groups, self.splits)


def _task_result(
    instance: int, outcomes: Iterable[tuple[Any, ...]], problem: KainiteError | None, groups: int, splits: int
) -> TaskResult:
    return TaskResult(instance, tuple(starmap(Outcome, outcomes)), problem, groups, splits)


def plan(fence: Fence, chosen: Selection, instances: int, readers: int, max_direct: int = MAX_DIRECT) -> MicroBatch:
    """Plans a micro-batch.

    Args:
        fence: the fence of this micro-batch.
        chosen: the micro-batch's units, at least one.
        instances: the most job instances.
        readers: the most tasks that read the log for a shuffle.
        max_direct: the most job instances that read the log each for itself.
    """
    lanes = [lane for lane in schedule(chosen.units, 1 if chosen.serial or chosen.in_order else instances) if lane]
    wanted = [_wanted(lane, instance) for instance, lane in enumerate(lanes)]
    if len(lanes) <= max_direct:
        return MicroBatch(
            fence, tuple(_slice(entries) for entries in wanted), len(lanes), False, chosen.alone, chosen.in_order
        )
    slices = tuple(_cut(sorted(chain.from_iterable(wanted)), readers))
    return MicroBatch(fence, slices, len(lanes), True, chosen.alone, chosen.in_order)


def _wanted(lane: Iterable[UnitState], instance: int) -> list[Wanted]:
    return sorted(
        Wanted(entry, unit.tid, number, instance) for unit in lane for number, entry in enumerate(unit.entries)
    )


def _cut(wanted: Sequence[Wanted], readers: int) -> Iterable[Slice]:
    size = max(MIN_SLICE, -(-len(wanted) // readers))
    for start in range(0, len(wanted), size):
        yield _slice(wanted[start : start + size])


def _slice(wanted: Sequence[Wanted]) -> Slice:
    return Slice(tuple(ranges([entry.entry for entry in wanted])), tuple(wanted))


def ranges(entries: Sequence[int], max_gap: int = MAX_GAP) -> list[tuple[int, int]]:
    """Returns runs (first, last) that cover ascending transaction ids, split at gaps wider than ``max_gap``."""
    breaks = [(one, other) for one, other in pairwise(entries) if other - one > max_gap]
    firsts = [entries[0], *(other for _, other in breaks)]
    lasts = [*(one for one, _ in breaks), entries[-1]]
    return list(zip(firsts, lasts, strict=True))
