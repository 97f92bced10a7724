"""Reading a settings file: text, to keys, to values, to sections, with every problem collected.

A problem is something that must be mended before anything can start. An unknown key is none (Java
ignores it, and so old files go on working), but ``kainite run --check`` names it.
"""

from __future__ import annotations

import difflib
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import javaproperties

from kainite.errors import SettingsError
from kainite.settings.key import Key
from kainite.settings.sections import (
    ApplySettings,
    AwsSettings,
    ChildSettings,
    InitialPosition,
    LeaseSettings,
    LogSettings,
    Settings,
    StreamSettings,
    UnknownKey,
    UowSettings,
)
from kainite.settings.table import DEFAULTS, KEYS
from kainite.settings.without_effect import WITHOUT_EFFECT, why_without_effect

_SPELLINGS: Mapping[str, Key] = {spelling: key for key in KEYS for spelling in (key.name, *key.aliases)}
_EVERY_KEY = (*_SPELLINGS, *WITHOUT_EFFECT)

Values = dict[tuple[str, str], Any]


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found in a file: settings, or problems.

    Attributes:
        path: the file.
        settings: None when there are problems.
        values: by section and field, what the file sets and could be understood.
        wrong: the keys whose text could not be.
        problems: each one line, with its key.
        ignored, unknown: as in :class:`~kainite.settings.sections.Settings`.
    """

    path: Path
    settings: Settings | None
    values: Values
    wrong: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    unknown: tuple[UnknownKey, ...] = ()

    def settings_or_raise(self) -> Settings:
        """The settings; raises SettingsError with all problems when there are any."""
        if self.settings is None:
            raise SettingsError(f"{self.path}: {'; '.join(self.problems)}")
        return self.settings


def examine(path: Path) -> Examination:
    """Read a file; problems with its contents are returned.

    Raises:
        SettingsError: the file itself cannot be read.
    """
    properties = read_properties(path)
    values, misread = _parse(properties, path.absolute().parent)
    ignored = tuple(key for key in properties if key not in _SPELLINGS and why_without_effect(key))
    unknown = tuple(UnknownKey(key, nearest(key)) for key in properties if not _is_known(key))
    problems = (*misread.values(), *_missing(properties), *_contradictions(values))
    settings = None if problems else _settings(path, values, ignored, unknown)
    return Examination(path, settings, values, tuple(misread), problems, ignored, unknown)


def load(path: str | Path) -> Settings:
    """Read and validate a settings file.

    Raises:
        SettingsError: the file cannot be read, or something in it is wrong; all problems at once.
    """
    return examine(Path(path)).settings_or_raise()


def read_properties(path: Path) -> dict[str, str]:
    """Keys and values of a file, by the rules of ``java.util.Properties``: Latin-1, the last of two wins.

    Surrounding space goes, and a key without a value is as good as absent.

    Raises:
        SettingsError: the file cannot be opened, or holds a broken ``\\u`` escape.
    """
    try:
        with path.open("rb") as file:
            properties = javaproperties.load(file)
    except OSError as error:
        raise SettingsError(f"settings file {path}: {error.strerror}") from error
    except javaproperties.InvalidUEscapeError as error:
        raise SettingsError(f"settings file {path}: {error}") from error
    return {key: value.strip() for key, value in properties.items() if value.strip()}


def nearest(key: str) -> str | None:
    """The known key that ``key`` may have been meant to be."""
    by_lower = {known.lower(): known for known in _EVERY_KEY}
    found = difflib.get_close_matches(key.lower(), by_lower, n=1, cutoff=0.75)
    return by_lower[found[0]] if found else None


def _is_known(key: str) -> bool:
    return key in _SPELLINGS or why_without_effect(key) is not None


def _parse(properties: Mapping[str, str], folder: Path) -> tuple[Values, dict[str, str]]:
    """Values, and what is wrong with the keys that have none, by the key's name."""
    values: Values = {}
    misread: dict[str, str] = {}
    for key in KEYS:
        spelling = next((name for name in (key.name, *key.aliases) if name in properties), None)
        if spelling is None:
            continue
        try:
            values[key.section, key.field] = key.kind.parse(properties[spelling], folder)
        except ValueError as error:
            misread[key.name] = f"{spelling}: {error}"
    return values, misread


def _missing(properties: Mapping[str, str]) -> list[str]:
    missing = [key for key in KEYS if key.required and key.name not in properties]
    if "streamArn" in properties:
        missing = [key for key in missing if key.name != "streamName"]
    return [f"{key.name} is missing: {key.meaning[0].lower()}{key.meaning[1:].rstrip('.')}" for key in missing]


def _contradictions(values: Values) -> list[str]:
    now = {**DEFAULTS, **values}
    problems: list[str] = []
    if now["log", "heartbeat"] > now["log", "lease"] / 2:
        problems.append("logHeartbeatMillis must be at most half of logLeaseMillis, or the owner loses its log")
    if now["child", "restart_backoff"] > now["child", "restart_backoff_max"]:
        problems.append("childRestartBackoffMillis must not be above childRestartBackoffMaxMillis")
    return problems


def _settings(path: Path, values: Values, ignored: tuple[str, ...], unknown: tuple[UnknownKey, ...]) -> Settings:
    values = _worked_out(values)
    return Settings(
        path=path,
        aws=AwsSettings(**_of("aws", values)),
        stream=StreamSettings(**_of("stream", values)),
        leases=LeaseSettings(**_of("leases", values)),
        child=ChildSettings(**_of("child", values)),
        log=LogSettings(**_of("log", values)),
        uow=UowSettings(**_of("uow", values)),
        apply=ApplySettings(**_of("apply", values)),
        ignored=ignored,
        unknown=unknown,
    )


def _of(section: str, values: Values) -> dict[str, Any]:
    return {field: value for (owner, field), value in values.items() if owner == section}


def _worked_out(values: Values) -> Values:
    """Add the values that follow from others."""
    application = values["leases", "application"]
    defaults: Values = {
        ("leases", "table"): application,
        ("leases", "worker_id"): f"{socket.gethostname()}:{secrets.token_hex(8)}",
        ("log", "table"): f"{application}-log",
    }
    result = defaults | values
    result["log", "owner"] = result["leases", "worker_id"]
    if ("stream", "initial_timestamp") in values:
        result["stream", "initial_position"] = InitialPosition.AT_TIMESTAMP
    return result | _from_arn(values)


def _from_arn(values: Values) -> Values:
    """The stream's name out of its ARN, and the region where no other is given."""
    arn = values.get(("stream", "arn"))
    if arn is None:
        return {}
    region, name = re.split(r"[:/]", arn)[3], arn.rpartition("/")[2]
    return {("stream", "name"): name, ("aws", "region"): values.get(("aws", "region"), region)}
