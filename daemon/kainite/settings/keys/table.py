"""The table of every key that has an effect; everything that deals with keys reads it.

Parsing, ``kainite run --check``, error messages and ``docs/properties.md`` are derived from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kainite.settings.keys.kcl_keys import KCL_KEYS
from kainite.settings.keys.key import Key
from kainite.settings.keys.own_keys import OWN_KEYS
from kainite.settings.sections.apply import ApplySettings
from kainite.settings.sections.aws import AwsSettings, ClientSettings
from kainite.settings.sections.child import ChildSettings
from kainite.settings.sections.extract import ExtractSettings
from kainite.settings.sections.fleet import FleetSettings
from kainite.settings.sections.leases import LeaseSettings
from kainite.settings.sections.log import LogSettings
from kainite.settings.sections.markers import MarkersSettings
from kainite.settings.sections.metrics import MetricsSettings
from kainite.settings.sections.service import ServiceSettings
from kainite.settings.sections.stream import StreamSettings
from kainite.settings.sections.uow import UowSettings

KEYS: tuple[Key, ...] = KCL_KEYS + OWN_KEYS
KEY_BY_SPELLING: Mapping[str, Key] = {spelling: key for key in KEYS for spelling in (key.name, *key.aliases)}

SECTIONS: Mapping[str, type[Any]] = {
    "aws": AwsSettings,
    "kinesis_client": ClientSettings,
    "dynamodb_client": ClientSettings,
    "cloudwatch_client": ClientSettings,
    "stream": StreamSettings,
    "leases": LeaseSettings,
    "child": ChildSettings,
    "markers": MarkersSettings,
    "metrics": MetricsSettings,
    "log": LogSettings,
    "service": ServiceSettings,
    "uow": UowSettings,
    "apply": ApplySettings,
    "extract": ExtractSettings,
    "fleet": FleetSettings,
}

DEFAULTS: Mapping[tuple[str, str], Any] = {
    (section, field.name): field.default
    for section, kind in SECTIONS.items()
    for field in dataclasses.fields(kind)
    if field.default is not dataclasses.MISSING
}


def default_text(key: Key) -> str:
    """Returns a key's default as it would be written in a file, or where the default comes from."""
    if key.default:
        return key.default
    value = DEFAULTS.get((key.section, key.field))
    return "" if value is None else key.kind.show(value)
