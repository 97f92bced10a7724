"""What a benchmark ran on: the commit, the machine, and whether other work kept the machine busy."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

BUSY_SHARE: Final = 0.05
"""The share of the processors' time that other work may take on a machine that counts as quiet."""

LOOK_S: Final = 1.0
"""The seconds for which the processors are watched."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, as far as figures depend on it.

    Attributes:
        processor: the processor's name.
        processors: how many processors this process may use.
        memory_gb: the machine's memory.
        system: the kernel's name and release.
        python: the version of the interpreter.
    """

    processor: str
    processors: int
    memory_gb: float
    system: str
    python: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What was measured.

    Attributes:
        revision: the commit's hash.
        date: the commit's date, ISO 8601.
        changed: whether the working tree differs from the commit.
    """

    revision: str
    date: str
    changed: bool


def this_machine() -> Machine:
    """Returns the machine that this process runs on."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = round(psutil.virtual_memory().total / 1024**3, 1)
    return Machine(_processor(), usable, memory, f"{platform.system()} {platform.release()}", platform.python_version())


def commit_of(root: Path) -> Commit:
    """Returns the commit that is checked out below ``root``.

    Raises:
        subprocess.CalledProcessError: ``root`` is in no git repository.
    """
    revision, date = _git(root, "log", "-1", "--format=%H%n%cI").split("\n")
    return Commit(revision, date, bool(_git(root, "status", "--porcelain", "--untracked-files=no")))


def busy_share() -> float:
    """Returns the share of all processors' time, 0 to 1, that was used while this process waited."""
    return psutil.cpu_percent(interval=LOOK_S) / 100


def warn_unless_quiet() -> None:
    """Says on standard error when other work keeps the machine busy. Each benchmark asks before it measures."""
    if (share := busy_share()) > BUSY_SHARE:
        print(
            f"THE MACHINE IS NOT QUIET: other work takes {share:.0%} of its processors. "
            "Compare no figures of this run with those of another.",
            file=sys.stderr,
        )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
