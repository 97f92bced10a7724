"""Where the precedence map comes from, by the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.precedence.levels import levels, precedence_map, read_graph


def load_levels(catalogue: Catalogue | None, precedence_file: Path | None) -> Mapping[str, int]:
    """The precedence map: from a file of pairs if there is one, else from the catalogue.

    Returns:
        Table to level; empty when neither is known.

    Raises:
        CatalogueError: the file cannot be used, or tables reference each other beyond order.
    """
    if precedence_file is not None:
        return levels(read_graph(precedence_file))
    return precedence_map(catalogue) if catalogue else {}
