"""Tells whether a settings file's target can be asked for a replica, and asks it or looks after it.

Needs no driver where it cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kainite.base.errors import MissingExtraError
from kainite.settings import Settings
from kainite.settings.kinds.target_kinds import kind_of
from kainite.targets.postgresql.address import libpq_url

if TYPE_CHECKING:
    from kainite.verdict.facts import ReplicaFacts

# By the kind of target.
_READS: Final = {
    "postgresql": "kainite.replicate.replica_facts:read_replica",
    "mariadb": "kainite.replicate.mariadb_facts:read_mariadb_replica",
}
_GIVES_UP: Final = {
    "postgresql": "kainite.replicate.giving_up:give_up_full",
    "mariadb": "kainite.replicate.mariadb_giving_up:give_up_full_in_mariadb",
}


def asking(configured: Settings) -> Callable[[], ReplicaFacts] | None:
    """Returns what asks the target; None for one that is no replica's, and where its drivers are missing."""
    return _of_the_replica(configured, _READS)


def giving_up(configured: Settings) -> Callable[[], None]:
    """Returns what gives up the target's tables of which too much is held; nothing for one that is no replica's."""
    give_up = _of_the_replica(configured, _GIVES_UP)
    return (lambda: None) if give_up is None else partial(give_up, configured.apply.held_bytes)


def _of_the_replica(configured: Settings, functions: Mapping[str, str]) -> Callable[..., Any] | None:
    """Returns the function for a replica's kind of target, with the target and the log's name filled in."""
    target = configured.apply.target
    if target is None or configured.of_targets or not configured.log.enabled:
        return None
    kind = kind_of(target)
    if (function := functions.get(kind.name)) is None:
        return None
    try:
        found = kind.part(function)
    except MissingExtraError:  # a shard host need not have the driver
        return None
    return partial(found, libpq_url(target) if kind.name == "postgresql" else target, configured.log.name)
