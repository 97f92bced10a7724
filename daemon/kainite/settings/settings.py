"""All settings of one application: what its file, the environment and the command line say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kainite.settings.key import section
from kainite.settings.sections.apply import ApplySettings
from kainite.settings.sections.aws import AwsSettings
from kainite.settings.sections.child import ChildSettings
from kainite.settings.sections.console import ConsoleSettings
from kainite.settings.sections.extract import ExtractSettings
from kainite.settings.sections.fleet import FleetSettings
from kainite.settings.sections.leases import LeaseSettings
from kainite.settings.sections.log import LogSettings
from kainite.settings.sections.metrics import MetricsSettings
from kainite.settings.sections.service import ServiceSettings
from kainite.settings.sections.stream import StreamSettings
from kainite.settings.sections.uow import UowSettings


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that neither KCL nor Kainite knows. Java ignores such keys, so they are no error.

    Attributes:
        key: the key as it is spelled.
        nearest: the known key that may have been meant.
    """

    key: str
    nearest: str | None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a file, the environment and the command line say, validated.

    Each field with the metadata of a section is one; :mod:`kainite.settings.keys.table` reads the keys from them.

    Attributes:
        path: the file; None where all settings came from elsewhere.
        ignored: KCL's keys that are set and have no effect here.
        unknown: keys that neither KCL nor Kainite knows, with the nearest known one.
        warnings: a line for each setting that is allowed and may surprise.
        options: the command line's settings, for reading the file again.
        of_streams: what the file sets for one stream (``stream.NAME.KEY``): by the stream's name, values by section and
            field; :mod:`kainite.settings.several` applies them.
        of_targets: what the file sets for one target (``target.NAME.KEY``), as ``of_streams``; empty where there is one
            target; :mod:`kainite.settings.targets` applies it.
        target_name: the one of several targets that these settings are for; empty for the application's own.
    """

    path: Path | None
    aws: AwsSettings = field(metadata=section("AWS"))
    stream: StreamSettings = field(metadata=section("The stream"))
    leases: LeaseSettings = field(metadata=section("Leases"))
    child: ChildSettings = field(metadata=section("Record processors"))
    log: LogSettings = field(metadata=section("The serialization log"))
    uow: UowSettings = field(metadata=section("Units of work"))
    apply: ApplySettings = field(metadata=section("The apply job"))
    metrics: MetricsSettings = field(default_factory=MetricsSettings, metadata=section("Metrics and health"))
    extract: ExtractSettings = field(default_factory=ExtractSettings, metadata=section("The extractor"))
    service: ServiceSettings = field(default_factory=ServiceSettings, metadata=section("The log's service"))
    fleet: FleetSettings = field(default_factory=lambda: FleetSettings(""), metadata=section("The fleet's duties"))
    console: ConsoleSettings = field(default_factory=ConsoleSettings, metadata=section("The console"))
    ignored: tuple[str, ...] = ()
    unknown: tuple[UnknownKey, ...] = ()
    warnings: tuple[str, ...] = ()
    options: tuple[str, ...] = field(default=(), repr=False)
    of_streams: Mapping[str, Mapping[tuple[str, str], Any]] = field(default_factory=dict, repr=False)
    of_targets: Mapping[str, Mapping[tuple[str, str], Any]] = field(default_factory=dict, repr=False)
    target_name: str = ""
