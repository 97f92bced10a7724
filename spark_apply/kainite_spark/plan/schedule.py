"""Assigns the units of a micro-batch to job instances. Pure.

Units that are connected by conflicts, directly or through others, form a component
(:func:`kainite.uow.conflicts.components`). One job instance applies the whole component in log order.
To send a unit to the instance of *one* unit that it conflicts with would not be enough: it may conflict
with units on two instances (docs/decisions.md, *The conflict rule*).

Micro-batches run one after the other, so conflicts between them are irrelevant here.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from kainite.log.state.unit_state import UnitState
from kainite.uow.conflicts import components


def schedule(units: Sequence[UnitState], instances: int) -> tuple[tuple[UnitState, ...], ...]:
    """Assigns units to job instances so that the instances finish together.

    Each component, the longest first, goes to the instance with the fewest deltas so far. The result
    depends on nothing but the arguments.

    Args:
        units: in log order.
        instances: how many job instances there are, at least 1.

    Returns:
        For each instance its units in log order; an instance may have none.
    """
    if instances == 1:
        return (tuple(units),)
    lanes: list[list[UnitState]] = [[] for _ in range(instances)]
    loads = [(0, instance) for instance in range(instances)]
    weighed = sorted((-_weight(component), component[0].tid, component) for component in components(units))
    for negative, _, component in weighed:
        load, instance = heapq.heappop(loads)
        lanes[instance].extend(component)
        heapq.heappush(loads, (load - negative, instance))
    return tuple(tuple(sorted(lane, key=lambda unit: unit.tid)) for lane in lanes)


def _weight(component: Sequence[UnitState]) -> int:
    return sum(max(1, unit.count) for unit in component)
