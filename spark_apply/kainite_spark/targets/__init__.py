"""Relational targets: one module per kind, chosen by the URL's scheme."""

from __future__ import annotations

from collections.abc import Mapping

from kainite.errors import MissingExtraError, SettingsError
from kainite.uow.catalogue import Catalogue
from kainite_spark.targets.base import Target
from kainite_spark.targets.schema import Schema


def open_target(url: str, catalogue: Catalogue, levels: Mapping[str, int] | None = None) -> Target:
    """The target at ``url``; opens no connection.

    Args:
        url: ``postgresql://…`` or ``sqlite:///path``, as SQLAlchemy spells them.
        catalogue: the target's tables.
        levels: precedence by table name; computed from the catalogue when it is not given.

    Raises:
        SettingsError: no such kind of target.
        MissingExtraError: its driver is not installed.
        CatalogueError: a cycle of tables whose foreign keys cannot be deferred.
    """
    scheme, separator, rest = url.partition("://")
    kind = scheme.partition("+")[0]
    if separator and kind in ("postgresql", "postgres"):
        return _postgresql(f"postgresql://{rest}", Schema.of(catalogue, levels))
    if separator and kind == "sqlite":
        from kainite_spark.targets.sqlite import SqliteTarget

        return SqliteTarget(rest.removeprefix("/"), Schema.of(catalogue, levels))
    raise SettingsError(f"target: {scheme!r} is no kind of target that Kainite knows; use postgresql:// or sqlite:///")


def _postgresql(url: str, schema: Schema) -> Target:
    try:
        from kainite_spark.targets.postgresql import PostgresTarget
    except ImportError as error:
        raise MissingExtraError(f"a PostgreSQL target needs psycopg ({error}): install kainite[postgresql]") from error
    return PostgresTarget(url, schema)
