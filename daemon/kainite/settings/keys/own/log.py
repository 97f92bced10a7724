"""Kainite's own keys of the serialization log and of units of work."""

from __future__ import annotations

from kainite.settings.keys.key import Key
from kainite.settings.kinds.audit_trail import folder_or_s3
from kainite.settings.kinds.values import TABLE_NAME, choice, flag, millis, path, text, whole
from kainite.settings.sections.uow import Isolation, UowEnd, UowOrder

LOG_KEYS: tuple[Key, ...] = (
    Key("unitsOfWork", "log", "enabled", flag(), "Whether what children emit goes to the serialization log."),
    Key(
        "logTableName",
        "log",
        "table",
        TABLE_NAME,
        "The serialization log's table.",
        default="applicationName-log",
    ),
    Key(
        "logPartition",
        "log",
        "partition",
        text("letters, digits, `_`, `.` and `-`", r"[A-Za-z0-9_.-]{1,64}"),
        "The log partition that units go to.",
    ),
    Key(
        "logLeaseMillis",
        "log",
        "lease",
        millis(200, 3_600_000),
        "A log owner that was silent for so long may be replaced.",
    ),
    Key(
        "logHeartbeatMillis",
        "log",
        "heartbeat",
        millis(50, 3_600_000),
        "How often the owner renews its heartbeat.",
    ),
    Key(
        "logPutIntervalMillis",
        "log",
        "put_interval",
        millis(0, 10_000),
        "How long appends are gathered before they are written together.",
    ),
    Key("logBatchBytes", "log", "batch_bytes", whole(4_096, 16_777_216, "bytes"), "Size of a full batch."),
    Key(
        "logQueueBytes",
        "log",
        "queue_bytes",
        whole(65_536, unit="bytes"),
        "Most bytes that wait to become durable; reading stops at this limit (back-pressure).",
    ),
    Key(
        "emitBytes",
        "log",
        "emit_bytes",
        whole(65_536, unit="bytes"),
        "Most bytes of emitted lines in calls that are not in the log yet, all shards together; one shard at a time "
        "may exceed it, by one call.",
    ),
    Key(
        "logBacklogUnits",
        "log",
        "backlog_units",
        whole(1_000, unit="units"),
        "Reading stops while so many units wait to be applied; what is not read stays in the stream for its retention.",
    ),
    Key(
        "logBacklogBytes",
        "log",
        "backlog_bytes",
        whole(1_048_576, unit="bytes"),
        "Reading stops while the units that wait to be applied take about so much of the daemon's memory.",
    ),
    Key(
        "logPollMillis",
        "log",
        "poll",
        millis(10, 60_000),
        "How often outcomes and requests are looked for.",
    ),
    Key(
        "logSnapshotEntries",
        "log",
        "snapshot_entries",
        whole(10),
        "Entries between two snapshots; a restart reads at most about as many.",
    ),
    Key(
        "logStripes",
        "log",
        "stripes",
        whole(1, 64, unit="keys"),
        "Over how many keys of the table the log is spread: each takes 1,000 write units a second. A log that was "
        "spread once stays as it is.",
    ),
    Key(
        "auditTrail",
        "log",
        "audit_trail",
        folder_or_s3(),
        "Where resolved units are written before they leave the log: a folder, with a file a day, or a bucket.",
        default="none",
    ),
)

UOW_KEYS: tuple[Key, ...] = (
    Key(
        "uowOrder",
        "uow",
        "order",
        choice(UowOrder),
        "Units by arrival, by the source's dense numbers, or (with `uowEnd=watermark`) by their commit times.",
    ),
    Key(
        "uowEnd",
        "uow",
        "end",
        choice(UowEnd),
        "What tells that a unit is complete: `marker`, an end that the record processor emits, with the number of "
        "deltas; `watermark`, for sources that do not say where a transaction ends: every shard has been read past the "
        "unit's commit time (`time` of its deltas) and its last record, by `uowGraceMillis`.",
    ),
    Key(
        "uowGraceMillis",
        "uow",
        "grace",
        millis(0, 3_600_000),
        "With `uowEnd=watermark`: how long after its transaction's commit, and after the transaction's record before "
        "it, a record may arrive in the stream. One that takes longer may be late: it fails visibly, as a unit of its "
        "own.",
    ),
    Key(
        "uowIsolation",
        "uow",
        "isolation",
        choice(Isolation),
        "Whether units that conflict are applied in log order.",
    ),
    Key("uowFirstNumber", "uow", "first_number", whole(0), "The first number under `uowOrder=dense`."),
    Key(
        "uowTimeoutMillis",
        "uow",
        "timeout",
        millis(100, 604_800_000),
        "A unit that is incomplete for so long, while all shards are read near their tips, fails.",
    ),
    Key(
        "uowDedupWindow",
        "uow",
        "dedup_window",
        whole(0, 100_000_000, unit="units"),
        "Names of at least so many dispatched units are remembered, to recognise a unit that is sent again; each takes "
        "about 25 bytes of memory.",
    ),
    Key(
        "catalogueFile",
        "uow",
        "catalogue_file",
        path(),
        "The target's tables, as `kainite precedence --write` stores them; a shard host then needs no database.",
        default="read from the target",
    ),
    Key(
        "precedenceFile",
        "uow",
        "precedence_file",
        path(),
        "Pairs of parent and child tables, where the target declares no foreign keys.",
        default="none",
    ),
)
