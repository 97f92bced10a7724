"""One shard, from the lease's checkpoint to its end, its loss, or the daemon's: source, child, log, lease.

Its states are :mod:`kainite.worker.consumer_states`'s.

Invariants:

* Whatever the child does wrong (exits, hangs, breaks the protocol) ends that child alone: it is started
  again after a pause, at the lease's checkpoint, and gets the records from there again. A batch that kills
  every child is reported as poison and tried on at the longest pause. No record is ever skipped, unless a
  policy of the markers dialect says so (:mod:`kainite.child.markers.death_policy`); then it is reported.
* A shard's end without a checkpoint of SHARD_END is a failure like any other.
* The child has ended before the lease is let go.

What may be checkpointed and appended when is :mod:`kainite.worker.shard_call`'s. What a crash leaves behind
is described there; this module keeps nothing that outlives the process.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END
from kainite.base.errors import (
    ChildError,
    ChildProtocolError,
    KainiteError,
    LeaseLostError,
    LeaseTableError,
    StreamError,
)
from kainite.base.logs import event
from kainite.child.events import Action, Rejected, Span
from kainite.child.markers.death_policy import DeathPolicy
from kainite.child.process import ChildProcess
from kainite.child.restart_policy import AT_SHARD_END, RestartPolicy
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd
from kainite.kinesis.read.shard_source import OpenSource, ShardSource
from kainite.leases.keeper import HeldLease, LeaseKeeper
from kainite.observe.meter import SILENT, Meter
from kainite.observe.shard_status import ShardStatus
from kainite.settings import ChildSettings, StreamSettings
from kainite.worker.consumer_states import TRANSITIONS, ConsumerState, StateOutcome
from kainite.worker.shard_call import ShardCalls
from kainite.worker.shard_metrics import ShardMetrics
from kainite.worker.units_of_work import UnitsOfWork

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConsumerParts:
    """What all consumers of a daemon share.

    Attributes:
        open_source: makes a shard's source; it renders batches for the children's dialect.
        units: makes a shard's own, None where units of work are disabled.
    """

    open_source: OpenSource
    keeper: LeaseKeeper
    stream_settings: StreamSettings
    child_settings: ChildSettings
    units: Callable[[], UnitsOfWork] | None = None
    meter: Meter = SILENT


class ShardConsumer:
    """Consumes one shard while its lease is held: :meth:`run`.

    Ended from outside by :meth:`stop`, :meth:`hand_over` or :meth:`lose`; the first one counts.

    Args:
        lease: the shard's.
        parts: asked before each child's start, so that changed settings hold for the next child.

    Attributes:
        state: where it is now.
    """

    def __init__(self, lease: HeldLease, parts: Callable[[], ConsumerParts]) -> None:
        self.state = ConsumerState.INITIALIZING
        self._lease = lease
        self._shard = lease.shard_id
        self._current_parts = parts
        self._parts = parts()
        settings, units = self._parts.child_settings, self._parts.units
        self._calls = ShardCalls(lease, self._parts.keeper, units() if units else None)
        self._figures = ShardMetrics(lease.shard_id, self._parts.meter)
        self._restarts = RestartPolicy(settings.restart_backoff, settings.restart_backoff_max, settings.poison_tries)
        self._deaths = DeathPolicy()
        self._interrupt: asyncio.Future[StateOutcome] = asyncio.get_running_loop().create_future()
        self._child: ChildProcess | None = None
        self._source: ShardSource | None = None
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
            ConsumerState.INITIALIZING: self._initialize,
            ConsumerState.PROCESSING: self._process,
            ConsumerState.SHARD_ENDED: self._end_shard,
            ConsumerState.SHUTDOWN_REQUESTED: self._request_shutdown,
            ConsumerState.LEASE_LOST: self._lose_lease,
            ConsumerState.BACKING_OFF: self._back_off,
        }
        try:
            while self.state is not ConsumerState.COMPLETE:
                self.state = TRANSITIONS[self.state, await self._outcome(steps[self.state])]
            await self._close(self._parts.child_settings.shutdown_grace)
            await self._release()
        finally:
            await self._close(0)

    def stop(self) -> None:
        """Finish the call under way, let the child checkpoint, and end it."""
        self._set_interrupt(StateOutcome.STOP)

    def hand_over(self) -> None:
        """As :meth:`stop`; then the lease goes to the worker it is assigned to (KCL's graceful handoff)."""
        self._set_interrupt(StateOutcome.HAND_OVER)

    def lose(self) -> None:
        """The lease is lost: finish the call under way, tell the child, and end it."""
        self._set_interrupt(StateOutcome.LOST)

    def kill(self) -> None:
        """Kill the child now; for a daemon that must end at once."""
        if self._child is not None:
            self._child.kill()

    def status(self) -> ShardStatus:
        """What it does at this moment."""
        child, source = self._child, self._source
        silent = child.silent if child else None
        return ShardStatus(
            self._shard,
            self.state.name,
            pid=child.pid if child else None,
            action=str(child.dialect.action) if child and silent is not None else None,
            silent=silent,
            behind_ms=source.millis_behind_latest if source else None,
            last_record=self._figures.since_records,
            failures=self._restarts.tries,
        )

    async def _outcome(self, step: Callable[[], Awaitable[StateOutcome]]) -> StateOutcome:
        try:
            return await step()
        except LeaseLostError:
            self._set_interrupt(StateOutcome.LOST)
            return StateOutcome.LOST
        except (ChildError, StreamError, LeaseTableError) as error:
            await self._fail(error)
            return StateOutcome.FAILED

    async def _initialize(self) -> StateOutcome:
        if (interrupted := self._interrupted()) is not None:
            return interrupted
        self._parts = self._current_parts()
        self._source = await self._open_source()
        self._child = ChildProcess.start(self._shard, self._parts.child_settings)
        await self._calls.begin(Action.INITIALIZE)
        checkpoint = self._lease.checkpoint
        self._deaths.begin(self._parts.child_settings, checkpoint.position)
        await self._perform(self._child.dialect.initialize(self._shard, checkpoint.sequence, checkpoint.sub))
        return StateOutcome.DONE

    async def _process(self) -> StateOutcome:
        while True:
            match await self._next():
                case RecordBatch() as batch:
                    await self._deliver(batch)
                case ShardEnd() as end:
                    self._end = end
                    return StateOutcome.END
                case StateOutcome() as interrupted:
                    return interrupted

    async def _end_shard(self) -> StateOutcome:
        children = self._end.children
        await self._parts.keeper.shard_ended(self._lease, children)
        await self._calls.begin(Action.SHARD_ENDED)
        await self._perform(self._current_child().dialect.shard_ended())
        if self._lease not in self._parts.keeper.held:
            self._set_interrupt(StateOutcome.LOST)
            return StateOutcome.DONE  # shardEnded is a child's last call: nothing is left to tell it
        if self._lease.checkpoint != SHARD_END:
            raise ChildProtocolError(
                f"the child of {self._shard} did not checkpoint at the shard's end and is asked again until it does: "
                "call checkpoint() without a sequence number in shardEnded (json-lines-v0: shutdown with TERMINATE)"
            )
        event(logger, logging.INFO, "shard ended", shard=self._shard, children=",".join(c.id for c in children))
        return StateOutcome.DONE

    async def _request_shutdown(self) -> StateOutcome:
        if self._child is not None:
            await self._calls.begin(Action.SHUTDOWN_REQUESTED)
            if (request := self._child.dialect.shutdown_requested()) is not None:
                await self._perform(request)
        return StateOutcome.DONE

    async def _lose_lease(self) -> StateOutcome:
        if self._child is not None:
            await self._calls.begin(Action.LEASE_LOST)
            await self._perform(self._child.dialect.lease_lost())
        return StateOutcome.DONE

    async def _back_off(self) -> StateOutcome:
        await asyncio.wait({self._interrupt}, timeout=self._pause)
        return self._interrupted() or StateOutcome.DONE

    async def _open_source(self) -> ShardSource:
        start, settings = self._lease.checkpoint, self._parts.stream_settings
        if start == LATEST and self._latest_at is not None:
            start, settings = AT_TIMESTAMP, replace(settings, initial_timestamp=self._latest_at)
        cut_at = await self._calls.position()
        hash_range = self._lease.lease.hash_range
        source = self._parts.open_source(self._shard, hash_range, start, settings, cut_at=cut_at)
        source.start()
        return source

    async def _next(self) -> RecordBatch | ShardEnd | StateOutcome:
        """What comes first: an interruption, the child's end, or what is read next."""
        assert self._source is not None
        broken = self._current_child().broken
        reading = asyncio.ensure_future(self._source.next())
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
        await self._perform(self._current_child().dialect.process_records(self._deaths.mark(batch.line)))
        self._batch = None
        self._restarts.passed(batch.first, batch.last)
        self._lease.count_bytes(batch.payload_bytes)
        self._figures.processed(batch)

    async def _perform(self, request: bytes) -> None:
        child = self._current_child()
        assert child.dialect.action is not None
        with self._figures.timing(child.dialect.action, self._parts.child_settings.warn_after):
            await child.perform(
                request, answer=self._calls.answer, emitted=self._calls.emitted, rejected=self._rejected
            )
        await self._calls.finish()

    def _rejected(self, records: Rejected) -> None:
        self._calls.rejected(records)
        self._figures.rejected()

    def _current_child(self) -> ChildProcess:
        assert self._child is not None
        return self._child

    async def _fail(self, error: KainiteError) -> None:
        self._calls.abandon()
        child, settings = self._child, self._parts.child_settings
        under_way, batch = self._under_way(error)
        culprit = under_way or batch
        place = AT_SHARD_END if self.state is ConsumerState.SHARD_ENDED else culprit.first if culprit else None
        verdict = self._restarts.failed(place)
        if isinstance(error, ChildError):
            self._figures.child_failed()
        left_out = False
        if child is not None and under_way is not None:
            answered = child.dialect.has_answered
            left_out = self._deaths.died(under_way, verdict.tries, error, settings, answered=answered)
        self._pause = settings.restart_backoff if left_out else verdict.pause
        event(logger, logging.ERROR, "shard failed", shard=self._shard, state=self.state.name, error=error,
              tries=verdict.tries, pause=self._pause)  # fmt: skip
        await self._close(0)
        if culprit and (left_out or verdict.poison):
            event(logger, logging.ERROR, "records left out" if left_out else "poison batch", shard=self._shard,
                  first=culprit.first.sequence, last=culprit.last.sequence, tries=verdict.tries,
                  stderr="\n".join(child.stderr_tail) if child else None)  # fmt: skip

    def _under_way(self, error: KainiteError) -> tuple[Span | None, Span | None]:
        """What the child failed on: the part of the batch where the dialect knows it, and the batch."""
        child, batch = self._child, self._batch
        if child is None or batch is None or not isinstance(error, ChildError):
            return None, None
        return child.dialect.under_way, Span(batch.first, batch.last) if batch.first and batch.last else None

    async def _close(self, grace: float) -> None:
        """End the child and the reading; may be called again."""
        child, source = self._child, self._source
        self._batch = None
        try:
            if source is not None:
                self._latest_at = self._latest_at or source.opened_at
                await source.close()
        finally:  # whatever cancels this, no child is left behind
            if child is not None:
                await child.close(grace)
            self._child = self._source = None

    async def _release(self) -> None:
        match self._interrupted():
            case StateOutcome.LOST:
                pass
            case StateOutcome.HAND_OVER:
                await self._parts.keeper.hand_over(self._lease)
            case StateOutcome.STOP:  # a worker that stops must not take the lease again
                await self._parts.keeper.release(self._lease, pause=math.inf)
            case _:
                await self._parts.keeper.release(self._lease)

    def _interrupted(self) -> StateOutcome | None:
        return self._interrupt.result() if self._interrupt.done() else None

    def _set_interrupt(self, outcome: StateOutcome) -> None:
        if not self._interrupt.done():
            self._interrupt.set_result(outcome)

    def __repr__(self) -> str:
        return f"<ShardConsumer {self._shard} {self.state.name} {self._child!r}>"
