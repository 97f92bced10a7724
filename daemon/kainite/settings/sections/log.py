"""The section for the serialization log."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kainite.settings.key import Reload, own, own_key
from kainite.settings.kinds.audit_trail import S3Folder, folder_or_s3
from kainite.settings.kinds.values import TABLE_NAME, flag, millis, text, whole


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The serialization log's table, and how its owner writes. Without ``enabled`` the daemon is a plain KCL worker."""

    table: str = field(
        metadata=own_key(
            "logTableName",
            TABLE_NAME,
            Reload.RESTART,
            "The serialization log's table.",
            otherwise="applicationName-log",
        )
    )
    owner: str
    enabled: bool = own(
        "unitsOfWork",
        flag(),
        Reload.RESTART,
        "Whether what children emit goes to the serialization log.",
        default=False,
    )
    partition: str = own(
        "logPartition",
        text("letters, digits, `_`, `.` and `-`", r"[A-Za-z0-9_.-]{1,64}"),
        Reload.RESTART,
        "The log partition that units go to.",
        default="0",
    )
    lease: float = own(
        "logLeaseMillis",
        millis(200, 3_600_000),
        Reload.RESTART,
        "A log owner that was silent for so long may be replaced.",
        default=10.0,
    )
    heartbeat: float = own(
        "logHeartbeatMillis",
        millis(50, 3_600_000),
        Reload.RESTART,
        "How often the owner renews its heartbeat.",
        default=3.0,
    )
    put_interval: float = own(
        "logPutIntervalMillis",
        millis(0, 10_000),
        Reload.RESTART,
        "How long appends are gathered before they are written together.",
        default=0.02,
    )
    batch_bytes: int = own(
        "logBatchBytes", whole(4_096, 16_777_216, "bytes"), Reload.RESTART, "Size of a full batch.", default=256 * 1024
    )
    queue_bytes: int = own(
        "logQueueBytes",
        whole(65_536, unit="bytes"),
        Reload.RESTART,
        "Most bytes that wait to become durable; reading stops at this limit (back-pressure).",
        default=64 * 1024 * 1024,
    )
    emit_bytes: int = own(
        "emitBytes",
        whole(65_536, unit="bytes"),
        Reload.RESTART,
        "Most bytes of emitted lines in calls that are not in the log yet, all shards together; one shard at a time "
        "may exceed it, by one call.",
        default=256 * 1024 * 1024,
    )
    backlog_units: int = own(
        "logBacklogUnits",
        whole(1_000, unit="units"),
        Reload.RESTART,
        "Reading stops while so many units wait to be applied; what is not read stays in the stream for its retention.",
        default=200_000,
    )
    backlog_bytes: int = own(
        "logBacklogBytes",
        whole(1_048_576, unit="bytes"),
        Reload.RESTART,
        "Reading stops while the units that wait to be applied take about so much of the daemon's memory.",
        default=512 * 1024 * 1024,
    )
    poll: float = own(
        "logPollMillis",
        millis(10, 60_000),
        Reload.RESTART,
        "How often outcomes and requests are looked for.",
        default=0.25,
    )
    snapshot_entries: int = own(
        "logSnapshotEntries",
        whole(10),
        Reload.RESTART,
        "Entries between two snapshots; a restart reads at most about as many.",
        default=20_000,
    )
    stripes: int = own(
        "logStripes",
        whole(1, 64, unit="keys"),
        Reload.RESTART,
        "Over how many keys of the table the log is spread: each takes 1,000 write units a second. A log that was "
        "spread once stays as it is, and no release before this setting can use it.",
        default=1,
    )
    audit_trail: Path | S3Folder | None = own(
        "auditTrail",
        folder_or_s3(),
        Reload.RESTART,
        "Where resolved units are written before they leave the log: a folder, with a file a day, or a bucket.",
        default=None,
        otherwise="none",
    )
