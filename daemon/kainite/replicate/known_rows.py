"""Tells which rows differ because a unit of work is not applied: one that failed, or waits. Pure.

A row is found by the signatures that its unit writes (:mod:`kainite.uow.signature`). Where a unit was signed by other
rules than those of the present catalogue, or a row has no key, the tables that the unit touches decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from kainite.base.errors import DeltaError
from kainite.replicate.stop_ledger import UnresolvedUnit
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta, Operation
from kainite.uow.scheme import Scheme
from kainite.uow.signature import Signatures


class Explanation(StrEnum):
    """Whether a unit that is not applied explains a row."""

    NONE = "different"
    UNSURE = "unsure"  # such a unit may touch any row
    KNOWN = "known"


class KnownRows:
    """The rows that units touch which are not applied.

    Args:
        units: the units.
        catalogue: the target's tables.
    """

    def __init__(self, units: Sequence[UnresolvedUnit], catalogue: Catalogue) -> None:
        scheme = Scheme.of(catalogue).id
        self._catalogue = catalogue
        self._signatures = Signatures(catalogue)
        self._any = any(unit.partly for unit in units)
        self._written = {token for unit in units if unit.scheme == scheme for token in unit.written}
        self._touched = {name for unit in units for name in unit.tables}
        self._whole = {name for unit in units for name in (unit.unsigned if unit.scheme == scheme else unit.tables)}

    def explain(self, table: str, key: dict[str, str] | None) -> Explanation:
        """Tells whether a unit explains a row.

        Args:
            table: the table, with its schema.
            key: the texts of the row's key; None for a table without one.
        """
        found = self._catalogue.find(table)
        if found is not None and self._touches(found.name, key):
            return Explanation.KNOWN
        return Explanation.UNSURE if self._any else Explanation.NONE

    def _touches(self, name: str, key: dict[str, str] | None) -> bool:
        if key is None or name in self._whole or not self._written:
            return name in (self._touched if key is None else self._whole)
        try:
            # Of an update that changes no other column nothing but the row itself is written.
            written, _ = self._signatures.of([Delta(name, Operation.UPDATE, dict(key), {}, {})])
        except DeltaError:
            return name in self._touched
        return not written.isdisjoint(self._written)
