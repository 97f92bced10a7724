"""The section for the fleet's duties: what runs exactly once somewhere, and this worker's part in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kainite.settings.key import Reload, own, own_key
from kainite.settings.kinds.values import (
    TABLE_NAME,
    command_lines,
    decimal,
    flag,
    members,
    millis,
    names,
    path,
    text,
    whole,
)


def ping_of(timeout: float) -> float:
    """Returns how often a leader renews its lead: so often that one lost ping does not end it."""
    return timeout / 2


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """The fleet's table and times, the duties that are declared, and what this worker offers."""

    table: str = field(
        metadata=own_key(
            "fleetTableName",
            TABLE_NAME,
            Reload.RESTART,
            "The fleet's coordination table.",
            otherwise="applicationName-Fleet",
        )
    )
    enabled: bool = own(
        "fleet",
        flag(),
        Reload.RESTART,
        "Whether this worker takes duties beside its shards (docs/fleet.md).",
        default=False,
    )
    duties: tuple[str, ...] = own(
        "fleetDuties",
        members("log", "extract", "apply", "console", "verify"),
        Reload.RESTART,
        "Duties with their defaults, each once somewhere in the fleet.",
        default=(),
        otherwise="none",
    )
    duties_file: Path | None = own(
        "fleetDutiesFile",
        path(),
        Reload.RESTART,
        "A TOML file that declares further duties, a table for each.",
        default=None,
        otherwise="none",
    )
    commands: tuple[str, ...] = own(
        "fleetCommands",
        command_lines(),
        Reload.RESTART,
        "Command lines that duties which this host's files do not declare may run here (`kainite fleet add`).",
        default=(),
        otherwise="none",
    )
    aws_profile: str | None = own(
        "fleetAwsProfile",
        text("a profile of AWS's configuration files, or none"),
        Reload.RESTART,
        "The profile whose AWS credentials duties of the kind program find; `none`: they find no credentials.",
        default=None,
        otherwise="the daemon's credentials",
    )
    labels: tuple[str, ...] = own(
        "fleetLabels", names(), Reload.RESTART, "What duties may prefer this worker for.", default=(), otherwise="none"
    )
    capacity: float | None = own(
        "fleetCapacity",
        decimal(),
        Reload.RESTART,
        "The most weight of duties that this worker is given.",
        default=None,
        otherwise="no limit",
    )
    dormant: str | None = own(
        "fleetDormant",
        text("a cron expression of five fields, such as `* 22-6 * * *`", r"\S+( +\S+){4}"),
        Reload.RESTART,
        "The minutes, by this host's clock, in which this worker is to have no duties.",
        default=None,
        otherwise="never",
    )
    # How often the leader renews its lead and each worker looks; the others ping every second time. Follows from the
    # time-out: ping_of.
    ping: float = 3.0
    timeout: float = own(
        "fleetPingTimeoutMillis",
        millis(100, 3_600_000),
        Reload.RESTART,
        "A leader that was silent for so long may be replaced; a worker is dead after twice that. At least two pings.",
        default=6.0,
    )
    # The time between two rebalancings. A move stops a program that runs well, so the leader looks rarely whether one
    # is worthwhile. It looks at once when `kainite fleet rebalance` asks.
    rebalance: float = 3_600.0
    history_days: int = own(
        "fleetHistoryDays",
        whole(1, 3_650, "days"),
        Reload.RESTART,
        "How long the histories of workers, duties and leaders are kept.",
        default=30,
    )
