"""Appends to a mounted log partition, and the heartbeats that keep the mount: steps, and two ways to take them.

The daemon appends to the log on an event loop, the apply job to its outcomes partition on threads. Both
take the same steps. :class:`PartitionWriter` decides them in generators without I/O: a generator yields
a :class:`StoreCall` of the store or a :class:`Pause`, and gets the call's answer or error sent back.
:func:`take_steps` takes steps on a thread, :func:`take_steps_async` on an event loop.

One append, with the same nonce in every attempt::

              ┌───────────── LogUnavailableError: pause, then the same batch again ──────────────┐
              ▼                                                                                  │
    batch ─► put_batch ─► durable ─► lease runs? ── yes ──► done: may be acknowledged            │
              │                          └── no ──► renew ─► done                                │
              │ a slot in the way                    │ └─────────────────────────────────────────┤
              ▼                                      ▼ another generation                        │
            LogFencedError ◄─────────────────────────┘         (put_batch got no answer) ────────┘

=====================================  ==============================================================
event                                  effect
=====================================  ==============================================================
put_batch got no answer                the batch may be durable. The next attempt carries the same nonce, so
                                       the store reports success and does not write the batch twice
a late answer, after the lease ended   the append is not acknowledged before a renewal has succeeded: a slot that
                                       was truncated under a newer owner could be created again without meeting
                                       its fence (:mod:`kainite.owner.mount`)
a slot in the way                      LogFencedError; nothing was written, and no later append can succeed
cancellation, or a stop in a pause     no further step is taken. The call under way ends on its thread: the batch
                                       may become durable, unacknowledged. In particular no renewal follows, which
                                       would take a released mount back
a crash                                the batch is durable or not; nobody was told that it is
=====================================  ==============================================================
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from kainite.base.clock import boot_seconds, epoch_ms
from kainite.base.errors import KainiteError, LogUnavailableError
from kainite.base.logs import event
from kainite.base.now_and_then import Counted
from kainite.log.contract import STORE_BACKOFF, LogStore
from kainite.log.format.entry import Batch, Entry
from kainite.owner.mount import Mount, fenced, new_token


@dataclass(frozen=True, slots=True)
class StoreCall:
    """A blocking call; its answer is sent into the generator, a KainiteError that it raises is thrown into it."""

    run: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause, which a stop may end; ``error`` is the error that the stop then raises, if any."""

    seconds: float
    error: KainiteError | None = None


Step: TypeAlias = StoreCall | Pause
Steps: TypeAlias = Generator[Step, Any, None]


class PartitionWriter:
    """Appends batches to one mounted partition, one at a time.

    Args:
        store: the partition's store.
        mounted: the hold on the partition.
        next_id: the transaction id of the next entry.
        name: the partition's name in log messages.
        logger: gets a warning, at most one a minute with the count, for calls that the store did not answer.
        written: called with each batch when it may be acknowledged.
        summary: returns the partition's summary for HEAD, as text; called before each heartbeat, where the steps are
            taken. None: the partition has none.
    """

    def __init__(
        self,
        store: LogStore,
        mounted: Mount,
        next_id: int,
        name: str,
        logger: logging.Logger,
        written: Callable[[Batch], None] = lambda _: None,
        summary: Callable[[], str] | None = None,
    ) -> None:
        self._store = store
        self._mount = mounted
        self._name = name
        self._logger = logger
        self._written = written
        self._summary = summary
        self._unwritten, self._unrenewed = Counted(boot_seconds), Counted(boot_seconds)
        self.next_id = next_id
        """Transaction id of the next entry; every entry before it is durable."""

    def append_steps(self, entries: Sequence[Entry]) -> Steps:
        """Makes entries durable as one batch; when the steps end, the append may be acknowledged.

        Raises:
            LogFencedError: another owner has the partition.
            LogUnavailableError: the steps were stopped while the store did not answer.
        """
        batch = Batch(self.next_id, self._mount.generation, epoch_ms(), tuple(entries))
        nonce = new_token()
        for failures in itertools.count(1):
            try:
                yield from self._attempt_steps(batch, nonce)
            except LogUnavailableError as error:
                unanswered = error
            else:
                self.next_id = batch.last_id + 1
                self._written(batch)
                return
            pause = STORE_BACKOFF.after(failures)
            if times := self._unwritten.happened():
                event(self._logger, logging.WARNING, "batch not written, trying again", log=self._name, times=times,
                      error=unanswered, pause=pause)  # fmt: skip
            yield Pause(pause, unanswered)

    def heartbeat_steps(self, interval: float) -> Steps:
        """Renews the lease every ``interval`` seconds until the steps are stopped.

        Raises:
            LogFencedError: another owner has the partition.
        """
        while True:
            yield Pause(interval)
            summary = self._summary() if self._summary is not None else None
            try:
                yield StoreCall(partial(self._mount.renew, self.next_id - 1, summary=summary))
            except LogUnavailableError as error:
                if times := self._unrenewed.happened():
                    event(self._logger, logging.WARNING, "heartbeat not written", log=self._name, times=times,
                          error=error)  # fmt: skip

    def _attempt_steps(self, batch: Batch, nonce: str) -> Steps:
        partition, generation = self._mount.partition, self._mount.generation
        in_way = yield StoreCall(partial(self._store.put_batch, partition, batch, nonce))
        if in_way is not None:
            raise (yield StoreCall(partial(fenced, self._store, partition, generation)))
        if not self._mount.valid():
            yield StoreCall(partial(self._mount.renew, batch.last_id))


def take_steps(steps: Steps, stop: threading.Event) -> None:
    """Takes steps on this thread until they end, or until ``stop`` is set in a pause.

    Raises:
        KainiteError: as the steps; after ``stop``, the pause's error if it has one.
    """
    with contextlib.closing(steps):
        step = next(steps, None)
        while step is not None:
            if isinstance(step, StoreCall):
                step = _sent(steps, _result(step))
            elif not stop.wait(step.seconds):
                step = next(steps, None)
            elif step.error is not None:
                raise step.error
            else:
                return


async def take_steps_async(steps: Steps) -> None:
    """Takes steps until they end: calls on threads, pauses on the event loop. A cancellation ends them anywhere.

    Raises:
        KainiteError: as the steps.
    """
    with contextlib.closing(steps):
        step = next(steps, None)
        while step is not None:
            if isinstance(step, StoreCall):
                step = _sent(steps, await asyncio.to_thread(_result, step))
            else:
                await asyncio.sleep(step.seconds)
                step = next(steps, None)


@contextlib.asynccontextmanager
async def heartbeats_meanwhile(
    store: LogStore, mounted: Mount, interval: float, logger: logging.Logger
) -> AsyncIterator[None]:
    """Keeps a mount by heartbeats while its state is loaded, which may take longer than the lease.

    A heartbeat that finds the mount overtaken ends the heartbeats without an error: the first write will raise it.
    """
    steps = PartitionWriter(store, mounted, mounted.first_id, "log", logger).heartbeat_steps(interval)
    beating = asyncio.create_task(take_steps_async(steps))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Raised:
    error: KainiteError


def _result(call: StoreCall) -> Any:
    """Returns the call's answer, or its error wrapped for the steps, into which it is thrown."""
    try:
        return call.run()
    except KainiteError as error:
        return _Raised(error)


def _sent(steps: Steps, result: Any) -> Step | None:
    """Sends a call's result into the steps; returns the next step, None after the last."""
    try:
        return steps.throw(result.error) if isinstance(result, _Raised) else steps.send(result)
    except StopIteration:
        return None
