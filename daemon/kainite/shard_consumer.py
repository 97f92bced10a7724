"""One shard, from the lease's checkpoint to its end, its loss, or the daemon's: reader, child, log, lease.

States, after KCL's ``ConsumerStates`` (waiting for parent shards is the lease keeper's: it hands out
no shard whose parents are not done):

::

      ┌────────────────► INITIALIZING ──► PROCESSING ──► SHARD_ENDED ──┐
      │                       │  │           │ │ │           │ │       │
      │                  failed  └─────┬─────┘ │ └───┬───────┘ │ done  │
      │                       ▼        │ stop  │lost │         │       │
      └──── retry ───── BACKING_OFF ◄──┼───────┼─────┼─ failed ┘       │
                              │        ▼       ▼     ▼                 ▼
                              │   SHUTDOWN_REQUESTED ──► LEASE_LOST ──► COMPLETE
                              └─────── stop, lost ────────────────────►┘

Invariants:

* Whatever the child does wrong (exits, hangs, breaks the protocol) ends that child alone: it is started
  again after a pause, at the lease's checkpoint, and gets the records from there again. No record is ever
  skipped; a batch that kills every child is reported as poison and tried on at the longest pause.
* A shard's end without a checkpoint of SHARD_END is a failure like any other.
* The child has ended before the lease is let go.

What may be checkpointed and appended when is :mod:`kainite.shard_call`'s. What a crash leaves behind
is described there; this module keeps nothing that outlives the process.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Final

from kainite.child.messages import Action
from kainite.child.process import ChildProcess
from kainite.child.restarts import Restarts
from kainite.errors import ChildError, ChildProtocolError, KainiteError, LeaseLostError, LeaseTableError, StreamError
from kainite.kinesis.batch import RecordBatch, ShardEnd
from kainite.kinesis.client import StreamClient
from kainite.kinesis.reader import ShardReader
from kainite.leases.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END
from kainite.leases.keeper import HeldLease, LeaseKeeper
from kainite.logs import event
from kainite.settings import ChildSettings, StreamSettings
from kainite.shard_call import ShardCalls, UnitsOfWork

logger = logging.getLogger(__name__)


class State(Enum):
    INITIALIZING = auto()
    PROCESSING = auto()
    SHARD_ENDED = auto()
    SHUTDOWN_REQUESTED = auto()
    LEASE_LOST = auto()
    BACKING_OFF = auto()
    COMPLETE = auto()


class Outcome(Enum):
    """How a state ended."""

    DONE = auto()
    FAILED = auto()
    END = auto()  # the shard's end was read
    STOP = auto()  # the daemon stops
    LOST = auto()  # another worker has the lease


TRANSITIONS: Final = {
    (State.INITIALIZING, Outcome.DONE): State.PROCESSING,
    (State.INITIALIZING, Outcome.STOP): State.SHUTDOWN_REQUESTED,
    (State.INITIALIZING, Outcome.LOST): State.LEASE_LOST,
    (State.INITIALIZING, Outcome.FAILED): State.BACKING_OFF,
    (State.PROCESSING, Outcome.END): State.SHARD_ENDED,
    (State.PROCESSING, Outcome.STOP): State.SHUTDOWN_REQUESTED,
    (State.PROCESSING, Outcome.LOST): State.LEASE_LOST,
    (State.PROCESSING, Outcome.FAILED): State.BACKING_OFF,
    (State.SHARD_ENDED, Outcome.DONE): State.COMPLETE,
    (State.SHARD_ENDED, Outcome.LOST): State.LEASE_LOST,
    (State.SHARD_ENDED, Outcome.FAILED): State.BACKING_OFF,
    (State.SHUTDOWN_REQUESTED, Outcome.DONE): State.LEASE_LOST,
    (State.SHUTDOWN_REQUESTED, Outcome.LOST): State.LEASE_LOST,
    (State.SHUTDOWN_REQUESTED, Outcome.FAILED): State.COMPLETE,
    (State.LEASE_LOST, Outcome.DONE): State.COMPLETE,
    (State.LEASE_LOST, Outcome.LOST): State.COMPLETE,
    (State.LEASE_LOST, Outcome.FAILED): State.COMPLETE,
    (State.BACKING_OFF, Outcome.DONE): State.INITIALIZING,
    (State.BACKING_OFF, Outcome.STOP): State.COMPLETE,
    (State.BACKING_OFF, Outcome.LOST): State.COMPLETE,
}


@dataclass(frozen=True, slots=True)
class Parts:
    """What all consumers of a daemon share. ``units`` makes a shard's own, None where they are disabled."""

    stream: StreamClient
    keeper: LeaseKeeper
    stream_settings: StreamSettings
    child_settings: ChildSettings
    units: Callable[[], UnitsOfWork] | None = None


class ShardConsumer:
    """Consumes one shard while its lease is held: :meth:`run`, ended by :meth:`stop` or :meth:`lose`.

    Attributes:
        state: where it is now.
    """

    def __init__(self, lease: HeldLease, parts: Parts) -> None:
        settings = parts.child_settings
        self.state = State.INITIALIZING
        self._lease = lease
        self._shard = lease.shard_id
        self._parts = parts
        self._calls = ShardCalls(lease, parts.keeper, parts.units() if parts.units else None)
        self._restarts = Restarts(settings.restart_backoff, settings.restart_backoff_max, settings.poison_tries)
        self._interrupt: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._child: ChildProcess | None = None
        self._reader: ShardReader | None = None
        self._latest_at: float | None = None  # where LATEST was, when reading began there
        self._end = ShardEnd(())
        self._batch: RecordBatch | None = None  # given to the child, not answered yet
        self._pause = 0.0

    async def run(self) -> None:
        """Run until the shard is done, lost, or stopped; then the child is gone and the lease let go.

        When cancelled, the child is ended at once (TERM, then KILL) and the lease is kept.

        Raises:
            LogError: the log cannot be appended to any more; the daemon cannot go on.
        """
        steps = {
            State.INITIALIZING: self._initialize,
            State.PROCESSING: self._process,
            State.SHARD_ENDED: self._end_shard,
            State.SHUTDOWN_REQUESTED: self._request_shutdown,
            State.LEASE_LOST: self._lose_lease,
            State.BACKING_OFF: self._back_off,
        }
        try:
            while self.state is not State.COMPLETE:
                self.state = TRANSITIONS[self.state, await self._outcome(steps[self.state])]
            await self._close(self._parts.child_settings.shutdown_grace)
            await self._release()
        finally:
            await self._close(0)

    def stop(self) -> None:
        """Finish the call under way, let the child checkpoint, and end it."""
        self._set_interrupt(Outcome.STOP)

    def lose(self) -> None:
        """The lease is lost: finish the call under way, tell the child, and end it."""
        self._set_interrupt(Outcome.LOST)

    def kill(self) -> None:
        """Kill the child now; for a daemon that must end at once."""
        if self._child is not None:
            self._child.kill()

    async def _outcome(self, step: Callable[[], Awaitable[Outcome]]) -> Outcome:
        try:
            return await step()
        except LeaseLostError:
            self._set_interrupt(Outcome.LOST)
            return Outcome.LOST
        except (ChildError, StreamError, LeaseTableError) as error:
            await self._fail(error)
            return Outcome.FAILED

    async def _initialize(self) -> Outcome:
        if (interrupted := self._interrupted()) is not None:
            return interrupted
        self._reader = await self._open_reader()
        self._child = ChildProcess.start(self._shard, self._parts.child_settings)
        await self._calls.begin(Action.INITIALIZE)
        checkpoint = self._lease.checkpoint
        await self._perform(self._child.dialect.initialize(self._shard, checkpoint.sequence, checkpoint.sub))
        return Outcome.DONE

    async def _process(self) -> Outcome:
        while True:
            match await self._next():
                case RecordBatch() as batch:
                    await self._deliver(batch)
                case ShardEnd() as end:
                    self._end = end
                    return Outcome.END
                case Outcome() as interrupted:
                    return interrupted

    async def _end_shard(self) -> Outcome:
        children = self._end.children
        await self._parts.keeper.shard_ended(self._lease, children)
        await self._calls.begin(Action.SHARD_ENDED)
        await self._perform(self._current_child().dialect.shard_ended())
        if self._lease.checkpoint != SHARD_END:
            raise ChildProtocolError(
                f"the child of {self._shard} did not checkpoint at the shard's end: call checkpoint() in shardEnded"
            )
        event(logger, logging.INFO, "shard ended", shard=self._shard, children=",".join(c.id for c in children))
        return Outcome.DONE

    async def _request_shutdown(self) -> Outcome:
        if self._child is not None:
            await self._calls.begin(Action.SHUTDOWN_REQUESTED)
            await self._perform(self._child.dialect.shutdown_requested())
        return Outcome.DONE

    async def _lose_lease(self) -> Outcome:
        if self._child is not None:
            await self._calls.begin(Action.LEASE_LOST)
            await self._perform(self._child.dialect.lease_lost())
        return Outcome.DONE

    async def _back_off(self) -> Outcome:
        await asyncio.wait({self._interrupt}, timeout=self._pause)
        return self._interrupted() or Outcome.DONE

    async def _open_reader(self) -> ShardReader:
        start, settings = self._lease.checkpoint, self._parts.stream_settings
        if start == LATEST and self._latest_at is not None:
            start, settings = AT_TIMESTAMP, replace(settings, initial_timestamp=self._latest_at)
        cut_at = await self._calls.position()
        reader = ShardReader(self._parts.stream, self._shard, start, settings, cut_at=cut_at)
        reader.start()
        return reader

    async def _next(self) -> RecordBatch | ShardEnd | Outcome:
        """What comes first: an interruption, the child's end, or what is read next."""
        assert self._reader is not None
        broken = self._current_child().broken
        reading = asyncio.ensure_future(self._reader.next())
        first: set[asyncio.Future[Any]] = {reading, broken, self._interrupt}
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if (interrupted := self._interrupted()) is not None:
                return interrupted
            if broken.done():
                raise broken.result()
            return await reading
        finally:
            reading.cancel()

    async def _deliver(self, batch: RecordBatch) -> None:
        self._batch = batch
        await self._calls.begin(Action.PROCESS_RECORDS, batch)
        await self._perform(self._current_child().dialect.process_records(batch.line))
        self._batch = None
        self._restarts.passed(batch.first)

    async def _perform(self, request: bytes) -> None:
        await self._current_child().perform(request, answer=self._calls.answer, emitted=self._calls.emitted)
        await self._calls.finish()

    def _current_child(self) -> ChildProcess:
        assert self._child is not None
        return self._child

    async def _fail(self, error: KainiteError) -> None:
        self._calls.abandon()
        child, batch = self._child, self._batch
        culprit = batch.first if batch and isinstance(error, ChildError) else None
        verdict = self._restarts.failed(culprit)
        self._pause = verdict.pause
        event(logger, logging.ERROR, "shard failed", shard=self._shard, state=self.state.name, error=error,
              tries=verdict.tries, pause=verdict.pause)  # fmt: skip
        await self._close(0)
        if verdict.poison and batch and batch.first and batch.last:
            event(logger, logging.ERROR, "poison batch", shard=self._shard, first=batch.first.sequence,
                  last=batch.last.sequence, tries=verdict.tries,
                  stderr="\n".join(child.stderr_tail) if child else None)  # fmt: skip

    async def _close(self, grace: float) -> None:
        """End the child and the reading; may be called again."""
        child, reader = self._child, self._reader
        self._batch = None
        try:
            if reader is not None:
                self._latest_at = self._latest_at or reader.opened_at
                await reader.close()
        finally:  # whatever cancels this, no child is left behind
            if child is not None:
                await child.close(grace)
            self._child = self._reader = None

    async def _release(self) -> None:
        interrupted = self._interrupted()
        if interrupted is not Outcome.LOST:
            # A worker that stops must not take the lease again.
            await self._parts.keeper.release(self._lease, pause=0.0 if interrupted is None else math.inf)

    def _interrupted(self) -> Outcome | None:
        return self._interrupt.result() if self._interrupt.done() else None

    def _set_interrupt(self, outcome: Outcome) -> None:
        if not self._interrupt.done():
            self._interrupt.set_result(outcome)

    def __repr__(self) -> str:
        return f"<ShardConsumer {self._shard} {self.state.name} {self._child!r}>"
