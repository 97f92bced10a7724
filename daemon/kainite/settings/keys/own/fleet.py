"""Kainite's own keys of the fleet's duties."""

from __future__ import annotations

from kainite.settings.keys.key import Key
from kainite.settings.kinds.values import TABLE_NAME, decimal, flag, members, millis, names, path, text, whole

FLEET_KEYS: tuple[Key, ...] = (
    Key("fleet", "fleet", "enabled", flag(), "Whether this worker takes duties beside its shards (docs/fleet.md)."),
    Key(
        "fleetTableName",
        "fleet",
        "table",
        TABLE_NAME,
        "The fleet's coordination table.",
        default="applicationName-Fleet",
    ),
    Key(
        "fleetDuties",
        "fleet",
        "duties",
        members("log", "extract", "apply"),
        "Duties with their defaults, each once somewhere in the fleet.",
        default="none",
    ),
    Key(
        "fleetDutiesFile",
        "fleet",
        "duties_file",
        path(),
        "A TOML file that declares further duties, a table for each.",
        default="none",
    ),
    Key("fleetLabels", "fleet", "labels", names(), "What duties may prefer this worker for.", default="none"),
    Key(
        "fleetCapacity",
        "fleet",
        "capacity",
        decimal(),
        "The most weight of duties that this worker is given.",
        default="no limit",
    ),
    Key(
        "fleetDormant",
        "fleet",
        "dormant",
        text("a cron expression of five fields, such as `* 22-6 * * *`", r"\S+( +\S+){4}"),
        "The minutes, by this host's clock, in which this worker is to have no duties.",
        default="never",
    ),
    Key(
        "fleetPingMillis",
        "fleet",
        "ping",
        millis(50, 600_000),
        "How often the leader renews its lead and each worker looks; the others ping every second time.",
    ),
    Key(
        "fleetPingTimeoutMillis",
        "fleet",
        "timeout",
        millis(100, 3_600_000),
        "A leader that was silent for so long may be replaced; a worker is dead after twice that. At least two pings.",
    ),
    Key(
        "fleetRebalanceMillis",
        "fleet",
        "rebalance",
        millis(1_000, 604_800_000),
        "How often the leader looks whether moving duties is worthwhile.",
    ),
    Key(
        "fleetHistoryDays",
        "fleet",
        "history_days",
        whole(1, 3_650, "days"),
        "How long the histories of workers, duties and leaders are kept.",
    ),
)
