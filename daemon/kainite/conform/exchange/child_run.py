"""One run of the author's command: writes to it, reads from it, and ends it. The only module here that does I/O.

The drivers of the dialects (:mod:`~kainite.conform.exchange.json_lines`, :mod:`~kainite.conform.exchange.markers`)
decide what is written. Every wait has a limit.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from kainite.base.time_limit import time_limit
from kainite.child.piped_process import Hooks, PipedProcess, Program, how_it_ended
from kainite.conform.exchange.transcript import Transcript, shown

T = TypeVar("T")

LATE_S: Final = 2.0
"""Seconds in which a child that did not answer may still do so, after its input has ended."""

HELD_BACK: Final = 16
"""Bytes of a request that are held back in a case that tries whether the child reads before it answers."""

KILL_AFTER_S: Final = 1.0
LAST_WORDS_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """The time limits of answers.

    Attributes:
        timeout: longest wait for an answer, seconds.
        slow: an answer that takes longer is a finding, seconds.
        hold: how long the end of a request is held back, seconds; None means as long as the child needs to start.
    """

    timeout: float = 10.0
    slow: float = 1.0
    hold: float | None = None


class ChildGone(Exception):  # noqa: N818  # no error: what the child did
    """The child ended, or closed a pipe, while it was its turn.

    Attributes:
        how: says how the child ended.
        words: its last line on standard error, if any.
    """

    def __init__(self, how: str, words: str) -> None:
        super().__init__(how)
        self.how = how
        self.words = words

    def told(self, asked: str) -> str:
        """Describes in one line how the child's process ended."""
        words = f"its last words on stderr: {self.words}" if self.words else "without a word on stderr"
        return f"{self.how} in {asked}; {words}"


class ChildRun:
    """One child, from its start to :meth:`close`.

    Args:
        program: the command.
        output: takes what the child writes.
        ended: called when the child's output has ended; it may be called twice.

    Attributes:
        transcript: the lines that both sides wrote.
        output_bytes: how many bytes the child has written.
    """

    def __init__(self, program: Program, output: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self.transcript = Transcript(self._loop.time)
        self.output_bytes = 0
        self._output = output
        self._news = asyncio.Event()
        hooks = Hooks(self._on_output, ended, self._news.set)
        self._process = PipedProcess.start(program, hooks)

    def now(self) -> float:
        """Returns the time of a monotonic clock, seconds."""
        return self._loop.time()

    def write(self, data: bytes) -> None:
        """Writes to the child, without waiting."""
        if data:
            self.transcript.said(data)
            self._process.write(data)

    async def until(self, found: Callable[[], T | None], limit: float) -> T | None:
        """Waits until ``found`` returns something; returns None when ``limit`` seconds are over.

        Raises:
            ChildGone: the child is gone, and ``found`` still returns None.
        """
        with suppress(TimeoutError):
            async with time_limit(limit):
                while (happened := found()) is None:
                    if self._process.broken.done():
                        raise self._gone()
                    self._news.clear()
                    await self._news.wait()
                return happened
        return None

    async def write_held(self, data: bytes, found: Callable[[], T | None], hold: float) -> T | None:
        """Writes all but the end, waits, and writes the end; returns what ``found`` returns before the end is written.

        A marker alone is written at once: it has no end that could be held back.

        Raises:
            ChildGone: the child went before it had the whole request.
        """
        cut = len(data) - min(HELD_BACK, len(data) // 2)
        self.write(data[:cut])
        if cut < len(data) and (early := await self.until(found, hold)) is not None:
            return early
        self.write(data[cut:])
        return None

    def end_input(self) -> None:
        """Closes the child's standard input, and goes on reading its output."""
        self.transcript.happened("its input ends")
        self._process.end_input()

    async def ends(self, limit: float) -> float | None:
        """Closes the child's input; returns the seconds until it ended, or None after ``limit`` seconds."""
        self.transcript.happened("its input ends")
        began = self.now()
        await self._process.close(limit, KILL_AFTER_S)
        took = self.now() - began
        return took if took < limit else None

    async def close(self, grace: float) -> None:
        """Ends the child, which has ``grace`` seconds to end by itself."""
        await self._process.close(grace, KILL_AFTER_S)

    @property
    def status(self) -> int | None:
        """Returns the child's exit status; None while it runs."""
        return self._process.status

    def _on_output(self, data: bytes) -> None:
        self.transcript.heard(data)
        self.output_bytes += len(data)
        self._output(data)
        self._news.set()

    def _gone(self) -> ChildGone:
        status = self._process.status
        if status is None:
            how = str(self._process.broken.result()).removeprefix(f"{self._process.title} ")
        else:
            how = f"ended with {how_it_ended(status)}"
        for line in self._process.stderr_tail:
            self.transcript.complained(line)
        self.transcript.happened(how)
        return ChildGone(how, shown(_last_words(self._process.stderr_tail).encode(), LAST_WORDS_SHOWN))


def _last_words(lines: Iterable[str]) -> str:
    """Returns the line that says what was wrong.

    In most languages it is the last line that is not indented and names an error.
    """
    said = [line for line in lines if line.strip()]
    named = [line for line in said if not line[0].isspace() and re.search("error|exception", line, re.IGNORECASE)]
    return ([*said, *named] or [""])[-1].strip()
