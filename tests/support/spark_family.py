"""The processes of a command: the driver, its JVM where it has one, and the Python processes that carry out tasks."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

import psutil

from kainite_spark.driver import item_process
from kainite_spark.executor import worker_daemon


def is_worker(process: psutil.Process) -> bool:
    """Returns whether a process carries out tasks, or forks those that do."""
    with suppress(psutil.NoSuchProcess):
        return any(module.__name__ in process.cmdline() for module in (item_process, worker_daemon))
    return False


def is_jvm(process: psutil.Process) -> bool:
    """Returns whether a process is a JVM."""
    with suppress(psutil.NoSuchProcess):
        return process.name() == "java"
    return False


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kills a process with all that it has started and left behind, snapshots' keepers excepted."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
