"""Consumes one shard while its lease is held: brings together the shard's source, its child, the log and the lease.

:mod:`kainite.worker.consumer_states` defines the states and their transitions.

Invariants:

* A child that exits, hangs or breaks the protocol ends alone. After a pause a new child is started at the lease's
  checkpoint and gets the records from there again. A batch that kills every child is reported as poison and tried
  again at the longest pause. No record is ever skipped, unless a policy of the markers dialect says so
  (:mod:`kainite.child.markers.death_policy`); then the record is reported.
* A shard's end without a checkpoint of SHARD_END is a failure like any other.
* The child has ended before the lease is given back.
* A restart that a person asks for is a crash that nobody counts (:mod:`kainite.worker.child_restart`).

:mod:`kainite.worker.call_rules` decides what may be checkpointed and appended, and when, and describes what a crash
leaves behind; no state of this module outlives the process.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from kainite.base.checkpoint import LATEST, SHARD_END
from kainite.base.errors import (
    ChildError,
    ChildProtocolError,
    KainiteError,
    LeaseLostError,
    LeaseTableError,
    LogRequestError,
    LogUnavailableError,
    StreamError,
)
from kainite.base.logs import event
from kainite.child.events import Action, Rejected
from kainite.child.process import ChildProcess
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd
from kainite.kinesis.read.shard_source import OpenSource
from kainite.leases.keeper import HeldLease, LeaseKeeper
from kainite.observe.meter import SILENT, Meter
from kainite.observe.shard_status import ShardStatus, Standstill
from kainite.settings import ChildSettings, StreamSettings
from kainite.worker.child_failures import ChildFailures
from kainite.worker.child_restart import ChildRestart, TellRestarted
from kainite.worker.consumer_states import TRANSITIONS, ConsumerState, StateOutcome
from kainite.worker.output_stream import NewOutput
from kainite.worker.shard_call import ShardCalls, span_of
from kainite.worker.shard_metrics import ShardMetrics
from kainite.worker.shard_reading import ShardReading
from kainite.worker.units_of_work import NewUnitsOfWork

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConsumerParts:
    """The parts that all consumers of a daemon share.

    Attributes:
        open_source: makes a shard's source, which renders batches for the children's dialect.
        keeper: holds the leases.
        stream_settings: how shards are read.
        child_settings: how children are run.
        units: makes the units of work of one shard; None where they are disabled.
        meter: takes the metrics.
        output: makes the way of one shard's messages to the output stream; None without one.
    """

    open_source: OpenSource
    keeper: LeaseKeeper
    stream_settings: StreamSettings
    child_settings: ChildSettings
    units: NewUnitsOfWork | None = None
    meter: Meter = SILENT
    output: NewOutput | None = None


class ShardConsumer:
    """Consumes one shard while its lease is held: :meth:`run`.

    Its owner ends it with :meth:`stop`, :meth:`hand_over` or :meth:`lose`; the first call counts.

    Args:
        lease: the shard's lease.
        parts: called before each child's start, so that changed settings hold for the next child.

    Attributes:
        state: the current state.
    """

    def __init__(self, lease: HeldLease, parts: Callable[[], ConsumerParts]) -> None:
        self.state = ConsumerState.INITIALIZING
        self._lease = lease
        self._shard = lease.shard_id
        self._current_parts = parts
        self._parts = parts()
        settings, units, output = self._parts.child_settings, self._parts.units, self._parts.output
        self.reading = ShardReading(lease)
        self._calls = ShardCalls(lease, self._parts.keeper, units() if units else None, output() if output else None)
        self._metrics = ShardMetrics(lease.shard_id, self._parts.meter)
        self._failures = ChildFailures(lease.shard_id, settings)
        self._restart = ChildRestart()
        self._last_words: tuple[str, ...] = ()  # of the child that ended last
        self._interrupt: asyncio.Future[StateOutcome] = asyncio.get_running_loop().create_future()
        self._child: ChildProcess | None = None
        self._end = ShardEnd(())
        self._batch: RecordBatch | None = None  # the batch that the child has and has not answered yet
        self._pause = 0.0
        self._moved_at = asyncio.get_running_loop().time()  # when the state, or the batch in hand, was last another one

    async def run(self) -> None:
        """Runs until the shard is done, lost or stopped; then the child has ended and the lease is given back.

        When cancelled, ends the child at once (TERM, then KILL) and keeps the lease.

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
                self._moved_at = asyncio.get_running_loop().time()
            await self._ends()
            await self._close()
            await self._release()
        finally:
            self._calls.abandon()
            await self._close()

    def stop(self) -> None:
        """Finishes the current call, lets the child checkpoint, and ends it."""
        self._set_interrupt(StateOutcome.STOP)

    def hand_over(self) -> None:
        """Ends the child as :meth:`stop` does, then hands the lease to its next worker (docs/kcl.md, *Leases*)."""
        self._set_interrupt(StateOutcome.HAND_OVER)

    def lose(self) -> None:
        """Finishes the current call, tells the child that the lease is lost, and ends it."""
        self._set_interrupt(StateOutcome.LOST)

    def restart(self, tell: TellRestarted) -> None:
        """Ends the child as a crash does, and starts another one at once; ``tell`` is told what has become of it."""
        if self._interrupt.done() or self.state is ConsumerState.COMPLETE:
            tell(False, "the shard is being given up, and its child is ending anyway")
            return
        self._restart.ask(self._child.pid if self._child else None, tell)
        if self._child is not None:
            event(logger, logging.INFO, "child ended by a person", shard=self._shard, pid=self._child.pid)
            self._child.crash()

    def kill(self) -> None:
        """Kills the child now; for a daemon that must end at once."""
        if self._child is not None:
            self._child.kill()

    def status(self) -> ShardStatus:
        """Returns what the consumer and its child do at this moment."""
        child = self._child
        silent = child.silent if child else None
        said = _said(child) or self._last_words
        return ShardStatus(
            self._shard,
            self.state.name,
            pid=child.pid if child else None,
            action=str(child.dialect.action) if child and silent is not None else None,
            silent=silent,
            behind_ms=self.reading.millis_behind_latest,
            last_record=self._metrics.since_records,
            failures=self._failures.count,
            stderr=said[-1] if said else "",
            stderr_lines=said,
            records=self._metrics.records,
            standstill=self._standstill(child) if silent is None else None,
            throttled=self.reading.throttled,
        )

    def _standstill(self, child: ChildProcess | None) -> Standstill | None:
        """Returns for how long the shard has not got on, while its child is not asked; None while it gets on."""
        moved = asyncio.get_running_loop().time() - self._moved_at
        if self.state is not ConsumerState.PROCESSING or child is None:
            return Standstill(moved, f"no child is at work in state {self.state.name}")
        if self._batch is None:
            return self.reading.standstill
        taker = "the log" if self._parts.units else "the output stream" if self._parts.output else "the lease table"
        return Standstill(min(moved, child.since_heard), f"{taker} does not take what the child has answered")

    async def _outcome(self, step: Callable[[], Awaitable[StateOutcome]]) -> StateOutcome:
        try:
            return await step()
        except LeaseLostError:
            self._set_interrupt(StateOutcome.LOST)
            return StateOutcome.LOST
        except (ChildError, StreamError, LeaseTableError, LogRequestError, LogUnavailableError) as error:
            # LogRequestError: another holder of the shard has appended meanwhile; reading begins behind its append.
            # LogUnavailableError: a merge's other parent needs a first lease, and the log's beginning is not noted.
            await self._fail(error)
            return StateOutcome.FAILED

    async def _initialize(self) -> StateOutcome:
        if (interrupted := self._interrupted()) is not None:
            return interrupted
        self._parts = self._current_parts()
        await self._open_reading(self._parts.open_source, self._parts.stream_settings)
        self._child = ChildProcess.start(self._shard, self._parts.child_settings)
        await self._calls.begin(Action.INITIALIZE)
        checkpoint = self._lease.checkpoint
        self._failures.begin(self._parts.child_settings, checkpoint.position)
        await self._perform(self._child.dialect.initialize(self._shard, checkpoint.sequence, checkpoint.sub))
        self._restart.begun(self._child.pid, checkpoint)
        return StateOutcome.DONE

    async def _open_reading(self, open_source: OpenSource, settings: StreamSettings) -> None:
        collected = await self._calls.position()
        known = collected is not None and self._lease.checkpoint == LATEST
        begun = None if known else await self._calls.log_begun(settings.initial_timestamp)
        self.reading.open(open_source, settings, collected, begun)

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
            return StateOutcome.DONE  # shardEnded is a child's last call: leaseLost must not follow it
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
        either: set[asyncio.Future[Any]] = {self._interrupt, self._restart.wait()}
        await asyncio.wait(either, timeout=self._pause, return_when=asyncio.FIRST_COMPLETED)
        return self._interrupted() or StateOutcome.DONE

    async def _next(self) -> RecordBatch | ShardEnd | StateOutcome:
        """Returns an interruption or the next batch, whichever comes first; raises if the child breaks before that."""
        broken = self._current_child().broken
        reading = asyncio.ensure_future(self._read())
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

    async def _read(self) -> RecordBatch | ShardEnd:
        await self._calls.turn(self.reading.reached.arrived_ms)
        return await self.reading.next()

    async def _deliver(self, batch: RecordBatch) -> None:
        self._batch, self._moved_at = batch, asyncio.get_running_loop().time()
        await self._calls.begin(Action.PROCESS_RECORDS, batch)
        child = self._current_child()
        child.send(*child.dialect.process_records(self._failures.mark(batch.take_line())))
        await self._serve(child)
        self._batch = None
        self._failures.passed(batch)
        self._lease.count_bytes(batch.payload_bytes)
        self._metrics.processed(batch)

    async def _perform(self, request: bytes) -> None:
        child = self._current_child()
        child.send(request)
        await self._serve(child)

    async def _serve(self, child: ChildProcess) -> None:
        assert child.dialect.action is not None
        with self._metrics.timing(child.dialect.action, self._parts.child_settings.warn_after):
            await child.serve(answer=self._calls.answer, emitted=self._calls.emitted, rejected=self._rejected)
        await self._calls.finish()

    def _rejected(self, records: Rejected) -> None:
        if self._calls.rejected(records):
            self._metrics.rejected()

    def _current_child(self) -> ChildProcess:
        assert self._child is not None
        return self._child

    async def _fail(self, error: KainiteError) -> None:
        self._calls.abandon()
        if isinstance(error, ChildError) and self._restart.takes():
            self._pause, self._last_words = 0.0, _said(self._child) or self._last_words
            await self._close()
            return
        self._restart.failed(error)
        child, batch, settings = self._child, self._batch, self._parts.child_settings
        if isinstance(error, ChildError):
            self._metrics.child_failed()
        if child is not None and batch is not None and isinstance(error, ChildError):
            failure = self._failures.failed(
                error, self.state, settings,
                batch=span_of(batch), in_flight=child.dialect.under_way, answered=child.dialect.has_answered,
            )  # fmt: skip
        else:
            failure = self._failures.failed(error, self.state, settings)
        self._pause = failure.pause
        try:
            await self._close()
        finally:  # also when this is cancelled: a failure is never silent
            self._last_words = _said(child) or self._last_words
            self._failures.report(failure, tuple(child.stderr_tail) if child else ())

    async def _ends(self) -> None:
        """Ends the reading and the child's input, and gives the child its grace to end."""
        self._batch = None
        await self.reading.close()
        if self._child is not None:
            await self._child.ends(self._parts.child_settings.shutdown_grace)

    async def _close(self) -> None:
        """Ends the reading, and the child (TERM, then KILL) if it has not ended; may be called again."""
        child = self._child
        self._batch = None
        try:
            await self.reading.close()
        finally:  # also when this is cancelled: no child is left behind
            if child is not None:
                await child.close(0)
            self._child = None

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


def _said(child: ChildProcess | None) -> tuple[str, ...]:
    """Returns the last lines of a child's standard error; none where it has written none."""
    return tuple(child.stderr_tail) if child is not None else ()
