"""Opens the target that a URL names: a database by its scheme, or a loader by its command."""

from __future__ import annotations

from collections.abc import Mapping

from kainite.base.errors import MissingExtraError, SettingsError
from kainite.base.markers import Batching
from kainite.child.program_lookup import find
from kainite.settings import ApplySettings, MarkersSettings
from kainite.settings.loader_command import loader_command
from kainite.settings.loader_markers import loader_markers
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Target
from kainite_spark.targets.schema import Schema


def open_target(
    url: str,
    catalogue: Catalogue | None,
    levels: Mapping[str, int] | None = None,
    apply: ApplySettings | None = None,
    markers: MarkersSettings | None = None,
) -> Target:
    """Returns the target that ``url`` names; opens no connection and starts no loader.

    Args:
        url: ``postgresql://…`` or ``sqlite:///path``, as SQLAlchemy spells them, or ``exec:COMMAND``.
        catalogue: the target's tables; a loader needs none.
        levels: precedence by table name; computed from the catalogue by default.
        apply: a loader's batching and time limit.
        markers: the markers of child processes.

    Raises:
        SettingsError: the kind of target is unknown, or the loader's program is missing.
        MissingExtraError: the database's driver is not installed.
        CatalogueError: a cycle of tables whose foreign keys cannot be deferred.
    """
    if (command := loader_command(url)) is not None:
        return _loader(command, catalogue, levels, apply or ApplySettings(), markers or MarkersSettings())
    assert catalogue is not None, "a database has a catalogue"
    scheme, separator, rest = url.partition("://")
    kind = scheme.partition("+")[0]
    if separator and kind in ("postgresql", "postgres"):
        return _postgresql(f"postgresql://{rest}", Schema.of(catalogue, levels))
    if separator and kind == "sqlite":
        from kainite_spark.targets.sqlite.target import SqliteTarget

        return SqliteTarget(rest.removeprefix("/"), Schema.of(catalogue, levels))
    raise SettingsError(
        f"target: {scheme!r} is not a known kind of target; use postgresql://, sqlite:/// or exec:COMMAND"
    )


def most_units(apply: ApplySettings) -> int:
    """Returns how many units a group has at most; for a loader its batch, which alone is loaded all or nothing."""
    if apply.target is None or loader_command(apply.target) is None:
        return apply.group_units
    return 1 if apply.loader_batching is Batching.SINGLE else min(apply.group_units, apply.loader_batch_size)


def _loader(
    command: tuple[str, ...],
    catalogue: Catalogue | None,
    levels: Mapping[str, int] | None,
    apply: ApplySettings,
    markers: MarkersSettings,
) -> Target:
    from kainite_spark.targets.exec.delta_order import DeltaOrder
    from kainite_spark.targets.exec.loader import LoaderSettings
    from kainite_spark.targets.exec.target import ExecTarget

    find(command, "target")
    known = Schema.of(catalogue, levels).levels if catalogue else levels or {}
    loader = LoaderSettings(command, loader_markers(apply, markers), apply.loader_timeout)
    return ExecTarget(loader, DeltaOrder(catalogue, known))


def _postgresql(url: str, schema: Schema) -> Target:
    try:
        from kainite_spark.targets.postgresql.target import PostgresTarget
    except ImportError as error:
        raise MissingExtraError(f"a PostgreSQL target needs psycopg ({error}): install kainite[postgresql]") from error
    return PostgresTarget(url, schema)
