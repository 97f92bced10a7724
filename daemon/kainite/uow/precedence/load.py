"""Loads the precedence map from the source that the settings name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.precedence.levels import levels, precedence_map, read_graph


def load_levels(catalogue: Catalogue | None, precedence_file: Path | None) -> Mapping[str, int]:
    """Returns the precedence map: from a file of pairs if one is set, else from the catalogue.

    Returns:
        The level of each table; empty when neither source is known.

    Raises:
        CatalogueError: the file cannot be used, or tables reference each other so that no order exists.
    """
    if precedence_file is not None:
        return levels(read_graph(precedence_file))
    return precedence_map(catalogue) if catalogue else {}
