"""A micro-batch: which entries are read by which task, and which job instance gets them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

from kainite.base.errors import KainiteError
from kainite.log.format.entry import Outcome
from kainite_spark.plan.backlog import Selection
from kainite_spark.plan.pending_unit import PendingUnit
from kainite_spark.plan.schedule import schedule
from kainite_spark.targets.fence import Fence

MAX_GAP = 200
"""So many unwanted entries between two wanted ones are read along rather than asked for apart."""

MIN_SLICE = 100
"""Entries below which it is not worth to read with one more task."""

MAX_DIRECT = 4
"""Up to so many job instances each reads the log for itself: a shuffle costs 0.3 s more here, while
reading a batch four times costs some milliseconds. With more of them the log would be read too often."""


class Wanted(NamedTuple):
    """An entry that holds a part of a unit: ``number`` is its place among the unit's entries."""

    entry: int
    unit: int
    number: int
    instance: int


@dataclass(frozen=True, slots=True)
class Slice:
    """What one task reads of the log.

    Attributes:
        ranges: first and last transaction id of each run of entries, in order.
        wanted: the entries within them that matter, in order.
    """

    ranges: tuple[tuple[int, int], ...]
    wanted: tuple[Wanted, ...]


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What a micro-batch does: ``instances`` job instances apply what ``slices`` read.

    With ``shuffled`` any slice may hold something for any job instance; without, the n-th slice is
    all that the n-th job instance needs.
    """

    fence: Fence
    slices: tuple[Slice, ...]
    instances: int
    shuffled: bool


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a job instance reports; outcomes may be missing when there was a problem."""

    instance: int
    outcomes: tuple[Outcome, ...]
    problem: KainiteError | None = None


def plan(fence: Fence, chosen: Selection, instances: int, readers: int, max_direct: int = MAX_DIRECT) -> MicroBatch:
    """Lay out a micro-batch.

    Args:
        fence: of this micro-batch.
        chosen: its units, at least one.
        instances: most job instances.
        readers: most tasks that read the log for a shuffle.
        max_direct: most job instances that read for themselves.
    """
    lanes = [lane for lane in schedule(chosen.units, 1 if chosen.serial else instances) if lane]
    wanted = [_wanted(lane, instance) for instance, lane in enumerate(lanes)]
    if len(lanes) <= max_direct:
        return MicroBatch(fence, tuple(_slice(entries) for entries in wanted), len(lanes), shuffled=False)
    return MicroBatch(fence, tuple(_cut(sorted(chain.from_iterable(wanted)), readers)), len(lanes), shuffled=True)


def _wanted(lane: Iterable[PendingUnit], instance: int) -> list[Wanted]:
    return sorted(
        Wanted(entry, unit.tid, number, instance)
        for unit in lane
        for number, entry in enumerate((*unit.fragments, unit.tid))
    )


def _cut(wanted: Sequence[Wanted], readers: int) -> Iterable[Slice]:
    size = max(MIN_SLICE, -(-len(wanted) // readers))
    for start in range(0, len(wanted), size):
        yield _slice(wanted[start : start + size])


def _slice(wanted: Sequence[Wanted]) -> Slice:
    return Slice(tuple(ranges([entry.entry for entry in wanted])), tuple(wanted))


def ranges(entries: Sequence[int], max_gap: int = MAX_GAP) -> list[tuple[int, int]]:
    """Runs (first, last) that cover ascending transaction ids, broken where a gap is wider than ``max_gap``."""
    breaks = [(one, other) for one, other in pairwise(entries) if other - one > max_gap]
    firsts = [entries[0], *(other for _, other in breaks)]
    lasts = [*(one for one, _ in breaks), entries[-1]]
    return list(zip(firsts, lasts, strict=True))
