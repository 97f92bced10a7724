"""Kainite's own keys of the worker: calls of AWS, reading ahead, children, metrics and health checks."""

from __future__ import annotations

from kainite.settings.keys.key import Key
from kainite.settings.kinds.values import choice, http_url, millis, text, whole
from kainite.settings.sections.child import ChildProtocol

AWS_KEYS: tuple[Key, ...] = (
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

WORKER_KEYS: tuple[Key, ...] = (
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
        "The protocol of the children: KCL's protocol of today, its first form, or markers.",
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
        "A batch that broke its child so often in a row is reported as poison.",
    ),
)

METRICS_KEYS: tuple[Key, ...] = (
    Key(
        "metricsPort",
        "metrics",
        "port",
        whole(0, 65_535),
        "Port for Prometheus (`/metrics`) and for health checks; 0 takes any free one.",
        default="none is opened",
    ),
    Key("metricsHost", "metrics", "host", text("a host name or address"), "Address that `metricsPort` is opened on."),
    Key(
        "hungAfterMillis",
        "metrics",
        "hung_after",
        millis(100, 86_400_000),
        "A child that has a call and says nothing for so long counts as hung in health checks.",
    ),
)
