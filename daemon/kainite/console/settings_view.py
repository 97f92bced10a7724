"""The settings in force, where each comes from, and what reading the file again would change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kainite.base.errors import SettingsError
from kainite.settings import Settings, examine
from kainite.settings.keys.table import KEYS, value_of
from kainite.settings.loading.reload import changes


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A key that is set."""

    key: str
    value: str
    origin: str
    meaning: str


@dataclass(frozen=True, slots=True)
class SettingsView:
    """The settings.

    Attributes:
        file: the settings file.
        rows: the keys that are set, as the file and the environment have them now.
        changed: keys whose values differ from those with which the console began, and when a daemon takes each over.
        problem: why the file cannot be read now; empty where it can.
    """

    file: str
    rows: tuple[SettingRow, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    problem: str = ""


def settings_view(file: Path, running: Settings) -> SettingsView:
    """Returns the settings of an application."""
    try:
        found = examine(file, options=running.options, needs=("applicationName",))
        fresh = found.settings_or_raise()
    except SettingsError as error:
        return SettingsView(str(file), problem=str(error))
    named = [key for key in KEYS if key.name in found.origins and (key.section, key.field) in found.values]
    rows = tuple(
        SettingRow(key.name, key.kind.show(value_of(fresh, key)), found.origins[key.name], key.meaning) for key in named
    )
    made_up = set() if ("leases", "worker_id") in found.values else {"workerId"}  # another one with each reading
    changed = tuple((each.key, each.reload.value) for each in changes(running, fresh) if each.key not in made_up)
    return SettingsView(str(file), rows, changed)
