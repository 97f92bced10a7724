"""A child process that speaks a dialect: sends it a request and serves it until it has answered.

:class:`~kainite.child.piped_process.PipedProcess` runs, watches and ends the process. Lines on its standard output that
are no messages go to the log, as its standard error does.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kainite.base.errors import ChildError, ChildProtocolError, ChildTimeoutError
from kainite.base.shard_key import ShardKey
from kainite.base.time_limit import time_limit
from kainite.child.breather import Breather
from kainite.child.configured_dialect import dialect_of
from kainite.child.events import (
    ActionDone,
    CheckpointRequested,
    Emitted,
    Event,
    ProtocolViolation,
    Rejected,
    Send,
    SkippedLine,
)
from kainite.child.json_lines.misread import why_unreadable
from kainite.child.markers.start_parameters import start_parameters
from kainite.child.piped_process import LOG_LINE, Hooks, PipedProcess, Program
from kainite.child.turns import Turn
from kainite.settings import ChildProtocol, ChildSettings

T = TypeVar("T")

SHARD_VARIABLE = "KCL_SHARD_ID"
STREAM_VARIABLE = "KAINITE_STREAM"
JUNK_KEPT = 20  # lines
HELD_LIMIT = 2**20  # bytes of unread lines at which reading the child's output pauses


class ChildProcess:
    """One child process for one shard, from :meth:`start` to :meth:`close`.

    Attributes:
        dialect: the conversation; its starting methods make the requests for :meth:`send`.
    """

    def __init__(self, program: Program, settings: ChildSettings) -> None:
        self.dialect = dialect_of(settings)
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._working = False  # on an answer of the child, which waits
        self._settings = settings
        self._news = asyncio.Event()
        self._junk: list[str] = []  # the first lines since the last request or message that are no messages
        self._breather = Breather(self._loop.time)
        hooks = Hooks(self._on_output, self.dialect.receive_eof, self._news.set)
        self._process = PipedProcess.start(program, hooks)

    @classmethod
    def start(cls, shard_id: str, settings: ChildSettings) -> ChildProcess:
        """Starts the settings' command with ``KCL_SHARD_ID`` in its environment, and the markers where they are spoken.

        Where an application reads several streams, ``KAINITE_STREAM`` says which one the shard is of.

        Args:
            shard_id: the shard's key.
            settings: the command, and how it is run.

        Raises:
            ChildExitedError: there is no such program, or it cannot be run.
        """
        markers = settings.protocol is ChildProtocol.MARKERS
        arguments, environment = start_parameters(settings.markers) if markers else ((), {})
        program = Program(
            (*settings.command, *arguments),
            shard_id,
            environment={**_shard_variables(shard_id), **environment},
            aws_profile=settings.aws_profile,
        )
        return cls(program, settings)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def broken(self) -> asyncio.Future[ChildError]:
        """Returns a future that is done as soon as the child cannot go on; its result says why."""
        return self._process.broken

    @property
    def stderr_tail(self) -> deque[str]:
        """Returns the last lines of the child's standard error."""
        return self._process.stderr_tail

    @property
    def silent(self) -> float | None:
        """Returns the seconds since the child was asked or last answered; None when it is not the child's turn.

        It is not while an answer of it is worked on. A line that is no message is no answer.
        """
        return self.since_heard if self.dialect.turn is Turn.THEIRS and not self._working else None

    @property
    def since_heard(self) -> float:
        """Returns the seconds since the child was asked or last answered."""
        return self._loop.time() - self._heard_at

    def send(self, *request: bytes) -> None:
        """Sends one request: what a starting method of :attr:`dialect` returned, in one piece or in several.

        The caller must call :meth:`serve` afterwards. The request is not held longer than it takes to write it.
        """
        self._heard_at = self._loop.time()
        self._junk.clear()
        self._process.write(*request)

    async def serve(
        self,
        *,
        answer: Callable[[CheckpointRequested], Awaitable[str | None]],
        emitted: Callable[[bytes], Awaitable[None] | None],
        rejected: Callable[[Rejected], None],
    ) -> None:
        """Serves the child until its status for what was sent.

        Args:
            answer: decides a checkpoint request: returns None, or the error's name.
            emitted: takes each emit line; returns what is to be awaited before the next event, None for nothing.
            rejected: takes records that were not processed.

        Raises:
            ChildTimeoutError: no message came for ``reply_timeout`` seconds.
            ChildProtocolError: the child wrote what the dialect forbids.
            ChildExitedError: the child ended, or closed a pipe.
        """
        while True:
            match await self._next_event():
                case ActionDone():
                    return
                case CheckpointRequested() as wanted:
                    self._junk.clear()
                    self._process.write(self.dialect.reply(wanted, await self._work(answer(wanted))))
                    self._heard_at = self._loop.time()
                case Send(data):
                    self._process.write(data)
                    self._heard_at = self._loop.time()
                case Emitted(line):
                    self._junk.clear()
                    if (taking := emitted(line)) is not None:
                        await self._work(taking)
                        self._breather.taken()
                case Rejected() as records:
                    rejected(records)
                case ProtocolViolation(reason):
                    raise ChildProtocolError(f"{self._process.title} {reason}")

    async def ends(self, grace: float) -> bool:
        """Closes the child's input and waits ``grace`` seconds for its end; returns whether it has ended.

        The caller must call :meth:`close` afterwards, also when this is cancelled: a child that outlives its grace gets
        TERM first.
        """
        return await self._process.ends(grace)

    async def close(self, grace: float) -> None:
        """Ends the child: closes its input, waits ``grace`` seconds, sends TERM, waits ``kill_after``, sends KILL.

        Returns when the child is gone; may be called again. When cancelled, kills the child at once.
        """
        await self._process.close(grace, self._settings.kill_after)

    def crash(self) -> None:
        """Kills the child's whole process group without waiting: :attr:`broken` tells of it, as of any crash."""
        self._process.crash()

    def kill(self) -> None:
        """Kills the child's whole process group and waits, blocking: for when nothing can be awaited any more."""
        self._process.kill()

    async def _next_event(self) -> Event:
        if (ready := self._take_event()) is not None:
            if self._breather.due:
                await asyncio.sleep(0)
                self._breather.taken()
            return ready  # many events come at once, and a time limit for each would cost more than the event
        try:
            async with time_limit(self._settings.reply_timeout):
                while (happened := self._take_event()) is None:
                    if self.broken.done():
                        raise self.broken.result()
                    self._news.clear()
                    await self._news.wait()
                self._breather.taken()
                return happened
        except TimeoutError:
            seconds = self._settings.reply_timeout
            unread = f", and wrote what is no message: {why_unreadable(self._junk)}" if self._junk else ""
            raise ChildTimeoutError(
                f"{self._process.title} did not answer {self.dialect.action} in {seconds:g} s{unread}"
            ) from None

    def _take_event(self) -> Event | None:
        """Returns the next event; logs the skipped lines before it."""
        while isinstance(happened := self.dialect.next_event(), SkippedLine):
            if len(self._junk) < JUNK_KEPT:
                self._junk.append(happened.text[:LOG_LINE])
            self._process.log(logging.INFO, "line on stdout skipped", line=_shortened(happened))
        if happened is not None:
            self._heard_at = self._loop.time()
        if self.dialect.held < HELD_LIMIT:
            self._process.resume()
        return happened

    async def _work(self, on_answer: Awaitable[T]) -> T:
        """Works on an answer of the child, for which the child waits."""
        self._working = True
        try:
            return await on_answer
        finally:
            self._working = False
            self._heard_at = self._loop.time()

    def _on_output(self, data: bytes) -> None:
        self.dialect.receive(data)
        if self.dialect.turn is not Turn.THEIRS:
            self._skim()
        if self.dialect.held >= HELD_LIMIT:
            self._process.pause()
        self._news.set()

    def _skim(self) -> None:
        """Logs the junk that comes while nothing is asked of the child; the dialect hands out no message then."""
        match self._take_event():
            case ProtocolViolation(reason):
                self._process.fail(ChildProtocolError(f"{self._process.title} {reason}"))

    def __repr__(self) -> str:
        return f"<ChildProcess {self._process.title} {self.dialect!r} broken={self.broken.done()}>"


def _shortened(line: SkippedLine) -> str:
    """Returns the beginning of a line, and how much of it was left out."""
    text = line.text.strip()
    if len(text) <= LOG_LINE and not line.cut:
        return text
    more = f"{max(0, len(text) - LOG_LINE):,} characters more"
    return f"{text[:LOG_LINE]}… ({more}{', and the rest of the line' if line.cut else ''})"


def _shard_variables(key: str) -> dict[str, str]:
    """Returns the variables that tell a child which shard it works on."""
    shard = ShardKey.of(key)
    return {SHARD_VARIABLE: shard.shard_id, **({STREAM_VARIABLE: shard.stream} if shard.stream else {})}
