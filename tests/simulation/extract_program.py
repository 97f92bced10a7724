"""The extractor's program as a process of its own, and the pipes between it and ``kainite extract``.

``kainite-extract-postgresql`` runs as it is, from its options to its exit status, on a strand. It reads and writes file
descriptors, which are those of :class:`Descriptors`; :class:`ExtractorPipes` is the other end of its pipes.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import kainite.extract.extractor
from kainite.base.errors import ChildError, ChildExitedError
from kainite.base.waiting import wait_until_set
from kainite.capture import patient_output, serving
from kainite.capture.heartbeats import Heartbeats
from kainite.capture.postgresql import (
    command,
    extractor,
    heartbeat,
    replication,
    replication_connection,
    source_catalogue,
    source_reach,
)
from kainite.capture.postgresql.source_catalogue import SourceCatalogue
from kainite.child.piped_process import Hooks, Program, how_it_ended
from simulation.extract_connections import SimConnection, SimPq, SimPsycopg
from simulation.extract_source import SimSource
from simulation.faults import Faults
from simulation.loop import Hub, Process, ProcessLoop, SimEvent, SimTime

URL = "postgresql://db/shop"
_READ_SIZE = 64 * 1024


class Pipe:
    """Bytes on their way between two processes; ``limit`` of them at most, where the writer heeds it."""

    def __init__(self, hub: Hub, limit: int) -> None:
        self.limit = limit
        self.data = bytearray()
        self.unread = False
        """Whether nobody reads any more."""
        self.ended = False
        """Whether nobody writes any more."""
        self.news = SimEvent(hub)
        self.filled: Callable[[], None] = lambda: None

    @property
    def room(self) -> int:
        return self.limit - len(self.data)

    def take(self, size: int) -> bytes:
        taken = bytes(self.data[:size])
        del self.data[:size]
        self.news.set()
        return taken


class Descriptors:
    """Stands for ``os``, ``select`` and ``sys`` in the program: file descriptors are the process's two pipes."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.of: dict[Process, ExtractorPipes] = {}
        self.os = SimpleNamespace(
            read=self._read, write=self._write, set_blocking=lambda *_: None, EX_TEMPFAIL=os.EX_TEMPFAIL,
            fstat=lambda _: SimpleNamespace(st_mode=stat.S_IFIFO),
        )  # fmt: skip
        self.select = SimpleNamespace(select=self._select)

    @property
    def mine(self) -> ExtractorPipes:
        assert self._hub.process is not None
        return self.of[self._hub.process]

    def serving_os(self) -> Any:
        """Returns ``os`` with the environment of the process that asks."""
        given = self

        class WithEnvironment:
            environ = property(lambda _: given.mine.environment)

            def __getattr__(self, name: str) -> Any:
                return getattr(given.os, name)

        return WithEnvironment()

    def _read(self, _: int, size: int) -> bytes:
        pipe = self.mine.requests
        while not (pipe.data or pipe.ended):
            pipe.news.clear()
            pipe.news.wait()
        return pipe.take(size)

    def _write(self, _: int, data: Any) -> int:
        pipe = self.mine.answers
        if pipe.unread:
            raise BrokenPipeError
        if pipe.room <= 0:
            raise BlockingIOError
        taken = bytes(data[: pipe.room])
        pipe.data += taken
        pipe.filled()
        return len(taken)

    def _select(self, reads: list[Any], writes: list[int], _: list[int], timeout: float) -> tuple[Any, Any, Any]:
        if reads:
            connection: SimConnection = reads[0]
            return (reads if connection.wait(timeout) else []), [], []
        pipe = self.mine.answers
        pipe.news.clear()
        if pipe.room <= 0 and not pipe.unread:
            pipe.news.wait(timeout)
        return [], (writes if pipe.room > 0 or pipe.unread else []), []


class ExtractorPipes:
    """Stands for :class:`kainite.child.piped_process.PipedProcess` with the extractor's program in it."""

    faults: ClassVar[Faults]
    descriptors: ClassVar[Descriptors]
    options: ClassVar[dict[str, Any]]
    pipe_bytes: ClassVar[int]
    new_process: ClassVar[Callable[[str], Process]]

    def __init__(self, program: Program, hooks: Hooks) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ProcessLoop)
        self.broken: asyncio.Future[ChildError] = loop.create_future()
        self.stderr_tail: deque[str] = deque(maxlen=20)
        self.status: int | None = None
        self.environment = dict(program.environment)
        self._loop, self._hub, self._parent = loop, loop.process.hub, loop.process
        self._hooks = hooks
        self._gone = asyncio.Event()
        self._closing = self._paused = self._reading = False
        self.requests = Pipe(self._hub, 0)
        self.answers = Pipe(self._hub, self.pipe_bytes)
        self.answers.filled = self._filled
        self.process = type(self).new_process(self.faults.named(f"{self._parent.name} program"))
        self.title = f"child {self.process.name} of {program.owner}"
        self.descriptors.of[self.process] = self
        self.process.on_death.append(self._dies)
        self._parent.on_death.append(self._orphaned)
        self._hub.spawn(self.process, self._live)

    @classmethod
    def start(cls, program: Program, hooks: Hooks) -> ExtractorPipes:
        return cls(program, hooks)

    def write(self, data: bytes) -> None:
        def arrive() -> None:
            self.requests.data += data
            self.requests.news.set()

        self._hub.after(self._pause(), arrive)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._filled()

    def terminate(self) -> None:
        self.process.kill()

    def kill(self) -> None:
        """Kills the program, and reads what it left."""
        self._closing = True
        self.process.kill()
        self._exited()

    async def close(self, grace: float, kill_after: float) -> None:
        self._closing = True
        self._end_input()
        try:
            if not await wait_until_set(self._gone, grace):
                self.process.kill()
                await self._gone.wait()
        except asyncio.CancelledError:
            self.kill()
            raise

    # The program.

    def _live(self) -> None:
        code: Any = 0
        try:
            main: Any = command.main.callback
            main(**self.options)
        except SystemExit as ended:
            code = ended.code
        if isinstance(code, str):
            self.stderr_tail.append(code)
        self.status = code if isinstance(code, int) else 1
        self.process.kill()

    def _dies(self) -> None:
        if self.status is None:
            self.status = -9
        self.requests.unread = self.answers.ended = True
        self._hub.after(self._pause(), lambda: self._loop.enter(self._exited), self._parent)

    def _orphaned(self) -> None:
        """Closes the pipes of a parent that has died."""
        self.answers.unread = True
        self.answers.news.set()
        self._end_input()

    def _end_input(self) -> None:
        self.requests.ended = True
        self.requests.news.set()

    # What the parent reads.

    def _filled(self) -> None:
        if self.answers.data and not (self._reading or self._paused or self._parent.dead):
            self._reading = True
            self._hub.after(self._pause(), lambda: self._loop.enter(self._read), self._parent)

    def _read(self) -> None:
        self._reading = False
        if self._paused:
            return
        self._output(self.answers.take(_READ_SIZE))
        self._filled()

    def _output(self, data: bytes) -> None:
        if data and not self._closing:
            self._hooks.output(data)

    def _exited(self) -> None:
        if self._gone.is_set():
            return
        self._output(self.answers.take(len(self.answers.data)))
        self._gone.set()
        self._hooks.output_ended()
        assert self.status is not None
        if not self.broken.done():
            self.broken.set_result(ChildExitedError(f"{self.title} ended with {how_it_ended(self.status)}"))
        self._hooks.news()

    def _pause(self) -> float:
        return 0.01 * self.faults.chance("pipe", self.faults.named(self.process.name)) ** 2


@contextmanager
def program(
    faults: Faults, source: SimSource, options: dict[str, Any], pipe_bytes: int, new_process: Callable[[str], Process]
) -> Iterator[None]:
    """Puts the simulated source, pipes and descriptors in the place of the real ones."""
    hub = faults.hub
    descriptors, clocks = Descriptors(hub), SimTime(hub)
    ExtractorPipes.faults, ExtractorPipes.descriptors, ExtractorPipes.pipe_bytes = faults, descriptors, pipe_bytes
    ExtractorPipes.options, ExtractorPipes.new_process = options, staticmethod(new_process)

    def me() -> Process:
        assert hub.process is not None
        return hub.process

    def piped(fd: int) -> Any:
        return SimpleNamespace(isatty=lambda: False, fileno=lambda: fd)

    def complain(text: str) -> None:
        descriptors.mine.stderr_tail.append(text)

    libpq, driver = SimPq(source, me), SimPsycopg(source, me)
    with ExitStack() as stack:
        for place, name, value in (
            (kainite.extract.extractor, "PipedProcess", ExtractorPipes),
            (serving, "os", descriptors.serving_os()),
            (serving, "sys", SimpleNamespace(stdin=piped(0), stdout=piped(1), exit=sys.exit)),
            (serving, "click", SimpleNamespace(echo=lambda text, err: complain(text))),
            (patient_output, "os", descriptors.os),
            (patient_output, "select", descriptors.select),
            (replication, "select", descriptors.select),
            (replication_connection, "pq", libpq),
            (source_reach, "pq", libpq),
            (source_catalogue, "psycopg", driver),
            (heartbeat, "psycopg", driver),
            (extractor, "SourceCatalogue", partial(SourceCatalogue, clock=clocks.monotonic)),
            (extractor, "Heartbeats", partial(Heartbeats, clock=clocks.monotonic, complain=complain)),
        ):
            stack.enter_context(mock.patch.object(place, name, value))
        yield
