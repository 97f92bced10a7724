"""Tells the processor time that processes have taken, those that they have waited for included."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import psutil


def processor_seconds(processes: Iterable[psutil.Process]) -> float:
    """Returns the user and system time of processes with all below them."""
    return sum(_of(one) for each in processes for one in (each, *each.children(recursive=True)))


def _of(process: psutil.Process) -> float:
    with suppress(psutil.Error):  # one that ends meanwhile
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0
