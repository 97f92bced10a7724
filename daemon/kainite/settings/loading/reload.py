"""Applies a changed settings file to a daemon that runs: some changes take effect now, others wait.

SIGHUP reads the file again, with the environment and the command line as they were at the start. Each key says on its
field when a change takes effect (:class:`~kainite.settings.key.Reload`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kainite.settings.key import Reload
from kainite.settings.keys.table import KEYS, value_of
from kainite.settings.loading.examination import examine
from kainite.settings.settings import Settings
from kainite.settings.several import changes_mode, changes_of_streams, reloaded

D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A key whose value has changed."""

    key: str
    reload: Reload


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


def changes(old: Settings, new: Settings) -> tuple[ChangedSetting, ...]:
    """Returns the keys whose values differ and when each takes effect, in the order of the table of keys."""
    differ = (key for key in KEYS if value_of(old, key) != value_of(new, key))
    late = {"streamNames"} if changes_mode(old, new) else set()
    changed = tuple(ChangedSetting(key.name, Reload.RESTART if key.name in late else key.reload) for key in differ)
    return changed + tuple(ChangedSetting(key, reload) for key, reload in changes_of_streams(old, new))


def in_force(running: Settings, fresh: Settings) -> Settings:
    """Returns the settings in force after ``fresh`` was read; what waits for a start is taken from ``running``."""
    result = replace(running, of_streams=reloaded(running, fresh))
    for key in KEYS:
        if key.reload.is_followed:
            result = _with(result, [*key.section.split("."), key.field], value_of(fresh, key))
    if changes_mode(running, fresh):
        result = _with(result, ["stream", "names"], running.stream.names)
    # It has no key, and follows from one that is followed.
    return _with(result, ["child", "restart_backoff_max"], fresh.child.restart_backoff_max)


def _with(owner: D, path: Sequence[str], value: Any) -> D:
    """Returns a dataclass with another value at a path of fields."""
    first, *rest = path
    changed = _with(getattr(owner, first), rest, value) if rest else value
    return replace(owner, **{first: changed})  # type: ignore[type-var]
