"""The order of rows in a table that references itself: each row's depth below its ancestors. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from kainite.uow.catalogue.tables import ForeignKey, Table
from kainite.uow.delta import Delta, Operation

_Key: TypeAlias = tuple[str, Hashable]


def references_itself(table: Table) -> bool:
    return any(key.parent == table.name for key in table.foreign_keys)


def depths(table: Table, deltas: Sequence[Delta]) -> list[int]:
    """Returns how deep each row is below its ancestors among ``deltas``.

    Args:
        table: a table that references itself.
        deltas: inserts and upserts, or deletes; the ``before`` of a delete tells which row it
            referenced.

    Returns:
        A number for each delta: higher than those of its parents, 0 without parents in ``deltas``; all 0
        if rows reference each other in a cycle, which no order can serve.
    """
    keys = [key for key in table.foreign_keys if key.parent == table.name]
    places = {_referenced(key, delta): place for place, delta in enumerate(deltas) for key in keys}
    parents: dict[int, set[int]] = {}
    for place, delta in enumerate(deltas):
        named = {places[reference] for key in keys if (reference := _reference(key, delta)) in places}
        parents[place] = named - {place}
    found = [0] * len(deltas)
    try:
        for place in TopologicalSorter(parents).static_order():
            found[place] = max((found[parent] + 1 for parent in parents[place]), default=0)
    except CycleError:
        return [0] * len(deltas)
    return found


def _referenced(key: ForeignKey, delta: Delta) -> _Key:
    return key.name, repr([{**delta.before, **delta.key, **delta.row}.get(column) for column in key.parent_columns])


def _reference(key: ForeignKey, delta: Delta) -> _Key:
    image = delta.before if delta.op is Operation.DELETE else delta.row
    return key.name, repr([image.get(column) for column in key.columns])
