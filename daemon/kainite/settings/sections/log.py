"""The section for the serialization log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kainite.settings.kinds.audit_trail import S3Folder


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The serialization log's table, and how its owner writes. Without ``enabled`` the daemon is a plain KCL worker.

    Attributes:
        table: the log table's name.
        owner: the name under which this worker owns the log partition.
        enabled: whether what children emit goes to the log.
        partition: the log partition.
        lease: an owner that was silent for so long may be replaced, seconds.
        heartbeat: how often the owner renews its heartbeat, seconds.
        put_interval: how long appends are gathered before they are written together, seconds.
        batch_bytes: the size of a full batch, bytes.
        queue_bytes: most bytes that wait to become durable.
        emit_bytes: most bytes that children have emitted in calls that are not in the log yet, all shards together.
        backlog_units: reading stops while so many units wait to be applied.
        backlog_bytes: reading stops while the units that wait to be applied take so much of the owner's memory.
        poll: how often outcomes and requests are looked for, seconds.
        snapshot_entries: log entries between two snapshots.
        stripes: over how many keys of the table the partition's batches are spread, from the next mount on, for good.
        audit_trail: where resolved units are written before they leave the log.
    """

    table: str
    owner: str
    enabled: bool = False
    partition: str = "0"
    lease: float = 10.0
    heartbeat: float = 3.0
    put_interval: float = 0.02
    batch_bytes: int = 256 * 1024
    queue_bytes: int = 64 * 1024 * 1024
    emit_bytes: int = 256 * 1024 * 1024
    backlog_units: int = 200_000
    backlog_bytes: int = 512 * 1024 * 1024
    poll: float = 0.25
    snapshot_entries: int = 20_000
    stripes: int = 1
    audit_trail: Path | S3Folder | None = None
