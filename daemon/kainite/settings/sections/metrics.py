"""The section for metrics and health checks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MetricsLevel(StrEnum):
    """The metrics that are published to CloudWatch."""

    NONE = "NONE"
    SUMMARY = "SUMMARY"
    DETAILED = "DETAILED"


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """The settings of publishing the worker's metrics.

    Attributes:
        level: what is published to CloudWatch; None: SUMMARY, or NONE where a double of Kinesis is read.
        buffer_time: how long figures are gathered before they are published, seconds.
        queue_size: most figures that wait to be published.
        dimensions: the CloudWatch dimensions that figures are told apart by.
        port: the port for Prometheus and health checks; 0: any free one; None: none is opened.
        host: the address that the port is opened on.
        hung_after: a child that has a call and says nothing for so long counts as hung, seconds.
    """

    level: MetricsLevel | None = None
    buffer_time: float = 10.0
    queue_size: int = 10_000
    dimensions: tuple[str, ...] = ("ALL",)
    port: int | None = None
    host: str = "127.0.0.1"
    hung_after: float = 300.0
