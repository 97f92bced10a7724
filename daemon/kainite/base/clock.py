"""The clocks that leases are measured by."""

from __future__ import annotations

import time


def boot_seconds() -> float:
    """Returns the seconds since boot, time asleep included: a host that was suspended sees its lease expired."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def epoch_ms() -> int:
    """Returns the milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
