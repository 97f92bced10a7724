"""One run of the author's command: written to, listened to, and ended. The only module here that does I/O.

What is said on it, and in which dialect, is the talk's business
(:mod:`~kainite.conform.json_lines_talk`, :mod:`~kainite.conform.markers_talk`). Every wait has a limit.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from kainite.child.piped_process import Hooks, PipedProcess, Program, how_it_ended
from kainite.conform.transcript import Transcript

T = TypeVar("T")

LATE_S: Final = 2.0
"""How long a child that did not answer has to answer after all, once its input has ended."""

HELD_BACK: Final = 16
"""Bytes of a request that are held back, where it is tried whether the child reads before it answers."""

KILL_AFTER_S: Final = 1.0
LAST_WORDS_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take, seconds.

    Attributes:
        timeout: for an answer.
        slow: an answer that takes longer is a finding.
        hold: how long the end of a request is held back; None: as long as the child needs to start.
    """

    timeout: float = 10.0
    slow: float = 1.0
    hold: float | None = None


class Gone(Exception):  # noqa: N818  # no error: what the child did
    """The child ended, or closed a pipe, while it was its turn: ``how``, and its last ``words`` on stderr, if any."""

    def __init__(self, how: str, words: str) -> None:
        super().__init__(how)
        self.how = how
        self.words = words

    def told(self, asked: str) -> str:
        """How it went, in one line."""
        words = f"its last words on stderr: {self.words}" if self.words else "without a word on stderr"
        return f"{self.how} in {asked}; {words}"


class Stage:
    """One child, from its start to :meth:`close`.

    Args:
        program: what to run.
        output: gets what it writes.
        ended: is told that its output has ended; maybe twice.

    Attributes:
        transcript: what was said.
        heard: how many bytes it has written.
    """

    def __init__(self, program: Program, output: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self.transcript = Transcript(self._loop.time)
        self.heard = 0
        self._output = output
        self._news = asyncio.Event()
        hooks = Hooks(self._on_output, ended, self._news.set)
        self._process = PipedProcess.start(program, hooks)

    def now(self) -> float:
        """The clock, seconds."""
        return self._loop.time()

    def say(self, data: bytes) -> None:
        """Write to the child, without waiting."""
        if data:
            self.transcript.said(data)
            self._process.write(data)

    async def until(self, found: Callable[[], T | None], limit: float) -> T | None:
        """Wait until ``found`` gives something, or ``limit`` seconds are over: then None.

        Raises:
            Gone: the child is gone, and ``found`` gives nothing.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while (happened := found()) is None:
                    if self._process.broken.done():
                        raise self._gone()
                    self._news.clear()
                    await self._news.wait()
                return happened
        return None

    async def say_held(self, data: bytes, found: Callable[[], T | None], hold: float) -> T | None:
        """Write all but the end, wait, write the end; what ``found`` gives before the end is written is returned.

        A marker alone is written at once: it has no end that could be held back.

        Raises:
            Gone: the child went before it had everything.
        """
        cut = len(data) - min(HELD_BACK, len(data) // 2)
        self.say(data[:cut])
        if cut < len(data) and (early := await self.until(found, hold)) is not None:
            return early
        self.say(data[cut:])
        return None

    def end_input(self) -> None:
        """Close its standard input, and go on listening."""
        self.transcript.happened("its input ends")
        self._process.end_input()

    async def ends(self, limit: float) -> float | None:
        """Close its input: seconds until it has ended, None when it has not within ``limit``."""
        self.transcript.happened("its input ends")
        began = self.now()
        await self._process.close(limit, KILL_AFTER_S)
        took = self.now() - began
        return took if took < limit else None

    async def close(self, grace: float) -> None:
        """End it: it has ``grace`` seconds to end by itself."""
        await self._process.close(grace, KILL_AFTER_S)

    @property
    def status(self) -> int | None:
        """What it ended with; None while it runs."""
        return self._process.status

    def _on_output(self, data: bytes) -> None:
        self.transcript.heard(data)
        self.heard += len(data)
        self._output(data)
        self._news.set()

    def _gone(self) -> Gone:
        status = self._process.status
        if status is None:
            how = str(self._process.broken.result()).removeprefix(f"{self._process.title} ")
        else:
            how = f"ended with {how_it_ended(status)}"
        for line in self._process.stderr_tail:
            self.transcript.complained(line)
        self.transcript.happened(how)
        return Gone(how, _last_words(self._process.stderr_tail)[:LAST_WORDS_SHOWN])


def _last_words(lines: Iterable[str]) -> str:
    """The line that says what was wrong: in most languages the last one that is not indented and names an error."""
    said = [line for line in lines if line.strip()]
    named = [line for line in said if not line[0].isspace() and re.search("error|exception", line, re.IGNORECASE)]
    return ([*said, *named] or [""])[-1].strip()
