"""Tells whether a settings file's target can be asked for a replica, and asks it; needs no driver where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kainite.base.errors import MissingExtraError
from kainite.settings import Settings
from kainite.settings.kinds.target_kinds import kind_of
from kainite.targets.postgresql.address import libpq_url
from kainite.verdict.facts import ReplicaFacts


def asking(configured: Settings) -> Callable[[], ReplicaFacts] | None:
    """Returns what asks the target; None for one that is no replica's, and where PostgreSQL's driver is missing."""
    target = configured.apply.target
    if target is None or configured.of_targets or not configured.log.enabled or kind_of(target).name != "postgresql":
        return None
    try:
        read_replica = kind_of(target).part("kainite.replicate.replica_facts:read_replica")
    except MissingExtraError:  # a shard host need not have the driver
        return None
    return partial(read_replica, libpq_url(target), f"{configured.log.table}/{configured.log.partition}")
