"""Runs the demo's own child processes: each in a session of its own, with its output in files.

A process has a mark in its environment, which its own children inherit. Stopping a process kills
everything with the mark, so nothing is left even of a process that was killed while it had children.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from kainite.base.errors import DemoError

_MARK = "KAINITE_DEMO_PROCESS"
_SWEEP_LIMIT = 10.0
_TAIL_LINES = 15
_LINE_WIDTH = 400


class Process:
    """A command that can be started, killed and started again.

    ``output`` gets its stdout, ``log`` its stderr; both are appended to.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self.name = name
        stem = name.replace(" ", "-")
        self.output = folder / f"{stem}.out"
        self.log = folder / f"{stem}.log"
        self._command = list(command)
        self._folder = folder
        self._mark = f"{folder}/{name}"
        self._env = {**env, _MARK: self._mark}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.output.open("ab") as output, self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                cwd=self._folder,
                env=self._env,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Returns the process id of a process that was started."""
        assert self._process is not None
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Returns the exit status; None while the process runs."""
        return self._process.poll() if self._process else None

    def check(self) -> None:
        """Raises DemoError if the process has ended."""
        if self.status is not None:
            raise DemoError(f"the {self.name} ended with status {self.status}; the end of its log stands above")

    def wait(self, limit: float) -> None:
        """Waits for a process that ends by itself.

        Raises:
            DemoError: the process failed, or is still running after ``limit`` seconds.
        """
        assert self._process is not None
        try:
            status = self._process.wait(limit)
        except subprocess.TimeoutExpired:
            raise DemoError(f"the {self.name} is still running after {limit:.0f} s") from None
        if status:
            self.check()

    def kill(self) -> None:
        """Kills the process group with SIGKILL; children in other sessions notice by themselves."""
        if self._process is not None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def terminate(self) -> None:
        """Sends SIGTERM."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def stop(self, grace: float) -> None:
        """Sends SIGTERM, after ``grace`` seconds SIGKILL; then kills whatever the process left behind."""
        self.terminate()
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
        self.kill()
        sweep(self._mark)

    def tail(self) -> str:
        """Returns the last lines of the log, under the log's name."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"--- the end of {self.log}:", *(line[:_LINE_WIDTH] for line in lines[-_TAIL_LINES:])])


def sweep(mark: str) -> None:
    """Kills every process with a mark, and waits until they are gone."""
    deadline = time.monotonic() + _SWEEP_LIMIT
    while (left := _marked(mark)) and time.monotonic() < deadline:
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=0.5)


def _marked(mark: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _mark_of(process) == mark]


def _mark_of(process: psutil.Process) -> str | None:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.environ().get(_MARK)
    except (psutil.Error, OSError):
        return None
