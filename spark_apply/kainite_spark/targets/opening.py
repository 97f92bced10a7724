"""Opens the target that an address names, by the opener of its kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kainite.doctor.finding import DoctorFinding
from kainite.settings import ApplySettings, MarkersSettings
from kainite.settings.kinds.target_kinds import kind_of
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Target
from kainite_spark.targets.hooks import HookSwitch
from kainite_spark.targets.opener import TargetOpener, TargetRequest
from kainite_spark.targets.stop_requests import StopRequests


def open_target(
    url: str,
    catalogue: Catalogue | None,
    levels: Mapping[str, int] | None = None,
    apply: ApplySettings | None = None,
    markers: MarkersSettings | None = None,
) -> Target:
    """Returns the target that ``url`` names; opens no connection and starts no loader.

    Args:
        url: an address of one of the kinds of targets (:mod:`kainite.settings.kinds.target_kinds`).
        catalogue: the target's tables; a loader needs none.
        levels: precedence by table name; computed from the catalogue by default.
        apply: a loader's batching and time limit.
        markers: the markers of child processes.

    Raises:
        SettingsError: the kind of target is unknown, or the loader's program is missing.
        MissingExtraError: the database's driver is not installed.
        CatalogueError: a cycle of tables whose foreign keys cannot be deferred.
    """
    request = TargetRequest(url, catalogue, levels, apply or ApplySettings(), markers or MarkersSettings())
    return _opener(url).open(request)


def open_hooks(url: str, catalogue: Catalogue, apply: ApplySettings) -> HookSwitch | None:
    """Returns the target, so that its triggers can be looked at; None for a kind that has none to look at.

    Raises:
        SettingsError, MissingExtraError, CatalogueError: as :func:`open_target`.
    """
    hooks = _opener(url).hooks
    return None if hooks is None else hooks(TargetRequest(url, catalogue, None, apply, MarkersSettings()))


def open_stops(url: str, log_partition: str) -> StopRequests | None:
    """Returns the requests of comparisons in a target; None for a kind that is not compared.

    Args:
        url: the target.
        log_partition: the log's name there.
    """
    stops = _opener(url).stops
    return None if stops is None else stops(url, log_partition)


def look_at_kind(request: TargetRequest) -> Iterable[DoctorFinding]:
    """Returns what a look at the target finds, as its kind looks; nothing for a kind that has nothing to ask."""
    look = _opener(request.url).look
    return () if look is None else look(request)


def taken_in(url: str) -> Mapping[str, str]:
    """Returns the log of each table of a target that a log has taken; nothing for a kind that is not asked.

    Raises:
        SettingsError, MissingExtraError: as :func:`open_target`.
        TargetUnavailableError: the target does not answer.
    """
    taken = _opener(url).taken
    return {} if taken is None else taken(url)


def most_units(apply: ApplySettings) -> int:
    """Returns how many units a group has at most; for a loader its batch, which alone is loaded all or nothing."""
    return apply.group_units if apply.target is None else _opener(apply.target).most_units(apply)


def _opener(url: str) -> TargetOpener:
    kind = kind_of(url)
    opener: TargetOpener = kind.part(kind.opener)
    return opener
