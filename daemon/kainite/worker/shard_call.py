"""The calls of one shard's child: carries out what :mod:`kainite.worker.call_rules` decides.

The rules say what is collected, appended and checkpointed, and in which order. This module asks the log and the lease,
waits for both, tries an append again while the log is unavailable, and reports what happened. An output stream takes
the log's place where the settings name one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

from kainite.base.checkpoint import Checkpoint
from kainite.base.clock import boot_seconds
from kainite.base.errors import LeaseLostError, LeaseTableError, LogUnavailableError
from kainite.base.logs import event
from kainite.base.now_and_then import Counted
from kainite.base.position import Position
from kainite.base.retry import Backoff, only, retry_async
from kainite.child.events import Action, CheckpointRequested, Rejected, Span
from kainite.kinesis.read.record_batch import RecordBatch
from kainite.leases.holding.checkpoint_requests import error_name
from kainite.leases.keeper import HeldLease
from kainite.worker.beginning import proposed_ms, warn_if_kept
from kainite.worker.call_rules import AppendCall, CallRules, EmitHandling, RefusedCheckpoint, Step, WriteCheckpoint
from kainite.worker.heavy_work import OFF_LOOP_BYTES
from kainite.worker.output_stream import ShardOutput
from kainite.worker.units_of_work import UnitsOfWork

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

TURN_S = 0.25
"""Seconds between two looks whether a shard that waits for others may be read again."""

APPEND_BACKOFF = Backoff((0.1, 0.2, 0.5, 1.0, 2.0, 5.0))
"""Seconds before an append is tried again while the log is unavailable; the last one repeats."""


class Checkpoints(Protocol):
    """The store of checkpoints: :class:`~kainite.leases.keeper.LeaseKeeper`."""

    async def checkpoint(self, lease: HeldLease, checkpoint: Checkpoint) -> None: ...


def span_of(batch: RecordBatch | None) -> Span | None:
    """Returns the places of a batch's records; None for an empty batch, and for none."""
    if batch is None or batch.first is None or batch.last is None:
        return None
    return Span(batch.first, batch.last)


class ShardCalls:
    """The calls of one shard's child, one after another: :meth:`begin`, then :meth:`finish` or :meth:`abandon`.

    Args:
        lease: the shard's lease.
        checkpoints: stores checkpoints.
        units: None where units of work are disabled.
        output: where the child's messages are put; None without an output stream. Not together with ``units``.
    """

    def __init__(
        self,
        lease: HeldLease,
        checkpoints: Checkpoints,
        units: UnitsOfWork | None,
        output: ShardOutput | None = None,
    ) -> None:
        self._lease = lease
        self._checkpoints = checkpoints
        self._units = units
        self._output = output
        self._rules = CallRules(lease.shard_id, collecting=units is not None or output is not None)
        self._put_off = Counted(boot_seconds)
        self._told: set[Span] = set()  # records beyond the checkpoint that were reported as not processed
        self._warned = False  # that this child's emits are skipped
        self._fed = 0  # bytes of emit lines that the admission holds
        self._arrived_ms: int | None = None  # the arrival of the call's last record
        self._reached: Position | None = None  # the shard's position in the log, before the call's append

    async def position(self) -> Position | None:
        """Returns how far the log has collected the shard; None when it holds nothing of the shard."""
        return await self._units.log.position(self._lease.shard_id) if self._units else None

    async def log_begun(self, timestamp: float | None) -> float | None:
        """Returns the log's beginning, durably noted, where the shard is read from there (epoch seconds).

        None where the lease or the log has a place of its own for the shard, and without units of work.

        Args:
            timestamp: the time that AT_TIMESTAMP stands for, epoch seconds.

        Raises:
            StreamError: Kinesis does not tell its time.
        """
        units, checkpoint = self._units, self._lease.checkpoint
        if units is None:
            return None
        at_ms = await proposed_ms(checkpoint, timestamp, units.stream_time)
        if at_ms is None:
            return None
        begun_ms = await self._until_durable(partial(units.log.begin, at_ms, self._lease.lease.stream))
        warn_if_kept(checkpoint, at_ms, begun_ms, self._lease.shard_id)
        return begun_ms / 1000

    async def turn(self, arrived_ms: int | None) -> None:
        """Waits while the shard is too far ahead of others to be read on (:mod:`kainite.owner.reading_turn`).

        Args:
            arrived_ms: the arrival of the shard's last record that is done with; None before the first one.
        """
        while self._units is not None and arrived_ms is not None:
            hold_ms = self._units.log.hold_ms
            if hold_ms is None or arrived_ms <= hold_ms:
                return
            await asyncio.sleep(TURN_S)

    async def begin(self, action: Action, batch: RecordBatch | None = None) -> None:
        """Begins a call; ``initialize`` begins the calls of another child.

        Args:
            action: the action that the child is asked for.
            batch: the batch that the child gets.
        """
        if action is Action.INITIALIZE:
            self._warned = False
        records = span_of(batch)
        self._arrived_ms = batch.arrival_ms if batch is not None else None
        self._reached = None if records is None else await self.position()
        self._rules.begin(action, records, self._reached)

    def emitted(self, line: bytes) -> Awaitable[None] | None:
        """Takes an emit line; returns an awaitable if the next line must wait for it, otherwise None.

        Raises:
            ChildProtocolError: the child must not emit now.
        """
        match self._rules.emitted():
            case EmitHandling.COLLECT if self._units is not None:
                waiting = self._units.room.take(len(line))
                return self._collect(self._units, line) if waiting is None else self._collect_in_turn(waiting, line)
            case EmitHandling.COLLECT if self._output is not None:
                return self._output.take(line)
            case EmitHandling.SKIP:
                self._warn_once()
        return None

    def _collect(self, units: UnitsOfWork, line: bytes) -> Awaitable[None] | None:
        self._fed += len(line)
        feed = partial(units.admission.feed, line)
        if len(line) >= OFF_LOOP_BYTES:
            # The loop renews leases, so it must not parse a line of megabytes.
            return units.heavy.run(len(line), feed)
        feed()
        return None

    async def _collect_in_turn(self, waiting: Awaitable[None], line: bytes) -> None:
        await waiting
        assert self._units is not None
        if (collecting := self._collect(self._units, line)) is not None:
            await collecting

    def rejected(self, records: Rejected) -> bool:
        """Takes records that the child did not process, and passes them; returns whether they were reported now.

        They are reported once by this consumer, however often they are delivered.
        """
        if not self._rules.rejected():
            return False
        place, cause = records.span, records.cause
        if self._units is not None:
            text = records.payload.decode("utf-8", "replace")
            self._units.admission.reject(f"invalid:{self._lease.shard_id}:{place.first}", f"{place}: {cause}", text)
        if place in self._told:
            return False  # the same records were delivered again, after the report
        self._told.add(place)
        event(logger, logging.ERROR, "message rejected", shard=self._lease.shard_id,
              first=str(place.first), last=str(place.last), cause=cause)  # fmt: skip
        return True

    async def answer(self, request: CheckpointRequested) -> str | None:
        """Decides a checkpoint request: returns None when it is granted, else the name of KCL's exception."""
        decided = self._rules.requested(request, self._lease.checkpoint)
        if not isinstance(decided, RefusedCheckpoint):
            return await self._carry_out(decided)
        if decided.cause is not None:
            event(logger, logging.WARNING, "checkpoint refused", shard=self._lease.shard_id, cause=decided.cause)
        return decided.error.value

    async def finish(self) -> None:
        """Ends a call that the child answered: makes its emits durable, then writes the checkpoint that is owed."""
        await self._carry_out(self._rules.finished())

    def abandon(self) -> None:
        """Ends a call in which the child failed, or the last one: drops its emits; its records will come again."""
        self._rules.abandoned()
        if self._units is not None:
            self._units.admission.drop()
            self._units.room.give_back()
            self._fed = 0
        if self._output is not None:
            self._output.drop()

    async def _carry_out(self, steps: tuple[Step, ...]) -> str | None:
        """Carries the steps out in order; returns the name of KCL's exception for a checkpoint that was not written."""
        for step in steps:
            match step:
                case AppendCall(records) if self._units is not None:
                    await self._append(self._units, records)
                    self._rules.appended()
                case AppendCall() if self._output is not None:
                    await self._output.put(self._lease.shard_id)
                    self._rules.appended()
                case WriteCheckpoint(checkpoint) if (error := await self._write(checkpoint)) is not None:
                    return error
        return None

    async def _write(self, checkpoint: Checkpoint) -> str | None:
        try:
            await self._checkpoints.checkpoint(self._lease, checkpoint)
        except (LeaseLostError, LeaseTableError) as error:
            name = error_name(error)
            event(logger, logging.WARNING, "checkpoint not written", shard=self._lease.shard_id,
                  checkpoint=checkpoint, error=error)  # fmt: skip
            return name.value
        self._rules.written(checkpoint)
        # Records up to the checkpoint do not come again, so nothing needs to be remembered of them.
        self._told = {
            span for span in self._told if checkpoint.position is not None and span.last > checkpoint.position
        }
        return None

    async def _append(self, units: UnitsOfWork, records: Span) -> None:
        shard = self._lease.shard_id
        units.room.appending = True
        take = partial(units.admission.take, f"invalid:{shard}:{records.first.sequence}", self._arrived_ms)
        size, self._fed = self._fed, 0
        await units.settle()
        fragments = await units.heavy.run(size, take)
        place = shard, records.first, records.last
        await self._until_durable(partial(units.log.append, *place, fragments, self._reached))
        units.room.give_back()

    async def _until_durable(self, put: Callable[[], Awaitable[_T]]) -> _T:
        """Asks the log, again and again while it is unavailable."""
        shard = self._lease.shard_id

        def put_off(error: Exception, failures: int, pause: float) -> None:
            if times := self._put_off.happened():
                event(logger, logging.WARNING, "append put off", shard=shard, times=times, pause=pause, error=error)

        return await retry_async(put, APPEND_BACKOFF, retryable=only(LogUnavailableError), failed=put_off)

    def _warn_once(self) -> None:
        if not self._warned:
            self._warned = True
            event(logger, logging.WARNING, "deltas skipped: units of work are not enabled (unitsOfWork)",
                  shard=self._lease.shard_id)  # fmt: skip
