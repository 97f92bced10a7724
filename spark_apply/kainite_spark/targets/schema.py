"""The tables of a target, with their precedence, as its sessions use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.precedence.levels import cycles, graph_of, precedence_map


@dataclass(frozen=True, slots=True)
class Schema:
    """A target's tables, their precedence, and whether some reference each other in a cycle.

    Constraints of a cyclic schema are deferred to the commit, as far as they can be.
    """

    catalogue: Catalogue
    levels: Mapping[str, int]
    cyclic: bool

    @classmethod
    def of(cls, catalogue: Catalogue, levels: Mapping[str, int] | None = None) -> Schema:
        """Returns the schema of a catalogue; raises CatalogueError on a cycle that cannot be deferred.

        Args:
            catalogue: the target's tables.
            levels: precedence by table name, if the user gives it; computed by default.
        """
        computed = precedence_map(catalogue)
        return cls(catalogue, dict(levels or computed), bool(cycles(graph_of(catalogue))))
