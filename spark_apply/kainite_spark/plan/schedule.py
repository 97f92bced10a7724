"""Which job instance applies which unit of a micro-batch. Pure.

Two units conflict when one writes what the other writes or reads; two that only read the same
are free of each other. Units that are connected by conflicts, directly or through others, form a
component. A component goes whole and in log order to one job instance, so a unit that conflicts
with units of two components makes one of them. (The white paper sends a unit to *the* instance of
the unit it conflicts with, which is not enough when there are two; reference/apply_systems.md §1.)

Micro-batches never overlap, so conflicts between them need no care here.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from kainite.uow.conflicts import components
from kainite_spark.plan.pending_unit import PendingUnit


def schedule(units: Sequence[PendingUnit], instances: int) -> tuple[tuple[PendingUnit, ...], ...]:
    """Share out units so that the job instances finish together.

    Components go, longest first, to the instance with the least to do, counted in deltas. The
    same units give the same answer.

    Args:
        units: in log order.
        instances: how many job instances there are, at least 1.

    Returns:
        For each instance its units in log order; an instance may have none.
    """
    lanes: list[list[PendingUnit]] = [[] for _ in range(instances)]
    loads = [(0, instance) for instance in range(instances)]
    weighed = sorted((-_weight(component), component[0].tid, component) for component in components(units))
    for negative, _, component in weighed:
        load, instance = heapq.heappop(loads)
        lanes[instance].extend(component)
        heapq.heappush(loads, (load - negative, instance))
    return tuple(tuple(sorted(lane, key=lambda unit: unit.tid)) for lane in lanes)


def _weight(component: Sequence[PendingUnit]) -> int:
    return sum(max(1, unit.count) for unit in component)
