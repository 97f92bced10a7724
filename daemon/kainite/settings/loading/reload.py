"""Applies a changed settings file to a daemon that runs: some changes take effect now, others wait.

SIGHUP reads the file again, with the environment and the command line as they were at the start.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from kainite.settings.keys.key import Key
from kainite.settings.keys.table import KEYS
from kainite.settings.loading.examination import examine
from kainite.settings.sections.child import ChildSettings
from kainite.settings.sections.leases import LeaseSettings
from kainite.settings.sections.markers import MarkersSettings
from kainite.settings.sections.stream import StreamSettings
from kainite.settings.settings import Settings

S = TypeVar("S", StreamSettings, LeaseSettings, ChildSettings)


class When(StrEnum):
    """The time at which a changed value takes effect."""

    NOW = "now"
    NEXT_CHILD = "at the next start of a child"
    RESTART = "when the daemon is started again"


@dataclass(frozen=True, slots=True)
class Change:
    """A key whose value has changed."""

    key: str
    section: str
    field: str
    when: When


_FIELDS: Mapping[When, Mapping[str, frozenset[str]]] = {
    When.NOW: {
        "stream": frozenset({"shard_sync", "ignore_unexpected_children", "list_shards_backoff", "list_shards_tries"}),
        "leases": frozenset(
            {
                "failover",
                "max_leases",
                "cleanup_completed",
                "assignment_interval",
                "steal_at_once",
                "priority",
                "handoff",
                "handoff_timeout",
            }
        ),
    },
    When.NEXT_CHILD: {
        "stream": frozenset(
            {
                "max_records",
                "idle_between_reads",
                "call_with_empty_batches",
                "parent_poll",
                "prefetch_batches",
                "prefetch_bytes",
                "prefetch_records",
                "reduced_tps_behind",
            }
        ),
        "child": frozenset(
            {
                "command",
                "reply_timeout",
                "shutdown_grace",
                "kill_after",
                "restart_backoff",
                "restart_backoff_max",
                "poison_tries",
                "protocol",
                "warn_after",
            }
        ),
        "markers": frozenset(field.name for field in dataclasses.fields(MarkersSettings)),
    },
}


def reread(running: Settings, environment: Mapping[str, str] | None = None) -> Settings:
    """Returns the settings as the file has them now; a worker's name that was made up at the start stays.

    Raises:
        SettingsError: the file cannot be read, or a setting is wrong; ``running`` then stays in force.
    """
    found = examine(running.path, options=running.options, environment=environment)
    fresh = found.settings_or_raise()
    if ("leases", "worker_id") in found.values:
        return fresh
    worker = running.leases.worker_id
    return replace(fresh, leases=replace(fresh.leases, worker_id=worker), log=replace(fresh.log, owner=worker))


def changes(old: Settings, new: Settings) -> tuple[Change, ...]:
    """Returns the keys whose values differ and when each takes effect, in the order of the table of keys."""
    return tuple(
        Change(key.name, key.section, key.field, when_of(key)) for key in KEYS if _value(old, key) != _value(new, key)
    )


def in_force(running: Settings, fresh: Settings) -> Settings:
    """Returns the settings in force after ``fresh`` was read; what waits for a restart is taken from ``running``."""
    child = replace(_taken("child", running.child, fresh.child), markers=fresh.child.markers)
    return replace(
        running,
        stream=_taken("stream", running.stream, fresh.stream),
        leases=_taken("leases", running.leases, fresh.leases),
        child=child,
    )


def _taken(section: str, running: S, fresh: S) -> S:
    fields = {field for sections in _FIELDS.values() for field in sections.get(section, ())}
    return replace(running, **{field: getattr(fresh, field) for field in fields})


def when_of(key: Key) -> When:
    """Tells when a change of a key takes effect."""
    return next(
        (when for when, sections in _FIELDS.items() if key.field in sections.get(key.section, ())), When.RESTART
    )


def _value(settings: Settings, key: Key) -> Any:
    if key.section == "markers":
        return getattr(settings.child.markers, key.field)
    section, _, client = key.section.partition("_")
    owner = getattr(settings.aws, section) if client else getattr(settings, key.section)
    return getattr(owner, key.field)
