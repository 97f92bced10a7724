"""The extractor's process and what it writes, one event after the other.

The process's output waits in the pipe while more than :data:`HELD_LIMIT` bytes of it have not been taken, so an
extractor that is faster than the stream is slowed down (back-pressure).
"""

from __future__ import annotations

import asyncio

from kainite.base.errors import ChildExitedError, ChildProtocolError, ChildTimeoutError, ChildTryLaterError
from kainite.base.time_limit import time_limit
from kainite.child.markers.exchange import Violation
from kainite.child.markers.extraction import TRY_LATER, CycleDone, Extracted, Extraction, Unfinished
from kainite.child.markers.start_parameters import start_parameters
from kainite.child.piped_process import Hooks, PipedProcess, Program, how_it_ended
from kainite.settings import ChildSettings, ExtractMode, ExtractSettings

HELD_LIMIT = 2**20
OWNER = "extractor"


class Extractor:
    """One run of the extractor's program, from its start to :meth:`close`."""

    def __init__(self, extract: ExtractSettings, child: ChildSettings) -> None:
        arguments, environment = start_parameters(child.markers)
        self._cyclic = extract.mode is ExtractMode.CYCLIC
        self._timeout = extract.reply_timeout if self._cyclic else None
        self._child = child
        self._news = asyncio.Event()
        self._ended = False
        self._talk = Extraction(child.markers.extraction, cyclic=self._cyclic)
        program = Program((*extract.command, *arguments), OWNER, "child", environment, "extractorName")
        self._process = PipedProcess.start(program, Hooks(self._on_output, self._on_output_end, self._news.set))

    @property
    def broken(self) -> bool:
        """Tells whether the process has ended, or will not answer any more."""
        return self._process.broken.done()

    def ask(self, request: bytes) -> None:
        """Requests a cycle.

        Raises:
            MessageRefusedError: the request contains a marker.
            ChildProtocolError: the extractor wrote something before it was asked.
        """
        self.taken()
        self._process.write(self._talk.request(request))

    async def next(self) -> Extracted | CycleDone | Unfinished | None:
        """Returns the extractor's next event; None when its output has ended and all events have been taken.

        Raises:
            ChildTimeoutError: a cyclic extractor was silent too long.
            ChildProtocolError: the extractor broke the protocol.
            ChildExitedError: a cyclic extractor ended within a cycle.
            ChildTryLaterError: it did so because its source is away.
        """
        if (said := self.taken()) is not None:
            return said
        try:
            async with time_limit(self._timeout):
                while (said := self.taken()) is None and not self._said_all():
                    self._news.clear()
                    await self._news.wait()
                return said
        except TimeoutError:
            raise ChildTimeoutError(f"{self._process.title} was silent for {self._timeout:g} s") from None

    def taken(self) -> Extracted | CycleDone | Unfinished | None:
        """Returns an event that is there already; None when all have been taken.

        Raises:
            ChildProtocolError: the extractor broke the protocol.
        """
        said = self._talk.next_event()
        if self._talk.held < HELD_LIMIT:
            self._process.resume()
        if isinstance(said, Violation):
            raise ChildProtocolError(f"{self._process.title} {said.reason}")
        return said

    def terminate(self) -> None:
        """Asks a plain extractor to end, with SIGTERM; what it still writes is taken."""
        self._process.terminate()

    async def close(self) -> int:
        """Ends the process: closes its input, then SIGTERM, then SIGKILL; returns its status, negative for a signal."""
        await self._process.close(self._child.shutdown_grace, self._child.kill_after)
        assert self._process.status is not None
        return self._process.status

    def failure(self, status: int) -> ChildExitedError:
        """Returns the error for an unexpected end, with the last line of the extractor's standard error.

        It is a ChildTryLaterError where the status says that the source is away.
        """
        kind = ChildTryLaterError if status == TRY_LATER else ChildExitedError
        last = f": {self._process.stderr_tail[-1]}" if self._process.stderr_tail else ""
        return kind(f"{self._process.title} ended with {how_it_ended(status)}{last}")

    def kill(self) -> None:
        """Kills the process at once; blocks until it has ended."""
        self._process.kill()

    def _said_all(self) -> bool:
        if self._cyclic and self.broken:
            status = self._process.status
            raise self._process.broken.result() if status is None else self.failure(status)
        return self._ended and not self._cyclic

    def _on_output(self, data: bytes) -> None:
        self._talk.receive(data)
        if self._talk.held >= HELD_LIMIT:
            self._process.pause()
        self._news.set()

    def _on_output_end(self) -> None:
        if not self._ended:
            self._ended = True
            self._talk.receive_eof()
        self._news.set()
