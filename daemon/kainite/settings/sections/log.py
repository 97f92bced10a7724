"""The section for the serialization log."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kainite.settings.assignment import NO_TARGETS, TableAssignment
from kainite.settings.key import Reload, own, own_key
from kainite.settings.kinds.audit_trail import S3Folder, folder_or_s3
from kainite.settings.kinds.values import TABLE_NAME, flag, millis, text, whole


def heartbeat_of(lease: float) -> float:
    """Returns how often an owner with this lease renews its heartbeat: two may be lost before the lease is over."""
    return 0.3 * lease


def poll_of(lease: float) -> float:
    """Returns how often an owner with this lease looks for outcomes and requests, which costs three reads each time.

    Who can wait longer for another owner can wait longer for an outcome too; but a command that asks for something
    waits for this as well, so it is a second at most.
    """
    return min(lease / 40, 1.0)


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
    # The name under which this worker owns the log partition: its `workerId`.
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
    # How often the owner renews its heartbeat. Follows from the lease: heartbeat_of.
    heartbeat: float = 3.0
    # How long appends are gathered before they are written together. An owner of units that come one by one so writes
    # 50 batches a second, a twentieth of what one key of the table takes, and a unit waits for 10 ms on average.
    put_interval: float = 0.02
    # The bytes of a full batch. It must fit into an item of DynamoDB, which has 400 KB at most, with its keys and the
    # index of its entries.
    batch_bytes: int = 256 * 1024
    # The most bytes that wait to become durable: less than a minute of what one key of the table takes. Beyond it
    # reading stops, which a longer queue would only delay.
    queue_bytes: int = 64 * 1024 * 1024
    # The most bytes of emitted lines in calls that are not in the log yet, all shards together. One call may emit so
    # much, so with less all shards would take turns for a single call.
    emit_bytes: int = 256 * 1024 * 1024
    backlog_units: int = own(
        "logBacklogUnits",
        whole(1_000, unit="units"),
        Reload.RESTART,
        "Reading stops while so many units wait to be applied; what is not read stays in the stream for its retention. "
        "While so many are being collected, shards that are ahead of others wait.",
        default=200_000,
    )
    backlog_bytes: int = own(
        "logBacklogBytes",
        whole(1_048_576, unit="bytes"),
        Reload.RESTART,
        "Reading stops while the units that wait to be applied take about so much of the daemon's memory; shards that "
        "are ahead of others wait while the units that are being collected do.",
        default=512 * 1024 * 1024,
    )
    # How often the owner looks for outcomes and requests. Follows from the lease: poll_of.
    poll: float = 0.25
    # The entries between two snapshots. The next owner reads about so many before it appends; more snapshots would
    # write the backlog more often.
    snapshot_entries: int = 20_000
    stripes: int = own(
        "logStripes",
        whole(1, 64, unit="keys"),
        Reload.RESTART,
        "Over how many keys of the table the log is spread: each takes 1,000 write units a second. A log that was "
        "spread once stays as it is.",
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
    # The targets and their tables, where `target.NAME` names several.
    targets: TableAssignment = NO_TARGETS

    @property
    def name(self) -> str:
        """Returns the name of the log partition among all logs."""
        return f"{self.table}/{self.partition}"

    @property
    def collected(self) -> str:
        """Returns the name of the log into which units of work are collected; empty without units of work."""
        return self.name if self.enabled else ""
