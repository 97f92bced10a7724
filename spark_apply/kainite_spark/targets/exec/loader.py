"""A loader's process, with calls that wait for its answers.

Spark's tasks have no event loop, and a child's pipes need one. So the process runs on a loop of its own, which
turns only during a call. States and transitions::

    ABSENT --ask--> RUNNING --ask--> RUNNING
                    RUNNING --process ended, was silent too long, or broke the protocol--> ABSENT

Invariants: at most one request is in flight, and none when :meth:`LoaderProcess.ask` returns. A process that
left a request unanswered, or answered it outside the protocol, is killed with its whole process group before
``ask`` raises; whether it did the request is then unknown. When this process dies, the loader's input ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kainite.base.errors import ChildError, ChildExitedError, ChildProtocolError, ChildTimeoutError
from kainite.base.time_limit import time_limit
from kainite.child.events import Send
from kainite.child.markers.exchange import Answer, Exchange, Violation
from kainite.child.markers.start_parameters import start_parameters
from kainite.child.piped_process import Hooks, PipedProcess, Program
from kainite.settings import MarkersSettings

T = TypeVar("T")

END_GRACE = 5.0
KILL_AFTER = 1.0


@dataclass(frozen=True, slots=True)
class LoaderSettings:
    """The command of a loader, its dialect, and its batches of requests.

    Attributes:
        command: the program and its arguments; ``repr`` leaves them out, since they may hold secrets.
        markers: the markers of the dialect, with the loader's own batching and batch size.
        timeout: seconds that the loader may be silent after a request.
    """

    command: tuple[str, ...] = field(repr=False)
    markers: MarkersSettings
    timeout: float


class LoaderProcess:
    """The loader, started when it is needed; the module describes its states."""

    def __init__(self, settings: LoaderSettings) -> None:
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._conversation: _LoaderConversation | None = None

    def start(self) -> None:
        """Starts the process, unless it runs; raises ChildExitedError."""
        if self._conversation is not None:
            self._run(asyncio.sleep(0))  # notice whether the process ended since the last call
            if self._conversation.process.broken.done():
                self._abandon()
        if self._conversation is None:
            self._conversation = self._run(_LoaderConversation.start(self._settings))

    def ask(self, messages: Sequence[bytes], take: Callable[[Answer], None]) -> None:
        """Sends messages, in batches as the settings say, and waits for all answers.

        Args:
            messages: the messages, each with its EOM.
            take: called with each answer as it comes; if it raises, no further message is sent.

        Raises:
            ChildError: the loader cannot be started, has ended, was silent for too long, or broke the protocol.
            Exception: whatever ``take`` raises.
        """
        self.start()
        assert self._conversation is not None
        try:
            self._run(self._conversation.hold(messages, take))
        except BaseException as error:
            if isinstance(error, ChildError) or not self._conversation.idle:
                self._abandon()
            raise

    def close(self) -> None:
        """Ends the process: closes its input, then sends TERM, then KILL. May be called again."""
        if self._conversation is not None:
            self._run(self._conversation.process.close(END_GRACE, KILL_AFTER))
            self._conversation = None
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def _abandon(self) -> None:
        if self._conversation is not None:
            self._conversation.process.kill()
            self._conversation = None

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(work)


class _LoaderConversation:
    """One process and the exchange of messages with it."""

    def __init__(self, settings: LoaderSettings) -> None:
        self._timeout = settings.timeout
        markers = settings.markers
        self._exchange = Exchange(markers.markers, markers.batching, batch_size=markers.batch_size)
        self._news = asyncio.Event()
        self.idle = True
        # The exchange is not told of the output's end: the process ends too, and its exit status gives a better cause.
        self.process = PipedProcess.start(_program(settings), Hooks(self._output, self._news.set, self._news.set))

    @classmethod
    async def start(cls, settings: LoaderSettings) -> _LoaderConversation:
        """Starts the process on the running loop; raises ChildExitedError."""
        return cls(settings)

    async def hold(self, messages: Sequence[bytes], take: Callable[[Answer], None]) -> None:
        """Sends the messages and hands each answer to ``take``, until all messages are answered."""
        self.idle = False
        self._exchange.send(messages)
        answered = 0
        while answered < len(messages):
            answer = await self._answer()
            answered += answer.count
            self.idle = answered == len(messages)
            take(answer)

    async def _answer(self) -> Answer:
        while True:
            match self._exchange.next_event():
                case Send(data):
                    self.process.write(data)
                case Answer() as answer:
                    return answer
                case Violation(reason):
                    raise ChildProtocolError(f"{self.process.title} {reason}")
                case None:
                    await self._wait()

    async def _wait(self) -> None:
        if self.process.broken.done():
            raise self._ended()
        self._news.clear()
        try:
            async with time_limit(self._timeout):
                await self._news.wait()
        except TimeoutError:
            raise ChildTimeoutError(
                f"{self.process.title} was silent for {self._timeout:g} s; see loaderTimeoutMillis"
            ) from None

    def _ended(self) -> ChildError:
        error, last_words = self.process.broken.result(), self.process.stderr_tail
        return ChildExitedError(f"{error}: {last_words[-1]}") if last_words else error

    def _output(self, data: bytes) -> None:
        self._exchange.receive(data)
        self._news.set()


def _program(settings: LoaderSettings) -> Program:
    arguments, environment = start_parameters(settings.markers)
    return Program((*settings.command, *arguments), "target", "setting", environment, "target")
