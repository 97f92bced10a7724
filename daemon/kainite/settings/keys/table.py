"""Every key of a settings file that has an effect: one table, read by everything that deals with keys.

Parsing, ``kainite run --check``, error messages and ``docs/properties.md`` are derived from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kainite.settings.keys.kcl_keys import KCL_KEYS
from kainite.settings.keys.key import Key
from kainite.settings.keys.own_keys import OWN_KEYS
from kainite.settings.sections import (
    ApplySettings,
    AwsSettings,
    ChildSettings,
    ClientSettings,
    ExtractSettings,
    LeaseSettings,
    LogSettings,
    MarkersSettings,
    MetricsSettings,
    StreamSettings,
    UowSettings,
)

KEYS: tuple[Key, ...] = KCL_KEYS + OWN_KEYS

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
    "uow": UowSettings,
    "apply": ApplySettings,
    "extract": ExtractSettings,
}

DEFAULTS: Mapping[tuple[str, str], Any] = {
    (section, field.name): field.default
    for section, kind in SECTIONS.items()
    for field in dataclasses.fields(kind)
    if field.default is not dataclasses.MISSING
}


def default_text(key: Key) -> str:
    """A key's default as it would be written in a file, or where it comes from."""
    if key.default:
        return key.default
    value = DEFAULTS.get((key.section, key.field))
    return "" if value is None else key.kind.show(value)
