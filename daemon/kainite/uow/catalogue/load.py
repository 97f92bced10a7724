"""Loads the catalogue from the source that the settings name: a file, or the target itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kainite.settings.loader_command import EXEC
from kainite.uow.catalogue import file as files
from kainite.uow.catalogue.tables import Catalogue


def load_catalogue(catalogue_file: Path | None, target: str | None, schemas: Sequence[str] = ()) -> Catalogue | None:
    """Returns the catalogue from its file if one is set, else from the target itself.

    Args:
        catalogue_file: a file written by ``kainite precedence --write``.
        target: the target's URL, or a loader's command, which cannot be read from.
        schemas: the target's schemas to read; none for its default schema.

    Returns:
        None when neither a file nor a database is set.

    Raises:
        CatalogueError: the file or the target's tables cannot be used.
        TargetUnavailableError: the target does not answer.
        MissingExtraError: reading the target needs a package that is not installed.
    """
    if catalogue_file is not None:
        return files.read_catalogue(catalogue_file)
    if target is None or target.startswith(EXEC):
        return None
    # Imported here, so that a host with a catalogue file needs no database driver.
    from kainite.uow.catalogue.reflection import reflect

    return reflect(target, schemas)
