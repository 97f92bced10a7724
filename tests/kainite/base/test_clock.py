from __future__ import annotations

import time

from kainite.base.clock import boot_seconds, epoch_ms


def test_the_boot_clock_counts_the_time_asleep_and_never_runs_backwards() -> None:
    readings = [boot_seconds() for _ in range(100)]
    assert readings == sorted(readings)
    # CLOCK_MONOTONIC leaves out the time that the host was suspended.
    assert readings[-1] >= time.clock_gettime(time.CLOCK_MONOTONIC) - 1


def test_the_epoch_is_read_in_milliseconds() -> None:
    before = time.time()
    now = epoch_ms()
    assert before * 1000 - 1 <= now <= time.time() * 1000 + 1
