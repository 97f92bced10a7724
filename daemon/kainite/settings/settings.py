"""All settings of one application: what its file, the environment and the command line say."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kainite.settings.sections.apply import ApplySettings
from kainite.settings.sections.aws import AwsSettings
from kainite.settings.sections.child import ChildSettings
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
        key: as it is spelled.
        nearest: the known key that may have been meant.
    """

    key: str
    nearest: str | None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a file, the environment and the command line say, validated.

    Attributes:
        path: the file; None where all settings came from elsewhere.
        ignored: KCL's keys that are set and have no effect here.
        unknown: keys that neither KCL nor Kainite knows, with the nearest known one.
        warnings: what is allowed and may surprise, a line each.
        options: the command line's settings, for reading the file again.
    """

    path: Path | None
    aws: AwsSettings
    stream: StreamSettings
    leases: LeaseSettings
    child: ChildSettings
    log: LogSettings
    uow: UowSettings
    apply: ApplySettings
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    fleet: FleetSettings = field(default_factory=lambda: FleetSettings(""))
    ignored: tuple[str, ...] = ()
    unknown: tuple[UnknownKey, ...] = ()
    warnings: tuple[str, ...] = ()
    options: tuple[str, ...] = field(default=(), repr=False)
