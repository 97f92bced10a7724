"""The paths of the HTTP endpoint that every process of Kainite may serve (docs/metrics.md)."""

from __future__ import annotations

from typing import Final

LIVE: Final = "/live"
READY: Final = "/ready"
HEALTH: Final = "/health"
METRICS: Final = "/metrics"
STDERR: Final = "/stderr"
