"""Reads the catalogue from the target itself, by the reader of the target's kind.

The reader returns the contents of the database's own catalogue (:mod:`kainite.uow.catalogue.introspection`). This
module leaves out relations that are no target table, and gives tables the names by which deltas call them. Views,
foreign tables and Kainite's own tables (``kainite_…``) are not target tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kainite.base.errors import CatalogueError
from kainite.settings.kinds.target_kinds import kind_of
from kainite.uow.catalogue.introspection import CatalogueReader, FoundForeignKey, FoundTable, Reading
from kainite.uow.catalogue.tables import Catalogue, ForeignKey, Table

OWN_TABLES = "kainite_"


def reflect(url: str, schemas: Sequence[str] = ()) -> Catalogue:
    """Reads a target's catalogue.

    Args:
        url: the address of a database.
        schemas: the schemas whose tables are read; none for the connection's default schema.

    Raises:
        CatalogueError: a schema or file does not exist, or there are no tables; or the target is no database.
        TargetUnavailableError: the target does not answer.
        MissingExtraError: the driver is not installed.
        SettingsError: no kind of target has such an address.
    """
    kind = kind_of(url)
    if kind.catalogue is None:
        raise CatalogueError(f"a target of the kind {kind.name} cannot be asked for its tables")
    reading: Reading = kind.part(kind.catalogue)
    with reading(url) as reader:
        return catalogue_of(reader, schemas)


def catalogue_of(reader: CatalogueReader, schemas: Sequence[str]) -> Catalogue:
    """Returns the catalogue that a reader reads; raises CatalogueError as :func:`reflect`."""
    default = reader.default_schema()
    wanted = tuple(dict.fromkeys(schemas)) or (default,)
    missing = sorted({schema for schema in wanted if schema is not None} - set(reader.schemas()))
    if missing:
        raise CatalogueError(f"target has no schema {missing[0]!r}: look at targetSchemas and target")
    found = [_table(table, default) for schema in wanted for table in _found(reader, schema)]
    if not found:
        raise CatalogueError(
            f"target has no tables in schema {', '.join(map(str, wanted))}: make them first (a replica's with kainite"
            " replicate init --write), or name their schemas in targetSchemas"
        )
    return Catalogue(_by_name(found), default)


def _by_name(found: Sequence[Table]) -> Mapping[str, Table]:
    """Returns tables by the names that deltas use.

    Raises:
        CatalogueError: two tables have one name, as ``x`` in schema ``sales`` and ``sales.x`` in the default schema.
    """
    named: dict[str, Table] = {}
    for table in found:
        other = named.setdefault(table.name, table)
        if other is not table:
            raise CatalogueError(
                f"deltas cannot tell two tables apart that are both called {table.name}: in the schemas "
                f"{other.schema!r} and {table.schema!r}. Rename one, or leave one schema out of targetSchemas"
            )
    return named


def _found(reader: CatalogueReader, schema: str | None) -> Sequence[FoundTable]:
    return reader.tables(schema, sorted(name for name in reader.table_names(schema) if not name.startswith(OWN_TABLES)))


def _table(found: FoundTable, default: str | None) -> Table:
    return Table(
        name=_called(found.schema, found.name, default),
        schema=found.schema,
        columns={column.name: column for column in found.columns},
        primary_key=found.primary_key,
        unique_keys=found.unique_keys,
        foreign_keys=_foreign_keys(found.foreign_keys, default),
        part_of=_called(*found.part_of, default) if found.part_of else None,
        judged=found.judged,
        defaults=found.defaults,
    )


def _foreign_keys(found: Iterable[FoundForeignKey], default: str | None) -> tuple[ForeignKey, ...]:
    keys = [
        ForeignKey(
            name=key.name,
            columns=key.columns,
            parent=_called(key.parent_schema, key.parent, default),
            parent_columns=key.parent_columns,
            deferrable=key.deferrable,
            on_delete=key.on_delete,
            on_update=key.on_update,
        )
        for key in found
    ]
    return tuple(sorted(keys, key=lambda key: (key.name, key.columns)))


def _called(schema: str | None, name: str, default: str | None) -> str:
    """Returns a table's name as deltas call it.

    A table of the default schema whose own name begins with the schema's has the schema before it like any other:
    ``public.x`` is the table ``x``, and ``public.public.x`` the table ``public.x``.
    """
    bare = schema is None or (schema == default and not name.startswith(f"{schema}."))
    return name if bare else f"{schema}.{name}"
