"""Splits units into runs, so that a change that may fire a trigger or a rule keeps its place. Pure.

Such a change may write any row, and may read any. So it is a barrier: nothing is folded across it, no layer of units
holds it together with others, and within its unit the deltas before it, the delta itself and those behind it are
executed in this order, the delta in a statement of its own (the rows of one statement change together: a trigger would
see rows that come later in the source). A deferred trigger fires at the end of its unit.

Rows that name each other may need more: a source has perhaps deleted parent and child by one statement, and tells the
parent first. Only where a foreign key of the target refuses them one by one
(:meth:`~kainite_spark.targets.statements.planner.Planner.in_runs`) do they change together.

The order within a unit is known only if the source numbers its deltas. Where it does not, steps and phases order them
as ever, and only each delta that may fire something has a statement of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive units: several that fire nothing, or one that may fire something."""

    units: Sequence[Unit]
    hooked: bool


def runs(units: Sequence[Unit], hooked: Callable[[Delta], bool]) -> Iterator[Run]:
    """Yields the runs of a group.

    Args:
        units: in log order.
        hooked: tells whether a delta may fire something.
    """
    for fires, among in groupby(units, lambda unit: any(map(hooked, unit.deltas))):
        if fires:
            yield from (Run((unit,), True) for unit in among)
        else:
            yield Run(tuple(among), False)


def segments(deltas: Sequence[Delta], hooked: Callable[[Delta], bool]) -> Iterator[Collection[Delta]]:
    """Yields the deltas of a unit in pieces that must keep their order: each hooked delta, and what lies between."""
    if any(delta.ordinal is None for delta in deltas):
        yield deltas
        return
    for fires, among in groupby(deltas, hooked):
        if fires:
            yield from ((delta,) for delta in among)
        else:
            yield tuple(among)
