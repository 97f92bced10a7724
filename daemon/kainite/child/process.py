"""A child process: started, spoken to, watched, and ended without a trace.

Obligations kept here, whatever the child does:

* It runs in a process group of its own, so a Ctrl-C at the terminal reaches the daemon alone.
* Writing to it and reading from it never wait for each other, so no order of the two can lock up.
* Its end is noticed at once, also while nothing is asked of it: :attr:`ChildProcess.broken`. A pidfd
  tells; what it wrote before it ended is still read.
* When it has ended, its whole group is killed before its process id is given back to the system: nothing
  of it runs on, and no other process can be hit by mistake.
* Its standard error goes to the log line by line, once, under the shard's name; lines on its
  standard output that are no messages likewise. Both are cut at a length.

Linux only: pidfds and the size of pipes are Linux's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import IO

from kainite.child.dialect import ActionDone, Event, ProtocolViolation, Turn
from kainite.child.dialects import dialect_of
from kainite.child.lines import Line, LineBuffer
from kainite.child.messages import CheckpointRequested, Emitted, SkippedLine
from kainite.child.pipes import PipeReader, PipeWriter, enlarge
from kainite.errors import ChildError, ChildExitedError, ChildProtocolError, ChildTimeoutError
from kainite.logs import event
from kainite.settings import ChildSettings

SHARD_VARIABLE = "KCL_SHARD_ID"
LOG_LINE = 8_000
STDERR_KEPT = 20
HELD_LIMIT = 2**20  # bytes of unread lines at which reading the child's output pauses
END_PATIENCE = 1.0  # seconds between a closed pipe and taking the child for broken: its exit tells more

logger = logging.getLogger(__name__)


class ChildProcess:
    """One child process for one shard, from :meth:`start` to :meth:`close`.

    Attributes:
        dialect: what may be said next; its methods make the requests for :meth:`perform`.
        broken: done as soon as the child cannot go on; its result says why.
        stderr_tail: the last lines of its standard error.
    """

    def __init__(self, process: subprocess.Popen[bytes], shard_id: str, settings: ChildSettings) -> None:
        self.dialect = dialect_of(settings.protocol)
        self.broken: asyncio.Future[ChildError] = asyncio.get_running_loop().create_future()
        self.stderr_tail: deque[str] = deque(maxlen=STDERR_KEPT)
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._process = process
        self._shard = shard_id
        self._settings = settings
        self._news = asyncio.Event()
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
    def start(cls, shard_id: str, settings: ChildSettings) -> ChildProcess:
        """Start the settings' command with ``KCL_SHARD_ID`` in its environment.

        Raises:
            ChildExitedError: there is no such program, or it cannot be run.
        """
        try:
            process = subprocess.Popen(
                settings.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, SHARD_VARIABLE: shard_id},
                start_new_session=True,
            )
        except OSError as error:
            raise ChildExitedError(
                f"cannot start {settings.command[0]!r} for {shard_id}: {error.strerror}; see executableName"
            ) from error
        event(logger, logging.INFO, "child started", shard=shard_id, pid=process.pid)
        return cls(process, shard_id, settings)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def silent(self) -> float | None:
        """Seconds since it was asked, or last wrote something; None when it is not its turn."""
        return self._loop.time() - self._heard_at if self.dialect.turn is Turn.THEIRS else None

    async def perform(
        self,
        request: bytes,
        *,
        answer: Callable[[CheckpointRequested], Awaitable[str | None]],
        emitted: Callable[[bytes], None],
    ) -> None:
        """Send one request of the dialect and serve the child until its status.

        Args:
            request: what a starting method of :attr:`dialect` returned.
            answer: decides a checkpoint request: None, or the error's name.
            emitted: takes each emit line.

        Raises:
            ChildTimeoutError: no message for ``reply_timeout`` seconds.
            ChildProtocolError: it wrote what the dialect forbids.
            ChildExitedError: it ended, or closed a pipe.
        """
        self._heard_at = self._loop.time()
        self._stdin.write(request)
        while True:
            match await self._next_event():
                case ActionDone():
                    return
                case CheckpointRequested() as wanted:
                    self._stdin.write(self.dialect.reply(wanted, await answer(wanted)))
                    self._heard_at = self._loop.time()
                case Emitted(line):
                    emitted(line)
                case ProtocolViolation(reason):
                    raise ChildProtocolError(f"child {self.pid} of {self._shard} {reason}")

    async def close(self, grace: float) -> None:
        """End the child: close its input, wait ``grace`` seconds, TERM, wait ``kill_after``, KILL.

        Returns when it is gone; may be called again. When cancelled, kills it at once.
        """
        self._closing = True
        self._stdin.close()
        self._stdout.resume()
        try:
            if not await self._wait_gone(grace):
                self._signal_group(signal.SIGTERM)
                if not await self._wait_gone(self._settings.kill_after):
                    event(logger, logging.WARNING, "child killed", shard=self._shard, pid=self.pid)
                    self._signal_group(signal.SIGKILL)
                    await self._gone.wait()
        except asyncio.CancelledError:
            self.kill()
            raise

    def kill(self) -> None:
        """Kill the child's whole group and wait for it, blocking: for when nobody can be awaited any more."""
        if not self._gone.is_set():
            self._closing = True
            self._signal_group(signal.SIGKILL)
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._on_exit()

    async def _next_event(self) -> Event:
        try:
            async with asyncio.timeout(self._settings.reply_timeout):
                while (happened := self._take_event()) is None:
                    if self.broken.done():
                        raise self.broken.result()
                    self._news.clear()
                    await self._news.wait()
                return happened
        except TimeoutError:
            seconds = self._settings.reply_timeout
            raise ChildTimeoutError(
                f"child {self.pid} of {self._shard} did not answer {self.dialect.action} in {seconds:g} s"
            ) from None

    def _take_event(self) -> Event | None:
        """The next event but for skipped lines, which are logged."""
        while isinstance(happened := self.dialect.next_event(), SkippedLine):
            text = happened.text.strip()[:LOG_LINE]
            event(logger, logging.INFO, "line on stdout skipped", shard=self._shard, pid=self.pid, line=text)
        if self.dialect.held < HELD_LIMIT:
            self._stdout.resume()
        return happened

    def _on_output(self, data: bytes) -> None:
        if self._closing:
            return  # KCL drains it too: a child that writes on must be able to see its input's end
        self._heard_at = self._loop.time()
        self.dialect.receive(data)
        if self.dialect.turn is not Turn.THEIRS:
            self._skim()
        if self.dialect.held >= HELD_LIMIT:
            self._stdout.pause()
        self._news.set()

    def _skim(self) -> None:
        """Log the junk that comes while nothing is asked of the child; nothing else comes out then."""
        match self._take_event():
            case ProtocolViolation(reason):
                self._break(ChildProtocolError(f"child {self.pid} of {self._shard} {reason}"))

    def _on_output_end(self) -> None:
        self.dialect.receive_eof()
        self._suspect("closed its standard output")

    def _on_error_output(self, data: bytes) -> None:
        self._log_stderr(self._stderr_lines.feed(data))

    def _on_error_output_end(self) -> None:
        self._log_stderr(self._stderr_lines.end())

    def _log_stderr(self, lines: list[Line]) -> None:
        for line in lines:
            text = line.text.decode("utf-8", "replace") + ("…" if line.cut else "")
            self.stderr_tail.append(text)
            event(logger, logging.INFO, "child stderr", shard=self._shard, pid=self.pid, line=text)

    def _suspect(self, what: str) -> None:
        error = ChildExitedError(f"child {self.pid} of {self._shard} {what}")
        self._suspicion = self._loop.call_later(END_PATIENCE, self._break, error)

    def _break(self, error: ChildError) -> None:
        if not self.broken.done():
            self.broken.set_result(error)
        self._news.set()

    def _on_exit(self) -> None:
        """The child is a zombie now: end its group, read what it left, reap it."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._signal_group(signal.SIGKILL)
        self._stdout.drain()
        self._stderr.drain()
        code = self._process.wait()
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()
        self.dialect.receive_eof()
        self._on_error_output_end()
        how = _how_it_ended(code)
        event(logger, logging.INFO, "child ended", shard=self._shard, pid=self.pid, how=how)
        self._gone.set()
        if self._suspicion:
            self._suspicion.cancel()
        self._break(ChildExitedError(f"child {self.pid} of {self._shard} ended with {how}"))

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _wait_gone(self, seconds: float) -> bool:
        # Not wait_for: Python 3.11's forgets a cancellation that comes as the wait ends.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        return self._gone.is_set()

    def __repr__(self) -> str:
        return f"<ChildProcess {self.pid} of {self._shard} {self.dialect!r} broken={self.broken.done()}>"


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None
    assert stdout is not None
    assert stderr is not None
    enlarge(stdin)
    enlarge(stdout)
    return stdin, stdout, stderr


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"status {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"signal {names.get(-code, -code)}"
