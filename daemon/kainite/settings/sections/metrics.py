"""The section for metrics and health checks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kainite.settings.key import Reload, kcl, own
from kainite.settings.kinds.values import choice, members, millis, text, whole


class MetricsLevel(StrEnum):
    """The metrics that are published to CloudWatch."""

    NONE = "NONE"
    SUMMARY = "SUMMARY"
    DETAILED = "DETAILED"


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """The settings of publishing the worker's metrics."""

    level: MetricsLevel | None = kcl(
        "metricsLevel",
        choice(MetricsLevel),
        Reload.RESTART,
        "What is published to CloudWatch.",
        default=None,
        otherwise="`SUMMARY`; `NONE` where `kinesisEndpoint` is set and `cloudWatchEndpoint` is not",
    )
    buffer_time: float = kcl(
        "metricsBufferTimeMillis",
        millis(100, 3_600_000),
        Reload.RESTART,
        "How long figures are gathered before they are published.",
        default=10.0,
    )
    queue_size: int = kcl(
        "metricsMaxQueueSize",
        whole(1, 10_000_000),
        Reload.RESTART,
        "Most figures that wait to be published.",
        default=10_000,
    )
    dimensions: tuple[str, ...] = kcl(
        "metricsEnabledDimensions",
        members("ALL", "Operation", "ShardId", "WorkerIdentifier"),
        Reload.RESTART,
        "CloudWatch dimensions that figures are told apart by.",
        default=("ALL",),
    )
    port: int | None = own(
        "metricsPort",
        whole(0, 65_535),
        Reload.RESTART,
        "Port for Prometheus (`/metrics`) and for health checks; 0 takes any free one.",
        default=None,
        otherwise="none is opened",
    )
    host: str = own(
        "metricsHost",
        text("a host name or address"),
        Reload.RESTART,
        "Address that `metricsPort` is opened on.",
        default="127.0.0.1",
    )
    hung_after: float = own(
        "hungAfterMillis",
        millis(100, 86_400_000),
        Reload.RESTART,
        "A child that has a call and answers nothing for so long counts as hung in health checks, a shard that does not"
        " get on for another reason as stalled.",
        default=300.0,
    )
