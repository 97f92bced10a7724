"""Reads the catalogue from the target itself through SQLAlchemy's reflection.

Tables and primary keys come from SQLAlchemy's inspector; columns, unique keys and foreign keys from
the database's own catalogue (:mod:`kainite.uow.catalogue.postgresql`, :mod:`kainite.uow.catalogue.sqlite`).
The inspector does not say which collations ignore case, nor which rows a unique index leaves out, and
reports a wrong schema for a parent when the parent's schema is on the search path.

Views, foreign tables and Kainite's own tables (``kainite_…``) are not target tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kainite.base.errors import CatalogueError, MissingExtraError, SettingsError, TargetUnavailableError
from kainite.base.redaction import redacted_url
from kainite.uow.catalogue.introspection import Dialect, Found
from kainite.uow.catalogue.tables import Catalogue, ForeignKey, Table

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Inspector
    from sqlalchemy.engine import URL

OWN_TABLES = "kainite_"


def reflect(url: str, schemas: Sequence[str] = ()) -> Catalogue:
    """Reads a target's catalogue.

    Args:
        url: ``postgresql://…`` or ``sqlite:///path``.
        schemas: the schemas whose tables are read; none for the connection's default schema.

    Raises:
        CatalogueError: a schema or file does not exist, or there are no tables.
        TargetUnavailableError: the target does not answer.
        MissingExtraError: SQLAlchemy or the driver is not installed.
        SettingsError: the URL is invalid, or of a database that Kainite does not know.
    """
    parsed = sqlalchemy_url(url)
    dialect = _dialect(parsed)
    from sqlalchemy.exc import DBAPIError

    engine = _engine(parsed)
    try:
        with engine.connect() as connection:
            return _catalogue(connection, dialect, schemas)
    except DBAPIError as error:
        raise TargetUnavailableError(f"catalogue of {redacted_url(url)} cannot be read: {_one_line(error)}") from error
    finally:
        engine.dispose()


def sqlalchemy_url(url: str) -> URL:
    """Returns the URL for SQLAlchemy: PostgreSQL through psycopg 3.

    Raises:
        MissingExtraError: SQLAlchemy is not installed.
        SettingsError: the text is no URL.
    """
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ModuleNotFoundError as error:
        raise MissingExtraError("reading the target's tables needs SQLAlchemy: install kainite[postgresql]") from error
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The message leaves the URL out, which may hold a password.
        raise SettingsError("target is no URL such as postgresql://user@host/database or sqlite:///path") from None
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def _dialect(url: URL) -> Dialect:
    if url.drivername == "postgresql+psycopg":
        from kainite.uow.catalogue.postgresql import PostgreSQL

        return PostgreSQL()
    if url.get_backend_name() == "sqlite":
        from kainite.uow.catalogue.sqlite import SQLite

        return SQLite()
    raise SettingsError(f"target {url.drivername!r} is not known: use postgresql://… or sqlite:///path")


def _engine(url: URL) -> Engine:
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise CatalogueError(f"target {url.database!r} does not exist: SQLite would make an empty one")
    try:
        return create_engine(url, poolclass=NullPool)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"target {url.drivername} needs {error.name}: install kainite[postgresql]") from error


def _catalogue(connection: Connection, dialect: Dialect, schemas: Sequence[str]) -> Catalogue:
    from sqlalchemy import inspect

    inspector = inspect(connection)
    default = inspector.default_schema_name
    wanted = tuple(dict.fromkeys(schemas)) or (default,)
    missing = sorted({schema for schema in wanted if schema is not None} - set(inspector.get_schema_names()))
    if missing:
        raise CatalogueError(f"target has no schema {missing[0]!r}")
    tables: dict[str, Table] = {}
    for schema in wanted:
        # Deltas name SQLite's tables without a schema: a file has only one.
        where = None if inspector.dialect.name == "sqlite" else schema
        tables.update((table.name, table) for table in _tables(connection, inspector, dialect, where, default))
    if not tables:
        raise CatalogueError(f"target has no tables in schema {', '.join(map(str, wanted))}")
    return Catalogue(tables, default)


def _tables(
    connection: Connection, inspector: Inspector, dialect: Dialect, schema: str | None, default: str | None
) -> list[Table]:
    names = sorted(name for name in inspector.get_table_names(schema) if not name.startswith(OWN_TABLES))
    columns = dialect.columns(connection, schema, names)
    unique_keys = dialect.unique_keys(connection, schema, names)
    foreign_keys = dialect.foreign_keys(connection, schema, names)
    families = dialect.families(connection, schema, names)
    judged = dialect.judged(connection, schema, names)
    return [
        Table(
            name=_called(schema, name, default),
            schema=schema,
            columns={column.name: column for column in columns[name]},
            primary_key=tuple(inspector.get_pk_constraint(name, schema)["constrained_columns"]),
            unique_keys=tuple(unique_keys.get(name, ())),
            foreign_keys=_foreign_keys(foreign_keys.get(name, ()), default),
            part_of=_called(*families[name], default) if name in families else None,
            judged=judged[name],
        )
        for name in names
    ]


def _foreign_keys(found: Iterable[Found], default: str | None) -> tuple[ForeignKey, ...]:
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
    """Returns a table's name as deltas call it."""
    return name if schema in (None, default) else f"{schema}.{name}"


def _one_line(error: Exception) -> str:
    return " ".join(str(getattr(error, "orig", error)).split())
