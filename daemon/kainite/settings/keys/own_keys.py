"""Kainite's own keys: of the worker, the serialization log, the units of work and the apply job."""

from __future__ import annotations

from kainite.base.markers import Batching
from kainite.settings.keys.audit_kind import folder_or_s3
from kainite.settings.keys.extract_keys import EXTRACT_KEYS
from kainite.settings.keys.key import Key
from kainite.settings.keys.marker_kinds import arguments, marker, variables
from kainite.settings.kinds import TABLE_NAME, choice, flag, http_url, millis, names, path, target, text, whole
from kainite.settings.sections import (
    CheckpointAt,
    ChildProtocol,
    Isolation,
    OnBadMessage,
    OnDeath,
    OnFailure,
    UowOrder,
)

_AWS = (
    Key("awsConnectTimeoutMillis", "aws", "connect_timeout", millis(100, 600_000), "Longest wait for a connection."),
    Key("awsReadTimeoutMillis", "aws", "read_timeout", millis(100, 600_000), "Longest wait for an answer of AWS."),
    Key("awsMaxAttempts", "aws", "tries", whole(1, 100), "Most tries of a call of AWS."),
    Key(
        "s3Endpoint",
        "aws",
        "s3_endpoint",
        http_url(),
        "S3, where it is not AWS's. Region and credentials are DynamoDB's: the audit trail belongs to the log.",
    ),
)

_METRICS = (
    Key(
        "metricsPort",
        "metrics",
        "port",
        whole(0, 65_535),
        "Port for Prometheus (`/metrics`) and for health checks; 0 takes any free one.",
        default="none is opened",
    ),
    Key("metricsHost", "metrics", "host", text("a host name or address"), "Address that it listens on."),
    Key(
        "hungAfterMillis",
        "metrics",
        "hung_after",
        millis(100, 86_400_000),
        "A child that took a call and says nothing for so long counts as hung in health checks.",
    ),
)

_WORKER = (
    Key(
        "prefetchBatches",
        "stream",
        "prefetch_batches",
        whole(0, 64),
        "Replies that are read ahead of the child, for each shard.",
    ),
    Key(
        "prefetchBytes",
        "stream",
        "prefetch_bytes",
        whole(1, unit="bytes"),
        "Most bytes of records that are read ahead, for each shard.",
    ),
    Key(
        "prefetchRecords",
        "stream",
        "prefetch_records",
        whole(1),
        "Most records that are read ahead, for each shard.",
    ),
    Key(
        "childProtocol",
        "child",
        "protocol",
        choice(ChildProtocol),
        "What children speak: KCL's protocol of today, its first form, or in markers.",
    ),
    Key(
        "childKillMillis",
        "child",
        "kill_after",
        millis(0, 3_600_000),
        "Time between closing a child's input, TERM and KILL.",
    ),
    Key(
        "childRestartBackoffMaxMillis",
        "child",
        "restart_backoff_max",
        millis(0, 3_600_000),
        "Longest wait before a failed child is started again.",
    ),
    Key(
        "poisonBatchTries",
        "child",
        "poison_tries",
        whole(1, 1_000_000),
        "A batch that broke its child so often in a row is reported as poisonous.",
    ),
)

_MARKERS = (
    Key("markerEom", "markers", "eom", marker(), "Ends a message."),
    Key("markerEop", "markers", "eop", marker(), "Ends an answer of the worker."),
    Key("markerEob", "markers", "eob", marker(), "Ends a batch."),
    Key("markerBnc", "markers", "bnc", marker(), "The worker asks for one more message of a batch."),
    Key(
        "markersBatching",
        "markers",
        "batching",
        choice(Batching),
        "One message at a time, or batches that the worker or the daemon ends.",
    ),
    Key(
        "markersBatchSize",
        "markers",
        "batch_size",
        whole(1, 1_000_000),
        "Most messages in a batch.",
    ),
    Key(
        "markersEnvironment",
        "markers",
        "environment",
        variables(),
        "Variables that tell the worker of it; `{eom}`, `{eop}`, `{eob}`, `{bnc}`, `{batching}`, `{batch_size}`.",
    ),
    Key(
        "markersArguments",
        "markers",
        "arguments",
        arguments(),
        "Arguments that tell the worker of it, after those of the command; the same placeholders.",
        default="none",
    ),
    Key(
        "markersCheckpoint",
        "markers",
        "checkpoint",
        choice(CheckpointAt),
        "When a checkpoint is taken: after each call, each answer, or at most every so often.",
    ),
    Key(
        "markersCheckpointMillis",
        "markers",
        "checkpoint_interval",
        millis(1, 86_400_000),
        "How often, under `markersCheckpoint=interval`.",
    ),
    Key(
        "markersOnDeath",
        "markers",
        "on_death",
        choice(OnDeath),
        "What a worker died on is tried for ever, `poisonBatchTries` times, twice, or once; then skipped and reported.",
    ),
    Key(
        "markersOnBadMessage",
        "markers",
        "on_bad_message",
        choice(OnBadMessage),
        "A record that cannot be sent or that the worker calls bad: report it and go on, or fail until it is mended.",
    ),
)

_LOG = (
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
        "How often the owner says it is there.",
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
        "Most bytes that wait to become durable; reading stops there.",
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
        "Entries between two snapshots; a restart reads at most about so many.",
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

_UOW = (
    Key("uowOrder", "uow", "order", choice(UowOrder), "Units by arrival, or by the source's dense numbers."),
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
        "A unit that is incomplete for so long fails.",
    ),
    Key(
        "uowDedupWindow",
        "uow",
        "dedup_window",
        whole(0, 10_000_000),
        "Names of so many finished units are remembered, to recognise what is delivered again.",
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

_APPLY = (
    Key(
        "target",
        "apply",
        "target",
        target(),
        "The database that units are applied to, or the program that loads them (docs/targets.md).",
        default="none",
    ),
    Key(
        "targetSchemas",
        "apply",
        "schemas",
        names(),
        "The target's schemas; the first one is the default.",
        default="the connection's own",
    ),
    Key("onUowFailure", "apply", "on_failure", choice(OnFailure), "What a failed unit does to later ones."),
    Key("applyInstances", "apply", "instances", whole(0, 10_000), "Job instances; 0 for Spark's parallelism."),
    Key("applyMaxUnits", "apply", "max_units", whole(1, 1_000_000), "Most units in one micro-batch."),
    Key("applyGroupUnits", "apply", "group_units", whole(1, 100_000), "Most units in one target transaction."),
    Key(
        "applyIdleMillis",
        "apply",
        "idle",
        millis(10, 60_000),
        "How often an idle apply job looks for units.",
    ),
    Key(
        "loaderBatching",
        "apply",
        "loader_batching",
        choice(Batching),
        "`target=exec:…`: one unit at a time, or batches that the loader or the apply job ends.",
    ),
    Key("loaderBatchSize", "apply", "loader_batch_size", whole(1, 100_000), "Most units in a loader's batch."),
    Key(
        "loaderTimeoutMillis",
        "apply",
        "loader_timeout",
        millis(100, 86_400_000),
        "A loader that was asked something and is silent for so long is killed.",
    ),
    Key("applyMaster", "apply", "master", text("a Spark master"), "The Spark master."),
    Key(
        "applyLeaseMillis",
        "apply",
        "lease",
        millis(200, 3_600_000),
        "An apply job that was silent for so long may be replaced.",
    ),
)

OWN_KEYS: tuple[Key, ...] = _AWS + _WORKER + _MARKERS + _METRICS + _LOG + _UOW + _APPLY + EXTRACT_KEYS
