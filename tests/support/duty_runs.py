"""Whether the program of a duty runs, as the file that it writes tells, or is gone."""

from __future__ import annotations

from pathlib import Path

import psutil

from support.waiting import until


async def began(file: Path) -> int:
    """Waits until the program runs; returns its process id."""
    await until(lambda: file.exists() and "runs" in file.read_text(), 30)
    return process_in(file)


def process_in(file: Path) -> int:
    """Returns the process id that a program has written."""
    return int(file.read_text().split()[1])


async def gone(pid: int) -> None:
    """Waits until a process is gone."""
    await until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, 30)
