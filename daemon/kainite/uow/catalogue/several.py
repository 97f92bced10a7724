"""Loads the catalogue of an application: of its target, or of all its targets together; each with the log's tables.

In the catalogue of several targets a table stands under the name by which its own target lists it, and no two targets
have one name, because a name belongs to one target. So what a unit touches has names and signatures that no two targets
share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kainite.base.errors import CatalogueError
from kainite.settings.assignment import TableAssignment, fits
from kainite.settings.settings import Settings
from kainite.settings.targets import assignment_of, of_target
from kainite.uow.catalogue import load
from kainite.uow.catalogue.tables import Catalogue, Table


def catalogue_of(settings: Settings) -> Catalogue | None:
    """Returns the catalogue of an application, or of the one of its targets that the settings are for.

    Returns:
        None where there is one target, without a file, that cannot be asked for its tables.

    Raises:
        CatalogueError: a file or a target's tables cannot be used, or a foreign key leaves its target.
        TargetUnavailableError: a target does not answer.
        MissingExtraError: reading a target needs a package that is not installed.
        SettingsError: no kind of target has such an address.
    """
    targets = assignment_of(settings.of_targets)
    if not targets:
        found = load.load_catalogue(settings.uow.catalogue_file, settings.apply.target, settings.apply.schemas)
        return _closed(own_tables(settings, found), "targetTables") if found and settings.apply.tables else found
    if settings.target_name:
        return _of_one(settings, targets)
    return merged(_of_one(of_target(settings, name), targets) for name in targets.names)


def merged(catalogues: Iterable[Catalogue]) -> Catalogue:
    """Returns the tables of several targets, none of which has a table of another one."""
    all_of_them = list(catalogues)
    tables = {name: table for catalogue in all_of_them for name, table in catalogue.tables.items()}
    schemas = [*dict.fromkeys(one.default_schema for one in all_of_them if one.default_schema)]
    return Catalogue(tables, schemas[0] if schemas else None, tuple(schemas[1:]))


def own_tables(settings: Settings, catalogue: Catalogue) -> Catalogue:
    """Returns the tables that the log of the settings writes: those that ``targetTables`` names, or all.

    Args:
        settings: the settings of one target.
        catalogue: the target's tables.
    """
    if not settings.apply.tables:
        return catalogue
    tables = {name: table for name, table in catalogue.tables.items() if is_own(settings, name, table.full_name)}
    return replace(catalogue, tables=tables)


def without(catalogue: Catalogue, full_names: Collection[str]) -> Catalogue | None:
    """Returns a catalogue without some of its tables; None where one of these has to do with a table that stays.

    Two tables have to do with one another by a foreign key, or where they have rows in common, as a partition and its
    table have.

    Args:
        catalogue: the tables.
        full_names: the full names of those that go.
    """
    gone = {name for name, table in catalogue.tables.items() if table.full_name in full_names}
    for name, table in catalogue.tables.items():
        related = {key.parent for key in table.foreign_keys} | _of_one_whole(catalogue, table)
        if any((one in gone) != (name in gone) for one in related):
            return None
    return replace(catalogue, tables={name: table for name, table in catalogue.tables.items() if name not in gone})


def is_own(settings: Settings, *names: str) -> bool:
    """Tells whether the log of the settings writes a table.

    Args:
        settings: the settings of one target.
        names: the table's name in deltas, and that with its schema.
    """
    patterns = settings.apply.tables
    return not patterns or any(fits(pattern, name) for pattern in patterns for name in names)


def only(catalogue: Catalogue, targets: TableAssignment, target: str) -> Catalogue:
    """Returns the tables of a catalogue that belong to a target.

    Raises:
        CatalogueError: a table references one that belongs to another target, or to none.
    """
    tables = {name: table for name, table in catalogue.tables.items() if targets.target_of(name) == target}
    return _closed(Catalogue(tables, catalogue.default_schema), f"target.{target}.tables")


def _closed(catalogue: Catalogue, key: str) -> Catalogue:
    """Returns the catalogue, all of whose foreign keys stay in it.

    Raises:
        CatalogueError: one leaves it; the message names the key of the settings that assigns the tables.
    """
    for name, table in catalogue.tables.items():
        if (parent := _foreign(table, catalogue.tables)) is not None:
            raise CatalogueError(
                f"table {name} is among those of {key} and references {parent}, which is not: a foreign key cannot"
                f" leave the tables of its log, or of its target; name both in {key}"
            )
    return catalogue


def _of_one(settings: Settings, targets: TableAssignment) -> Catalogue:
    found = load.load_catalogue(settings.uow.catalogue_file, settings.apply.target, settings.apply.schemas)
    assert found is not None, "a target without a catalogue is refused with the settings"
    return only(found, targets, settings.target_name)


def _foreign(table: Table, tables: Mapping[str, Table]) -> str | None:
    return next((key.parent for key in table.foreign_keys if key.parent not in tables), None)


def _of_one_whole(catalogue: Catalogue, table: Table) -> set[str]:
    """Returns the tables of a catalogue that have rows in common with one of them."""
    whole = table.part_of or table.name
    return {name for name, one in catalogue.tables.items() if (one.part_of or name) == whole}
