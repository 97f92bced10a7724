"""The order of rows in a table that references itself: each row's depth below its ancestors. Pure.

The order only spares the target refusals: deltas whose order matters for the result are in different steps. So values
of opaque columns, whose equality is not known, are compared as they stand in JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from kainite.uow.canonical import is_opaque
from kainite.uow.catalogue.tables import Table
from kainite.uow.delta import Delta, Operation, Row
from kainite.uow.touched.key import ColumnKey
from kainite.uow.touched.plan import TablePlan

KeyValue: TypeAlias = tuple[str, ...]
"""A key's token; then its opaque parts, as they are spelled."""


def references_itself(table: Table) -> bool:
    """Returns whether a row of the table may name another row of it, or of the table that it is a part of."""
    return any(key.parent in (table.name, table.part_of) for key in table.foreign_keys)


def depths(plan: TablePlan[str], deltas: Sequence[Delta]) -> list[int]:
    """Returns how deep each row is below its ancestors among ``deltas``.

    Args:
        plan: of a table that references itself.
        deltas: inserts and upserts, or deletes; the ``before`` of a delete tells which row it
            referenced.

    Returns:
        A number for each delta: higher than those of its parents, 0 without parents in ``deltas``; all 0
        if rows reference each other in a cycle, which no order can serve.

    Raises:
        DeltaError: a key value does not fit its column.
    """
    images = [_image(delta) for delta in deltas]
    named = [each.key for each in plan.named]
    places = {value: place for place, image in enumerate(images) for value in _values(named, image)}
    keys = [parent.key for parent in plan.parents]
    parents: dict[int, set[int]] = {}
    for place, image in enumerate(images):
        parents[place] = {places[value] for value in _values(keys, image) if value in places} - {place}
    found = [0] * len(deltas)
    try:
        for place in TopologicalSorter(parents).static_order():
            found[place] = max((found[parent] + 1 for parent in parents[place]), default=0)
    except CycleError:
        return [0] * len(deltas)
    return found


def _image(delta: Delta) -> Row:
    written = delta.before if delta.op is Operation.DELETE else delta.row
    return {**written, **delta.key} if delta.op is Operation.DELETE else {**delta.key, **written}


def key_value(key: ColumnKey[str], image: Row) -> KeyValue | None:
    """Returns the value of a key, which is the same for parent and child; None where :meth:`ColumnKey.token` is.

    Of two equal values two spellings of an opaque part make different ones. Different values are never the same.
    """
    token = key.token(image)
    if token is None:
        return None
    return token, *(repr(image[name]) for name, canonical in key.parts if is_opaque(canonical))


def _values(keys: Iterable[ColumnKey[str]], image: Row) -> Iterable[KeyValue]:
    """Yields the values of ``keys`` that are known."""
    return (value for key in keys if (value := key_value(key, image)) is not None)
