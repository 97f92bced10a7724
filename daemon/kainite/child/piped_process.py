"""A program on three pipes: started, watched, and ended without a trace; what is said on them is others' business.

Obligations kept here, whatever the program does:

* It runs in a process group of its own, so a Ctrl-C at the terminal reaches Kainite alone.
* Writing to it and reading from it never wait for each other, so no order of the two can lock up.
* Its end is noticed at once, also while nothing is asked of it: :attr:`PipedProcess.broken`. A pidfd
  tells; what it wrote before it ended is still read.
* When it has ended, its whole group is killed before its process id is given back to the system: nothing
  of it runs on, and no other process can be hit by mistake.
* Its standard error goes to the log line by line, once, under the name of what it runs for, cut at a length.

Linux only: pidfds and the size of pipes are Linux's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from kainite.base.errors import ChildError, ChildExitedError
from kainite.base.logs import event
from kainite.child.line_buffer import Line, LineBuffer
from kainite.child.pipes import PipeReader, PipeWriter, enlarge

LOG_LINE = 8_000
STDERR_KEPT = 20
END_PATIENCE = 1.0  # seconds between a closed pipe and taking the child for broken: its exit tells more

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Program:
    """What to run.

    Attributes:
        command: the program and its arguments.
        owner: what it runs for, in messages and logs: a shard's name.
        role: the log's field for ``owner``.
        environment: beside Kainite's own.
        setting: the key that names the command.
    """

    command: tuple[str, ...]
    owner: str
    role: str = "shard"
    environment: Mapping[str, str] = field(default_factory=dict)
    setting: str = "executableName"


@dataclass(frozen=True, slots=True)
class Hooks:
    """What is called as things happen.

    Attributes:
        output: with each piece of its standard output, until :meth:`PipedProcess.close`.
        output_ended: when its standard output has ended, or it has; maybe twice.
        news: when :attr:`PipedProcess.broken` is done.
    """

    output: Callable[[bytes], None]
    output_ended: Callable[[], None]
    news: Callable[[], None]


class PipedProcess:
    """One run of a program, from :meth:`start` to :meth:`close`.

    Attributes:
        broken: done as soon as it cannot go on; its result says why.
        stderr_tail: the last lines of its standard error.
        status: what it ended with, negative for a signal; None while it runs.
    """

    def __init__(self, process: subprocess.Popen[bytes], program: Program, hooks: Hooks) -> None:
        self.broken: asyncio.Future[ChildError] = asyncio.get_running_loop().create_future()
        self.stderr_tail: deque[str] = deque(maxlen=STDERR_KEPT)
        self.status: int | None = None
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._program = program
        self._hooks = hooks
        self._gone = asyncio.Event()
        self._closing = False
        self._stderr_lines = LineBuffer(LOG_LINE)
        stdin, stdout, stderr = _pipes(process)
        self._stdin = PipeWriter(stdin, lambda: self._suspect("closed its standard input"))
        self._stdout = PipeReader(stdout, self._on_output, self._on_output_end)
        self._stderr = PipeReader(stderr, self._on_error_output, self._on_error_output_end)
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._on_exit)
        self._suspicion: asyncio.TimerHandle | None = None

    @classmethod
    def start(cls, program: Program, hooks: Hooks) -> PipedProcess:
        """Start it.

        Raises:
            ChildExitedError: there is no such program, or it cannot be run.
        """
        try:
            process = subprocess.Popen(
                program.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, **program.environment},
                start_new_session=True,
            )
        except OSError as error:
            raise ChildExitedError(
                f"cannot start {program.command[0]!r} for {program.owner}: {error.strerror}; see {program.setting}"
            ) from error
        running = cls(process, program, hooks)
        running.log(logging.INFO, "child started")
        return running

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"child {self.pid} of {self._program.owner}"

    def write(self, data: bytes) -> None:
        """Write to its standard input without waiting."""
        self._stdin.write(data)

    def end_input(self) -> None:
        """Close its standard input, and go on listening to it."""
        self._stdin.close()

    def pause(self) -> None:
        """Leave its output in the pipe: when that is full, it waits."""
        self._stdout.pause()

    def resume(self) -> None:
        self._stdout.resume()

    def fail(self, error: ChildError) -> None:
        """Take it for broken; the first reason counts."""
        if not self.broken.done():
            self.broken.set_result(error)
        self._hooks.news()

    def log(self, level: int, name: str, how: str | None = None, line: str | None = None) -> None:
        """Log an event under its owner's name."""
        owner = {self._program.role: self._program.owner}
        event(logger, level, name, **owner, pid=self.pid, how=how, line=line)

    def terminate(self) -> None:
        """Ask it to end, with SIGTERM; what it still writes is heard."""
        if not self._gone.is_set():
            self._signal_group(signal.SIGTERM)

    async def close(self, grace: float, kill_after: float) -> None:
        """End it: close its input, wait ``grace`` seconds, TERM, wait ``kill_after``, KILL.

        Returns when it is gone; may be called again. When cancelled, kills it at once.
        """
        self._closing = True
        self._stdin.close()
        self._stdout.resume()
        try:
            if not await self._wait_gone(grace):
                self._signal_group(signal.SIGTERM)
                if not await self._wait_gone(kill_after):
                    self.log(logging.WARNING, "child killed")
                    self._signal_group(signal.SIGKILL)
                    await self._gone.wait()
        except asyncio.CancelledError:
            self.kill()
            raise

    def kill(self) -> None:
        """Kill its whole group and wait for it, blocking: for when nobody can be awaited any more."""
        if not self._gone.is_set():
            self._closing = True
            self._signal_group(signal.SIGKILL)
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._on_exit()

    def _on_output(self, data: bytes) -> None:
        if not self._closing:  # drained even then, as KCL does: one that writes on must be able to see its input's end
            self._hooks.output(data)

    def _on_output_end(self) -> None:
        self._hooks.output_ended()
        self._suspect("closed its standard output")

    def _on_error_output(self, data: bytes) -> None:
        self._log_stderr(self._stderr_lines.feed(data))

    def _on_error_output_end(self) -> None:
        self._log_stderr(self._stderr_lines.end())

    def _log_stderr(self, lines: list[Line]) -> None:
        for line in lines:
            text = line.text.decode("utf-8", "replace") + ("…" if line.cut else "")
            self.stderr_tail.append(text)
            self.log(logging.INFO, "child stderr", line=text)

    def _suspect(self, what: str) -> None:
        self._suspicion = self._loop.call_later(END_PATIENCE, self.fail, ChildExitedError(f"{self.title} {what}"))

    def _on_exit(self) -> None:
        """It is a zombie now: end its group, read what it left, reap it."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._signal_group(signal.SIGKILL)
        self._stdout.drain()
        self._stderr.drain()
        self.status = self._process.wait()
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()
        self._hooks.output_ended()
        self._on_error_output_end()
        how = how_it_ended(self.status)
        self.log(logging.INFO, "child ended", how=how)
        self._gone.set()
        if self._suspicion:
            self._suspicion.cancel()
        self.fail(ChildExitedError(f"{self.title} ended with {how}"))

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _wait_gone(self, seconds: float) -> bool:
        # Not wait_for: Python 3.11's forgets a cancellation that comes as the wait ends.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        return self._gone.is_set()


def how_it_ended(code: int) -> str:
    """``status 3`` or ``signal SIGKILL``."""
    if code >= 0:
        return f"status {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"signal {names.get(-code, -code)}"


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None
    assert stdout is not None
    assert stderr is not None
    enlarge(stdin)
    enlarge(stdout)
    return stdin, stdout, stderr
