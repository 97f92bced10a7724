"""Processor time and peak memory of processes by kind, read off the kernel. Linux only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

Cpu = dict[str, float]


def cpu_of(kinds: Mapping[str, Sequence[psutil.Process]]) -> Cpu:
    """Returns the seconds of processor time of each kind so far; what their ended children used counts too."""
    return {kind: sum(map(_seconds, processes)) for kind, processes in kinds.items()}


def peak_mb_of(kinds: Mapping[str, Sequence[psutil.Process]]) -> dict[str, float]:
    """Returns the peak resident memory of each kind: the sum over its processes."""
    return {kind: round(sum(map(_peak_mb, processes)), 1) for kind, processes in kinds.items()}


def wakeups_of(kinds: Mapping[str, Sequence[psutil.Process]]) -> dict[str, int]:
    """Returns how often the threads of each kind have begun to wait so far: each time somebody wakes them."""
    return {kind: sum(map(_waits, processes)) for kind, processes in kinds.items()}


def pipeline(daemon: int, job: int, stream: int, store: int) -> dict[str, list[psutil.Process]]:
    """Returns the processes of a pipeline by kind, given those that the benchmark started."""
    below = psutil.Process(job).children(recursive=True)
    java = [process for process in below if process.name() == "java"]
    return {
        "daemon": [psutil.Process(daemon)],
        "record processors": psutil.Process(daemon).children(recursive=True),
        "log store": [psutil.Process(store)],
        "stream": [psutil.Process(stream)],
        "apply driver": [psutil.Process(job)],
        "Spark's JVM": java,
        "Spark's Python workers": [process for process in below if process not in java],
    }


def postgres_tree(folder: Path) -> list[psutil.Process]:
    """Returns the processes of the server whose data are in ``folder``."""
    server = psutil.Process(int((folder / "postmaster.pid").read_text().partition("\n")[0]))
    return [server, *server.children(recursive=True)]


def _seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def _waits(process: psutil.Process) -> int:
    found = 0
    for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
        try:
            text = status.read_text()
        except OSError:  # the thread has ended
            continue
        found += int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return found


def _peak_mb(process: psutil.Process) -> float:
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return 0.0
    found = status.partition("VmHWM:")[2].split()
    return int(found[0]) / 1024 if found else 0.0
