"""Loads the catalogue from the source that the settings name: a file, or the target itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kainite.settings.kinds.target_kinds import kind_of
from kainite.uow.catalogue import file as files
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue


def load_catalogue(catalogue_file: Path | None, target: str | None, schemas: Sequence[str] = ()) -> Catalogue | None:
    """Returns the catalogue from its file if one is set, else from the target itself.

    Args:
        catalogue_file: a file written by ``kainite precedence --write``.
        target: the target's address; a loader, for one, cannot be asked for its tables.
        schemas: the target's schemas to read; none for its default schema.

    Returns:
        None when there is no file, and no target that can be asked for its tables.

    Raises:
        CatalogueError: the file or the target's tables cannot be used.
        TargetUnavailableError: the target does not answer.
        MissingExtraError: reading the target needs a package that is not installed.
        SettingsError: no kind of target has such an address.
    """
    if catalogue_file is not None:
        return files.read_catalogue(catalogue_file)
    if target is None or kind_of(target).catalogue is None:
        return None
    return reflect(target, schemas)
