"""What a child asks for and gives while it works: checkpoints and emits, brought into the right order.

Rules
=====

* One ``processRecords`` call is one append: all that was emitted in it, with the positions of the
  call's first and last record. It is durable before the next batch is sent. A call that emitted
  nothing appends nothing.
* A checkpoint is never written beyond what is durable in the log. All calls before the current one
  are durable, so it only matters where the request points to:

  ============================  ================================================================
  to an earlier call's record   the lease is written at once
  to this call's last record    what was emitted so far is appended, then the lease is written; when
                                nothing was, it is *owed* until the call ends, for it may come yet
  to a record between           when something was emitted, success is answered, and the lease is
                                owed until the call's append is durable; else it is written at once
  ============================  ================================================================

* What is emitted after a call's append was forced by a checkpoint has no place any more: the child
  said that it was done. That is a protocol error, and so is emitting outside ``processRecords``, where no
  records stand behind it.
* Records at or before the log's position come in calls of their own (the reader cuts there): what a child emits
  for them is in the log already, and is discarded.
* What was rejected (a bad message, records that are left out) is logged and, where units of work are collected, is a
  failed unit of its own, appended with the call: as durable as what was emitted.
* Where units of work are disabled, emit lines are skipped with one warning a child, as KCL skips them.

What a crash leaves behind
==========================

* before the append        nothing: the records are delivered again, and emit again;
* after the append         a log position beyond the checkpoint: the records are delivered again,
                           their emits are recognised;
* after the lease's write  nothing to be done again.

A child that dies in a call leaves the first of these, or, after a forced append, the second.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import ChildProtocolError, LeaseLostError, LeaseTableError, LogUnavailableError
from kainite.base.logs import event
from kainite.base.position import Position
from kainite.child.events import Action, CheckpointRequested, Rejected
from kainite.kinesis.read.batch import RecordBatch
from kainite.leases.holding.checkpoint_requests import (
    CheckpointErrorName,
    CheckpointRequest,
    Refusal,
    error_name,
    judge,
)
from kainite.leases.keeper import HeldLease
from kainite.log.client import LogClient
from kainite.uow.admission import Admission

logger = logging.getLogger(__name__)

APPEND_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before an append is tried again while the log is unavailable; the last one repeats."""

REJECTIONS_LOGGED = 10
"""Most rejections of one call that are logged one by one."""

_WITHOUT_CHECKPOINTER = (Action.INITIALIZE, Action.LEASE_LOST)


class Checkpoints(Protocol):
    """Where checkpoints are stored: :class:`~kainite.leases.keeper.LeaseKeeper`."""

    async def checkpoint(self, lease: HeldLease, checkpoint: Checkpoint) -> None: ...


@dataclass(frozen=True, slots=True)
class UnitsOfWork:
    """What it takes to bring a shard's emits to the log."""

    log: LogClient
    admission: Admission


@dataclass(slots=True)
class _Call:
    """The call under way. ``pending``: something was emitted that is not in the log."""

    action: Action
    first: Position | None = None
    last: Position | None = None
    known: bool = False  # its records are in the log already
    pending: bool = False
    appended: bool = False
    rejected: int = 0


class ShardCalls:
    """The calls of one shard's child, one after another: :meth:`begin`, then :meth:`finish` or :meth:`abandon`.

    Args:
        lease: the shard's.
        checkpoints: stores checkpoints.
        units: None where units of work are disabled.
    """

    def __init__(self, lease: HeldLease, checkpoints: Checkpoints, units: UnitsOfWork | None) -> None:
        self._lease = lease
        self._checkpoints = checkpoints
        self._units = units
        self._call = _Call(Action.INITIALIZE)
        self._delivered: Position | None = None  # the last record given to this child
        self._done: Position | None = None  # the last record of the calls before this one
        self._owed: Checkpoint | None = None  # granted, not written yet
        self._warned = False

    async def position(self) -> Position | None:
        """How far the log has collected this shard."""
        return await self._units.log.position(self._lease.shard_id) if self._units else None

    async def begin(self, action: Action, batch: RecordBatch | None = None) -> None:
        """A call begins; with ``initialize`` begins another child."""
        if action is Action.INITIALIZE:
            self._delivered = self._done = self._owed = None
            self._warned = False
        self._call = _Call(action)
        if batch is not None and batch.last is not None:
            reached = await self.position()
            known = reached is not None and batch.last <= reached
            self._call = _Call(action, batch.first, batch.last, known=known)
            self._delivered = batch.last

    def emitted(self, line: bytes) -> None:
        """Take an emit line.

        Raises:
            ChildProtocolError: it must not be emitted now.
        """
        call = self._call
        if self._units is None:
            self._warn_once()
        elif call.last is None:
            raise ChildProtocolError(
                f"the child of {self._lease.shard_id} emitted during {call.action}; emit only while processing records"
            )
        elif call.appended:
            raise ChildProtocolError(
                f"the child of {self._lease.shard_id} emitted after it had checkpointed the last record of its "
                f"batch ({call.last.sequence}); emit first, then checkpoint"
            )
        elif not call.known:
            self._units.admission.feed(line)
            call.pending = True

    def rejected(self, records: Rejected) -> None:
        """Take what the child did not process: it is reported here, and passed."""
        call = self._call
        if call.known:
            return
        call.rejected += 1
        if call.rejected <= REJECTIONS_LOGGED:
            event(logger, logging.ERROR, "message rejected", shard=self._lease.shard_id,
                  first=records.span.first.sequence, last=records.span.last.sequence, cause=records.cause)  # fmt: skip
        if self._units is not None:
            text = records.payload.decode("utf-8", "replace")
            self._units.admission.reject(f"{records.span}: {records.cause}", text)
            call.pending = True

    async def answer(self, request: CheckpointRequested) -> str | None:
        """Decide a checkpoint request: None when it is granted, else the name of KCL's exception."""
        if self._call.action in _WITHOUT_CHECKPOINTER:
            return CheckpointErrorName.INVALID_STATE.value
        stored = self._lease.checkpoint
        last = stored if self._owed is None else max(stored, self._owed)
        largest = None if self._delivered is None else Checkpoint.at(self._delivered)
        wanted = CheckpointRequest(request.sequence, request.sub)
        verdict = judge(wanted, last, largest, ended=self._call.action is Action.SHARD_ENDED)
        if isinstance(verdict, Refusal):
            event(logger, logging.WARNING, "checkpoint refused", shard=self._lease.shard_id, cause=verdict.cause)
            return verdict.error.value
        return await self._grant(verdict.checkpoint) if verdict.write else None

    async def finish(self) -> None:
        """The call is done: make durable what it emitted, then write the checkpoint that is owed."""
        if self._call.rejected > REJECTIONS_LOGGED:
            event(logger, logging.ERROR, "more messages rejected", shard=self._lease.shard_id,
                  count=self._call.rejected - REJECTIONS_LOGGED)  # fmt: skip
        await self._append()
        self._done = self._call.last or self._done
        if self._owed is not None:
            await self._write(self._owed)

    def abandon(self) -> None:
        """The child failed in the call: what it emitted is dropped, its records will be delivered again."""
        self._owed = None
        if self._units is not None:
            self._units.admission.take("dropped")

    async def _grant(self, checkpoint: Checkpoint) -> str | None:
        call = self._call
        if self._units is None or call.known or call.last is None or checkpoint.position is None:
            return await self._write(checkpoint)
        at_end = checkpoint.position >= call.last
        between = not at_end and (self._done is None or checkpoint.position > self._done)
        if at_end and call.pending:
            await self._append()
        elif (at_end and not call.appended) or (between and call.pending):
            self._owed = checkpoint
            return None
        return await self._write(checkpoint)

    async def _write(self, checkpoint: Checkpoint) -> str | None:
        try:
            await self._checkpoints.checkpoint(self._lease, checkpoint)
        except (LeaseLostError, LeaseTableError) as error:
            name = error_name(error)
            event(logger, logging.WARNING, "checkpoint not written", shard=self._lease.shard_id,
                  checkpoint=checkpoint, error=error)  # fmt: skip
            return name.value
        if self._owed is not None and self._owed <= checkpoint:
            self._owed = None
        return None

    async def _append(self) -> None:
        call, units = self._call, self._units
        if units is None or not call.pending or call.first is None or call.last is None:
            return
        shard = self._lease.shard_id
        fragments = units.admission.take(f"invalid:{shard}:{call.first.sequence}")
        tries = 0
        while True:
            try:
                await units.log.append(shard, call.first, call.last, fragments)
                break
            except LogUnavailableError as error:
                pause = APPEND_PAUSES[min(tries, len(APPEND_PAUSES) - 1)]
                tries += 1
                event(logger, logging.WARNING, "append put off", shard=shard, pause=pause, error=error)
                await asyncio.sleep(pause)
        call.pending, call.appended = False, True

    def _warn_once(self) -> None:
        if not self._warned:
            self._warned = True
            event(logger, logging.WARNING, "deltas skipped: units of work are not enabled (unitsOfWork)",
                  shard=self._lease.shard_id)  # fmt: skip
