"""Computes signatures: 64-bit hashes of the keys that two units of work can conflict on.

A delta has two sets of signatures, *written* and *read*; two units conflict when one writes what the other writes or
reads. They are the tokens of :mod:`kainite.uow.touched.deltas`, which has the rule, as hashes of 63 bits and a
bit that tells whether the token stands for one row (:mod:`kainite.uow.touched.key`). A collision costs parallelism,
never correctness, but for one decision: :mod:`kainite.log.state.corrections`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import HASHED


class Signatures:
    """Computes the signatures of deltas; each table's plan is worked out once.

    Args:
        catalogue: the target's tables, or None. Without one a delta with a key writes (table, key), values
            compared by their plain text, and reads the table; a delta without a key may touch any row, so it
            writes the table. All deltas on a table must then name its rows by the same columns.
    """

    def __init__(self, catalogue: Catalogue | None) -> None:
        self._keys = TouchedKeys(catalogue, HASHED) if catalogue else None

    def add(self, delta: Delta, written: set[int], read: set[int]) -> None:
        """Adds a delta's signatures to the two sets.

        Raises:
            DeltaError: the table is unknown, or a key value does not fit its column.
        """
        if self._keys is None:
            _add_by_key(delta, written, read)
            return
        plan = self._keys.plan(delta.table)
        written.update(plan.unclear)
        plan.add(delta, written, written, written, read)

    def of(self, deltas: Iterable[Delta]) -> tuple[frozenset[int], frozenset[int]]:
        """Returns all signatures of ``deltas``: (written, read); raises as :meth:`add`."""
        written: set[int] = set()
        read: set[int] = set()
        for delta in deltas:
            self.add(delta, written, read)
        return frozenset(written), frozenset(read)


def _add_by_key(delta: Delta, written: set[int], read: set[int]) -> None:
    """Adds the signatures without a catalogue: (table, key), old and new, and the table."""
    key = delta.key
    (read if key else written).add(HASHED.keyed("table", delta.table, ())(""))
    if not key:
        return
    names = sorted(key)
    finish = HASHED.keyed("row", delta.table, names)
    for image in (key, {name: delta.row.get(name, value) for name, value in key.items()}):
        written.add(finish("\0".join(str(image[name]) for name in names)))
