"""A program on three pipes: starts it, watches it, and ends it with its whole process group.

The callers define what is said on the pipes. This module guarantees, whatever the program does:

* The program runs in a process group of its own, so a Ctrl-C at the terminal reaches Kainite alone.
* Writing to the program and reading from it never wait for each other, so the two cannot deadlock.
* A pidfd tells at once that the program has ended, also while nothing is asked of it (:attr:`PipedProcess.broken`).
  What the program wrote before its end is still read.
* After the program's end its whole process group is killed, before its process id returns to the system: no process of
  the group runs on, and no other process is hit by mistake.
* The program's standard error goes to the log line by line, once, under the owner's name; a line of more than
  :data:`LOG_LINE` bytes in pieces: a program may write no line ends at all.

Linux only, because of pidfds and the size of pipes.
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

from kainite.aws.program_environment import program_environment
from kainite.base import open_files
from kainite.base.errors import ChildError, ChildExitedError
from kainite.base.logs import event
from kainite.base.redaction import redacted
from kainite.base.waiting import wait_until_set
from kainite.child.line_buffer import Line, LineBuffer
from kainite.child.pipes import PipeReader, PipeWriter, enlarge

LOG_LINE = 8_000
STDERR_KEPT = 20
END_PATIENCE = 1.0  # seconds after a closed pipe until the child counts as broken: its exit status would tell more

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run.

    Attributes:
        command: the program and its arguments.
        owner: the name for which it runs, in messages and logs, such as a shard's id.
        role: the log's field for ``owner``.
        environment: variables in addition to Kainite's own.
        aws_profile: whose AWS credentials it finds (:func:`kainite.aws.program_environment.program_environment`).
        setting: the settings' key that names the command.
    """

    command: tuple[str, ...]
    owner: str
    role: str = "shard"
    environment: Mapping[str, str] = field(default_factory=dict)
    aws_profile: str | None = None
    setting: str = "executableName"


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks.

    Attributes:
        output: called with each piece of the program's standard output, until :meth:`PipedProcess.close`.
        output_ended: called when the program, or its standard output, has ended; may be called twice.
        news: called when :attr:`PipedProcess.broken` is done.
        error_line: called with each line of the program's standard error, without secrets.
    """

    output: Callable[[bytes], None]
    output_ended: Callable[[], None]
    news: Callable[[], None]
    error_line: Callable[[str], None] = lambda _: None


class PipedProcess:
    """One run of a program, from :meth:`start` to :meth:`close`.

    Attributes:
        broken: done as soon as the program cannot go on; its result says why.
        stderr_tail: the last lines of its standard error, without secrets.
        status: the exit status, negative for a signal; None while the program runs.
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
        self._stderr_lines = LineBuffer(LOG_LINE, in_pieces=True)
        stdin, stdout, stderr = _pipes(process)
        self._stdin = PipeWriter(stdin, lambda: self._suspect("closed its standard input"))
        self._stdout = PipeReader(stdout, self._on_output, self._on_output_end)
        self._stderr = PipeReader(stderr, self._on_error_output, self._on_error_output_end)
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._on_exit)
        self._suspicion: asyncio.TimerHandle | None = None

    @classmethod
    def start(cls, program: Program, hooks: Hooks) -> PipedProcess:
        """Starts the program.

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
                env=program_environment(program.aws_profile) | dict(program.environment),
                start_new_session=True,
            )
        except OSError as error:
            why = open_files.advice_on(error) or f"{error.strerror}; see {program.setting}"
            raise ChildExitedError(f"cannot start {program.command[0]!r} for {program.owner}: {why}") from error
        running = cls(process, program, hooks)
        running.log(logging.INFO, "child started")
        return running

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def title(self) -> str:
        """Returns the name of the process in messages."""
        return f"child {self.pid} of {self._program.owner}"

    def write(self, *pieces: bytes) -> None:
        """Writes to its standard input without waiting."""
        self._stdin.write(*pieces)

    def end_input(self) -> None:
        """Closes its standard input; its output is still read."""
        self._stdin.close()

    def pause(self) -> None:
        """Leaves its output in the pipe: when the pipe is full, the program waits (back-pressure)."""
        self._stdout.pause()

    def resume(self) -> None:
        self._stdout.resume()

    def fail(self, error: ChildError) -> None:
        """Marks the program as broken; the first reason counts."""
        if not self.broken.done():
            self.broken.set_result(error)
        self._hooks.news()

    def log(self, level: int, name: str, how: str | None = None, line: str | None = None) -> None:
        """Logs an event under the owner's name."""
        owner = {self._program.role: self._program.owner}
        event(logger, level, name, **owner, pid=self.pid, how=how, line=line)

    def terminate(self) -> None:
        """Sends SIGTERM; the output that follows is still read."""
        if not self._gone.is_set():
            self._signal_group(signal.SIGTERM)

    def crash(self) -> None:
        """Kills its whole process group without waiting: what follows is what follows a crash."""
        if not self._gone.is_set():
            self._signal_group(signal.SIGKILL)

    async def ends(self, grace: float) -> bool:
        """Closes its input and waits ``grace`` seconds for its end; returns whether it has ended.

        The caller must call :meth:`close` afterwards, also when this is cancelled.
        """
        self._leave()
        return await wait_until_set(self._gone, grace)

    async def close(self, grace: float, kill_after: float) -> None:
        """Ends it: closes its input, waits ``grace`` seconds, sends TERM, waits ``kill_after`` seconds, sends KILL.

        Returns when the process is gone; may be called again. When cancelled, kills the process at once.
        """
        self._leave()
        try:
            if not await wait_until_set(self._gone, grace):
                self._signal_group(signal.SIGTERM)
                if not await wait_until_set(self._gone, kill_after):
                    self.log(logging.WARNING, "child killed")
                    self._signal_group(signal.SIGKILL)
                    await self._gone.wait()
        except asyncio.CancelledError:
            self.kill()
            raise

    def kill(self) -> None:
        """Kills its whole process group and waits, blocking: for when nothing can be awaited any more."""
        if not self._gone.is_set():
            self._closing = True
            self._signal_group(signal.SIGKILL)
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._on_exit()

    def _leave(self) -> None:
        self._closing = True
        self._stdin.close()
        self._stdout.resume()

    def _on_output(self, data: bytes) -> None:
        # The pipe is drained even while closing, as KCL does: a child that still writes must reach its input's end.
        if not self._closing:
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
            # Others show these lines: the fleet's table, the cause of a failed unit, errors.
            text = redacted(line.text.decode("utf-8", "replace")) + ("…" if line.cut else "")
            self.stderr_tail.append(text)
            self.log(logging.INFO, "child stderr", line=text)
            self._hooks.error_line(text)

    def _suspect(self, what: str) -> None:
        self._suspicion = self._loop.call_later(END_PATIENCE, self.fail, ChildExitedError(f"{self.title} {what}"))

    def _on_exit(self) -> None:
        """Cleans up after a process that has just become a zombie: kills its group, reads what it left, reaps it."""
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


def how_it_ended(code: int) -> str:
    """Describes an exit status: ``status 3`` or ``signal SIGKILL``."""
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
