"""Virtual time: one queue of events, simulated processes, their event loops and their threads.

Everything that runs, runs as an event of one queue (:class:`Hub`), one after another, at a virtual moment that the
queue knows. A seed therefore repeats a run exactly, and an hour of waiting costs nothing.

* A :class:`Process` is what SIGKILL and SIGSTOP act on. A dead process gets no event any more, and nothing of it is
  cleaned up. A frozen process gets its events when it is resumed, in their order.
* A :class:`ProcessLoop` is the asyncio event loop of one process. Callbacks keep asyncio's order.
* A :class:`Strand` is a thread of a process: what ``asyncio.to_thread`` starts, a ``threading.Thread``, or a whole
  program without asyncio. It is a greenlet: it has the turn until it waits (:meth:`Hub.pause`, :meth:`Hub.park`). So
  every blocking call of a store or a target is a point at which anything else may happen.

No library for simulations does this: simloop and simloom need Python 3.12, and neither has threads that wait in the
middle of a blocking call, of which half of Kainite is made (the mount, the apply job, its tasks). Greenlets are all
that is taken from outside. Real threads, of which one at a time has the turn, were tried: a hand-over takes 17 µs
instead of a few tenths, and on a loaded machine 600 µs.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

T = TypeVar("T")

EPOCH = 1_700_000_000.0
"""The time of the simulated world's beginning, seconds since 1970."""


MOST_AWAITS = 100
"""How often a coroutine that is ended may await something before it is given up."""


class KilledError(BaseException):
    """Ends a thread of a process that is dead; only raised while the world is taken down."""


class Process:
    """A simulated process.

    Attributes:
        name: unlike that of any other process of the world.
        pid: its number on its host; a dead process's number may be given again.
        started: its number among :attr:`Hub.processes`.
        host: the processes of one host share it.
        skew: seconds by which its clock is ahead of the world's.
        busy_until: until when it computes, and no other event of it runs.
    """

    def __init__(self, hub: Hub, name: str, host: str = "", pids: int = 1_000_000) -> None:
        self.hub = hub
        self.name = name
        self.host = host or name
        self.started = len(hub.processes) + 1
        self.dead: bool = False
        taken = {process.pid for process in hub.processes if process.host == self.host and not process.dead}
        self.pid: int = next(pid for pid in itertools.count(1 + self.started % pids) if pid not in taken)
        hub.processes.append(self)
        self.skew = 0.0
        self.busy_until = 0.0
        self.frozen = False
        self.loop = ProcessLoop(self)  # type: ignore[abstract]  # pipes, other sockets and signals are not simulated
        self.on_death: list[Callable[[], None]] = []
        self._held: list[Callable[[], None]] = []

    def run(self, action: Callable[[], None]) -> None:
        """Runs an event of this process, or keeps it until the process is resumed."""
        if self.dead:
            return
        if self.frozen:
            self._held.append(action)
            return
        if self.busy_until > self.hub.now:
            self.hub.after(self.busy_until - self.hub.now, action, self)
            return
        self.hub.process = self
        try:
            action()
        finally:
            self.hub.process = None

    @property
    def now(self) -> float:
        """Returns the world's time, for this process at the end of what it has computed."""
        return max(self.hub.now, self.busy_until)

    def compute(self, seconds: float) -> None:
        """Takes processor time: of the calling thread, or of the event loop and all that runs on it."""
        if self.hub.strand is not None:
            self.hub.pause(seconds)
        else:
            self.busy_until = self.now + seconds

    def kill(self) -> None:
        """Ends the process at once, as SIGKILL does."""
        if not self.dead:
            self.dead = True
            self._held.clear()
            for tell in self.on_death:
                tell()

    def freeze(self) -> None:
        self.frozen = True

    def resume(self) -> None:
        """Lets the process go on; events that it has missed reach it now."""
        if self.frozen:
            self.frozen = False
            held, self._held = self._held, []
            for action in held:
                self.hub.after(0.0, action, self)

    def start(self, main: Coroutine[Any, Any, Any], ended: Callable[[BaseException | None], None]) -> None:
        """Runs a coroutine as the process's main task; ``ended`` is told its error."""

        def begin() -> None:
            task = self.loop.create_task(main, name=self.name)
            task.add_done_callback(lambda done: ended(done.exception() if not done.cancelled() else None))

        self.hub.after(0.0, lambda: self.loop.enter(begin), self)

    def __repr__(self) -> str:
        return f"<Process {self.name}>"


class Strand(greenlet):  # type: ignore[misc]
    """A thread of a simulated process."""

    def __init__(self, process: Process, work: Callable[[], None]) -> None:
        super().__init__(self._live, process.hub.root)
        self.process = process
        self.waiting = False
        self._work = work

    def _live(self) -> None:
        hub = self.process.hub
        try:
            self._work()
        except KilledError:
            pass
        except BaseException as error:
            hub.errors.append(error)
        hub.finished(self)


class Hub:
    """The queue of events, and the turn that strands are given."""

    def __init__(self) -> None:
        self.now = 0.0
        self.process: Process | None = None
        self.strand: Strand | None = None
        self.closing = False
        self.errors: list[BaseException] = []
        self.root = getcurrent()
        self.processes: list[Process] = []
        self.network: Any = None
        """Connects processes (``simulation.network``)."""
        _Numbered.numbers = itertools.count()
        self._events: list[tuple[float, int, Process | None, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._strands: dict[Strand, None] = {}
        self._tasks: list[asyncio.Task[Any]] = []

    def after(self, seconds: float, action: Callable[[], None], process: Process | None = None) -> None:
        """Schedules an event of a process; of the world without one."""
        when = self.now + seconds if seconds > 0.0 else self.now
        heapq.heappush(self._events, (when, next(self._numbers), process, action))

    def run(self, done: Callable[[], bool], limit: float) -> None:
        """Runs events until ``done``, until ``limit`` seconds are over, or until an event fails.

        Raises:
            BaseException: what failed.
        """
        while self._events and not self.errors and not done():
            when, _, process, action = heapq.heappop(self._events)
            if when > limit:
                self.now = limit
                return
            self.now = max(self.now, when)
            if process is None:
                action()
            else:
                process.run(action)
        if self.errors:
            raise self.errors[0]

    def spawn(self, process: Process, work: Callable[[], None]) -> Strand:
        """Starts a thread of a process."""
        strand = Strand(process, work)
        self._strands[strand] = None
        self.after(0.0, lambda: self._give(strand), process)
        return strand

    def pause(self, seconds: float) -> None:
        """Lets the calling strand wait."""
        strand = self._me()
        self.after(seconds, lambda: self.wake(strand), strand.process)
        self._wait(strand)

    def park(self) -> None:
        """Lets the calling strand wait until :meth:`wake`."""
        self._wait(self._me())

    def wake(self, strand: Strand) -> None:
        """Lets a waiting strand go on at once; to be called by an event of the strand's process."""
        if strand.waiting:
            self._give(strand)

    def close(self) -> None:
        """Ends all strands and tasks; nothing that they still do has an effect."""
        self.closing = True
        self._events.clear()
        for strand in list(self._strands):
            if strand.waiting:
                self._give(strand)
        for task in self._tasks:
            _drop(task)

    def finished(self, strand: Strand) -> None:
        del self._strands[strand]

    def register(self, task: asyncio.Task[Any]) -> None:
        self._tasks.append(task)

    def _me(self) -> Strand:
        if self.closing or self.strand is None:
            raise KilledError
        return self.strand

    def _wait(self, strand: Strand) -> None:
        strand.waiting = True
        self.root.switch()
        if self.closing:
            raise KilledError

    def _give(self, strand: Strand) -> None:
        """Gives a strand the turn; returns when the strand gives it back."""
        before = self.strand, self.process
        strand.waiting = False
        self.strand, self.process = strand, strand.process
        strand.switch()
        self.strand, self.process = before


def _drop(task: asyncio.Task[Any]) -> None:
    """Ends a task's coroutine: what it still awaits while it cleans up ends in the same way.

    ``close()`` will not do: a coroutine that awaits in its clean-up "ignores GeneratorExit", which the one that awaits
    it hears as an Exception, and may survive.
    """
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
    coroutine: Any = task.get_coro()
    asyncio._set_running_loop(task.get_loop())  # noqa: SLF001 - clean-ups ask for it
    try:
        for _ in range(MOST_AWAITS):
            coroutine.throw(KilledError())
    except BaseException:
        return
    finally:
        asyncio._set_running_loop(None)  # noqa: SLF001


class _Numbered:
    """A hash that is the same in every run: sets of tasks and futures then have one order."""

    numbers = itertools.count()


class SimTask(asyncio.Task[Any]):
    def __init__(self, coro: Any, *, loop: Any, name: str | None = None, context: Any = None) -> None:
        self._number = next(_Numbered.numbers)
        super().__init__(coro, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._number


class SimFuture(asyncio.Future[Any]):
    def __init__(self, *, loop: Any) -> None:
        self._number = next(_Numbered.numbers)
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class ProcessLoop(asyncio.AbstractEventLoop):
    """The event loop of one simulated process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._hub = process.hub
        self._ready: deque[asyncio.Handle] = deque()
        self._scheduled = False

    def enter(self, action: Callable[[], object]) -> None:
        """Runs an action as a callback of this loop."""
        asyncio._set_running_loop(self)  # noqa: SLF001 - what an event loop must do
        try:
            action()
        finally:
            asyncio._set_running_loop(None)  # noqa: SLF001

    def time(self) -> float:
        return self.process.now

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._add(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._hub.after(when - self._hub.now, lambda: self._due(handle), self.process)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> asyncio.Task[Any]:
        task = SimTask(coro, loop=self, name=name, context=context)
        self._hub.register(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = SimFuture(loop=self)

        def work() -> None:
            result: T | None = None
            failure: Exception | None = None
            try:
                result = func(*args)
            except Exception as error:
                failure = error
            self.call_soon(_settle, future, result, failure)

        self._hub.spawn(self.process, work)
        return future

    async def create_server(self, factory: Any, host: str, port: int, **_: Any) -> Any:  # type: ignore[override]
        return self._hub.network.listen(self.process, factory, host)

    def remove_reader(self, fd: Any) -> bool:
        return False  # a server is told of connections until it is closed

    async def create_connection(  # type: ignore[override]
        self, factory: Any, host: str, port: int, **_: Any
    ) -> tuple[Any, Any]:
        made: tuple[Any, Any] = await self._hub.network.connect(self.process, factory, host, port)
        return made

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Reports what nobody has handled: a defect of Kainite or of the simulation."""
        error = context.get("exception")
        if not self._hub.closing and not self.process.dead and error is not None:
            self._hub.errors.append(error)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def _due(self, handle: asyncio.TimerHandle) -> None:
        if not handle.cancelled():
            self._add(handle)

    def _add(self, handle: asyncio.Handle) -> None:
        self._ready.append(handle)
        if not self._scheduled:
            self._scheduled = True
            self._hub.after(0.0, self._run, self.process)

    def _run(self) -> None:
        self._scheduled = False
        self.enter(self._run_ready)

    def _run_ready(self) -> None:
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001
            if self.process.dead or self.process.frozen:
                break
        if self._ready and not self._scheduled:
            self._scheduled = True
            self._hub.after(0.0, self._run, self.process)


def _settle(future: asyncio.Future[T], result: T, failure: Exception | None) -> None:
    if future.done():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)


# What a strand uses in place of the standard library's ``threading`` and ``time``.


class SimLock:
    """A lock between strands of one process."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._held = False
        self._waiting: deque[Strand] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        while self._held and not self._hub.closing:
            if not blocking:
                return False
            strand = self._hub.strand
            if strand is None:
                raise RuntimeError("an event loop would block on a lock")
            self._waiting.append(strand)
            self._hub.park()
        self._held = True
        return True

    def release(self) -> None:
        self._held = False
        if self._waiting and not self._hub.closing:
            strand = self._waiting.popleft()
            self._hub.after(0.0, lambda: self._hub.wake(strand), strand.process)

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimEvent:
    """``threading.Event`` between strands."""

    def __init__(self, hub: Hub) -> None:
        self.hub = self._hub = hub
        self._set = False
        self._waiting: list[Strand] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        waiting, self._waiting = self._waiting, []
        for strand in waiting:
            self._hub.after(0.0, self._waker(strand), strand.process)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        strand = self._hub.strand
        if self._hub.closing or strand is None:
            raise KilledError
        over = [False]
        if timeout is not None:

            def end() -> None:
                if not over[0] and strand in self._waiting:
                    self._waiting.remove(strand)
                    self._hub.wake(strand)

            self._hub.after(timeout, end, strand.process)
        if not self._set:
            self._waiting.append(strand)
            self._hub.park()
        elif timeout is not None:
            over[0] = True
        over[0] = True
        return self._set

    def _waker(self, strand: Strand) -> Callable[[], None]:
        return lambda: self._hub.wake(strand)


class SimThread:
    """``threading.Thread`` as a strand of the process that starts it."""

    def __init__(
        self, group: None = None, target: Callable[..., object] | None = None, name: str | None = None,
        args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, *, daemon: bool | None = None, hub: Hub,
    ) -> None:  # fmt: skip
        assert target is not None
        self.name = name or "thread"
        self._hub = hub
        self._ended = SimEvent(hub)
        self._target = target
        self._arguments = args, kwargs or {}

    def start(self) -> None:
        process = self._hub.process
        assert process is not None

        def work() -> None:
            try:
                arguments, named = self._arguments
                self._target(*arguments, **named)
            finally:
                self._ended.set()

        self._hub.spawn(process, work)

    def join(self, timeout: float | None = None) -> None:
        if not self._ended.is_set():
            self._ended.wait(timeout)

    def is_alive(self) -> bool:
        return not self._ended.is_set()


class SimThreading:
    """Stands for the module ``threading`` in modules of Kainite."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def Lock(self) -> SimLock:  # noqa: N802 — the module's name for it
        return SimLock(self._hub)

    def Event(self) -> SimEvent:  # noqa: N802
        return SimEvent(self._hub)

    def Thread(self, *args: Any, **more: Any) -> SimThread:  # noqa: N802
        return SimThread(*args, hub=self._hub, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


class SimTime:
    """Stands for the module ``time`` in modules of Kainite: the clocks of the process that asks."""

    CLOCK_BOOTTIME = 7
    CLOCK_MONOTONIC = 1

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def _now(self) -> float:
        return self._hub.now if self._hub.process is None else self._hub.process.now

    def clock_gettime(self, clock: int) -> float:
        return 10_000.0 + self._now()

    def monotonic(self) -> float:
        return 10_000.0 + self._now()

    def perf_counter(self) -> float:
        return 10_000.0 + self._now()

    def time(self) -> float:
        process = self._hub.process
        return EPOCH + self._now() + (process.skew if process is not None else 0.0)

    def time_ns(self) -> int:
        return int(self.time() * 1_000_000_000)

    def sleep(self, seconds: float) -> None:
        self._hub.pause(seconds)
