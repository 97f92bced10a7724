"""A Spark standalone cluster on loopback, of the jars that PySpark brings along."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pyspark

from support.ports import free_port
from support.waiting import eventually

HOME = Path(pyspark.__file__).parent
LIMIT = 60.0


class SparkCluster:
    """A master, and workers with one core and room for one executor each.

    Args:
        folder: for the processes' output and the executors' work.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._numbers = itertools.count(1)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def start_master(self) -> None:
        """Starts the master, or another one in its place; returns when it takes applications."""
        self._start("master", "Master", "--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0")
        self._await("master", "I have been elected leader")

    def start_workers(self, count: int) -> None:
        """Starts workers; returns when the master has them."""
        names = [f"worker-{next(self._numbers)}" for _ in range(count)]
        for name in names:
            work = self._folder / name
            options = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1100m", "--webui-port", "0", "-d", str(work))
            self._start(name, "Worker", *options, self.master)
        for name in names:
            self._await(name, "Successfully registered with master")

    def kill(self, name: str) -> None:
        """Kills ``master`` or ``worker-N``; a worker's executors end with it."""
        process = self._running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def workers(self) -> list[str]:
        return [name for name in self._running if name != "master"]

    def executors(self) -> list[int]:
        """Returns the process ids of all executors."""
        processes = [psutil.Process(self._running[name].pid) for name in self.workers()]
        children = [child for process in processes for child in process.children(recursive=True)]
        return [child.pid for child in children if "CoarseGrainedExecutorBackend" in _command(child)]

    def close(self) -> None:
        for name in list(self._running):
            self.kill(name)

    def _start(self, name: str, role: str, *arguments: str) -> None:
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{role.lower()}.{role}", *arguments]
        with self._log(name).open("wb") as log:
            self._running[name] = subprocess.Popen(
                command, stdout=log, stderr=log, env=_environment(), start_new_session=True
            )

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _await(self, name: str, text: str) -> None:
        eventually(lambda: re.search(text, self._log(name).read_text(encoding="utf-8")) is not None, LIMIT)


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return ""


def _environment() -> Mapping[str, str]:
    own = {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_OPTS": "",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    # Neither this process's Python nor its AWS credentials: executors elsewhere do not have them.
    hidden = ("PYSPARK", "AWS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)} | own


@contextlib.contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """Gives a cluster that runs."""
    cluster = SparkCluster(folder)
    try:
        cluster.start_master()
        cluster.start_workers(workers)
        yield cluster
    finally:
        cluster.close()
