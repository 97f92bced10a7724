"""KCL's keys for the record processors and for metrics."""

from __future__ import annotations

from kainite.settings.keys.key import Key
from kainite.settings.kinds.values import choice, command, members, millis, seconds, whole
from kainite.settings.sections.metrics import MetricsLevel

_CHILD = (
    Key("executableName", "child", "command", command(), "The record processor's command line.", required=True),
    Key(
        "timeoutInSeconds",
        "child",
        "reply_timeout",
        seconds(1),
        "Longest wait for a child's next message.",
        default="no limit",
    ),
    Key(
        "shutdownGraceMillis",
        "child",
        "shutdown_grace",
        millis(0, 3_600_000),
        "Time that children have to answer shutdownRequested when the daemon ends (KCL's default is 0: none).",
    ),
    Key(
        "taskBackoffTimeMillis",
        "child",
        "restart_backoff",
        millis(0, 3_600_000),
        "Wait before a failed child is started again; doubles with each failure in a row.",
    ),
    Key(
        "logWarningForTaskAfterMillis",
        "child",
        "warn_after",
        millis(1, 86_400_000),
        "A call of a child that takes longer is logged.",
        default="off",
    ),
)

_METRICS = (
    Key(
        "metricsLevel",
        "metrics",
        "level",
        choice(MetricsLevel),
        "What is published to CloudWatch.",
        default="`SUMMARY`; `NONE` where `kinesisEndpoint` is set and `cloudWatchEndpoint` is not",
    ),
    Key(
        "metricsBufferTimeMillis",
        "metrics",
        "buffer_time",
        millis(100, 3_600_000),
        "How long figures are gathered before they are published.",
    ),
    Key(
        "metricsMaxQueueSize",
        "metrics",
        "queue_size",
        whole(1, 10_000_000),
        "Most figures that wait to be published.",
    ),
    Key(
        "metricsEnabledDimensions",
        "metrics",
        "dimensions",
        members("ALL", "Operation", "ShardId", "WorkerIdentifier"),
        "CloudWatch dimensions that figures are told apart by.",
    ),
)

KEYS: tuple[Key, ...] = _CHILD + _METRICS
