"""The rules of a child's calls, without I/O: what is appended, what is checkpointed, and in which order.

Rules
=====

* One ``processRecords`` call is one append: everything that the child emitted in the call, with the positions of the
  call's first and last record. The append is durable before the next batch is sent. A call that emitted nothing
  appends nothing.
* A checkpoint is never written beyond what is durable in the log. All calls before the current one are durable, so
  only the place that the request points to matters:

  =========================================  =======================================================================
  to a record of an earlier call             the lease is written at once
  to the last record of the current call,
  something was emitted                      the call's emits are appended, then the lease is written
  to the last record of the current call,
  nothing was emitted                        success is answered; the lease is *owed* until the call ends, because
                                             the child may still emit
  to a record between, something was emitted success is answered; the lease is owed until the call's append is durable
  to a record between, nothing was emitted   the lease is written at once
  =========================================  =======================================================================

* A child must not emit after a checkpoint has forced the call's append: by that checkpoint the child said that it had
  finished the batch. Such an emit is a protocol error. So is an emit outside ``processRecords``, where no records
  stand behind it.
* Records at or before the log's position come in calls of their own (the reader cuts batches there). The log already
  holds what a child emits for them, so these emits are discarded.
* A rejected message, or a record that is left out, becomes a failed unit of its own where units of work are collected,
  and is appended with the call: as durable as what was emitted.
* With an output stream (:mod:`kainite.worker.output_stream`) a call's append is the put of its messages there. The
  stream has no position, so records that come again are put again.
* Where units of work are disabled and there is no output stream, emit lines are skipped, as KCL skips them.

:class:`CallRules` says which :data:`Step` comes next; :class:`~kainite.worker.shard_call.ShardCalls` carries the steps
out and reports back with :meth:`CallRules.appended` and :meth:`CallRules.written`.

What a crash leaves behind
==========================

=======================  =============================================================================================
before the append        nothing: the records are delivered again, and the child emits again
after the append         a log position beyond the checkpoint: the records are delivered again, their emits discarded
after the lease's write  nothing that must be done again
=======================  =============================================================================================

A child that dies in a call leaves the first state, or, after a forced append, the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import ChildProtocolError
from kainite.base.position import Position
from kainite.child.events import Action, CheckpointRequested, Span
from kainite.leases.holding.checkpoint_requests import (
    CheckpointErrorName,
    CheckpointRequest,
    Refusal,
    decide_checkpoint,
)

WITHOUT_CHECKPOINTER: Final = frozenset({Action.INITIALIZE, Action.LEASE_LOST})
"""Actions in which KCL gives a record processor no checkpointer (docs/kcl.md, *Checkpoints*)."""


class EmitHandling(Enum):
    """The decision on an emit line."""

    COLLECT = auto()  # it goes into the call's append
    DISCARD = auto()  # the log already holds it
    SKIP = auto()  # it goes nowhere


@dataclass(frozen=True, slots=True)
class AppendCall:
    """Append what the call has emitted so far; ``records`` are all records of the call."""

    records: Span


@dataclass(frozen=True, slots=True)
class WriteCheckpoint:
    """Write the checkpoint to the lease."""

    checkpoint: Checkpoint


Step: TypeAlias = AppendCall | WriteCheckpoint


@dataclass(frozen=True, slots=True)
class RefusedCheckpoint:
    """A checkpoint request that is not granted.

    Attributes:
        error: what the child is told.
        cause: what the log is told; None where the action allows no checkpoint at all.
    """

    error: CheckpointErrorName
    cause: str | None = None


@dataclass(slots=True)
class _Call:
    """The current call.

    Attributes:
        records: None for a call without records.
        known: the log already holds what is emitted for the records.
        pending: something was collected that is not in the log.
        appended: the call's append is durable.
    """

    action: Action
    records: Span | None = None
    known: bool = False
    pending: bool = False
    appended: bool = False


class CallRules:
    """Decides for the calls of one shard's child, one call after another. See the module's rules.

    Args:
        shard_id: the shard, for messages.
        collecting: whether what the child emits goes anywhere: units of work are enabled, or there is an output stream.
    """

    def __init__(self, shard_id: str, *, collecting: bool) -> None:
        self._shard = shard_id
        self._collecting = collecting
        self._call = _Call(Action.INITIALIZE)
        self._delivered: Position | None = None  # the last record that this child was given
        self._done: Position | None = None  # the last record of the calls before the current one
        self._owed: Checkpoint | None = None  # granted, not written yet

    def begin(self, action: Action, records: Span | None = None, reached: Position | None = None) -> None:
        """Begins a call; ``initialize`` begins the calls of another child.

        Args:
            action: what the child is asked.
            records: the records of the call; None without any.
            reached: the shard's position in the log; None when the log holds nothing of the shard.
        """
        if action is Action.INITIALIZE:
            self._delivered = self._done = self._owed = None
        known = records is not None and reached is not None and records.last <= reached
        self._call = _Call(action, records, known=known)
        if records is not None:
            self._delivered = records.last

    def emitted(self) -> EmitHandling:
        """Returns what becomes of an emit line of the current call.

        Raises:
            ChildProtocolError: the child must not emit now.
        """
        call = self._call
        if not self._collecting:
            return EmitHandling.SKIP
        if call.records is None:
            raise ChildProtocolError(
                f"the child of {self._shard} emitted during {call.action}; emit only while processing records"
            )
        if call.appended:
            raise ChildProtocolError(
                f"the child of {self._shard} emitted after it had checkpointed the last record of its "
                f"batch ({call.records.last.sequence}); emit first, then checkpoint"
            )
        if call.known:
            return EmitHandling.DISCARD
        call.pending = True
        return EmitHandling.COLLECT

    def rejected(self) -> bool:
        """Returns whether a rejection of the current call is news: what the log holds was reported before."""
        if self._call.known:
            return False
        self._call.pending = self._call.pending or self._collecting
        return True

    def requested(self, request: CheckpointRequested, stored: Checkpoint) -> tuple[Step, ...] | RefusedCheckpoint:
        """Decides a checkpoint request of the current call.

        Args:
            request: what the child wrote.
            stored: the lease's checkpoint.

        Returns:
            The steps to carry out before success is answered: none when nothing is to be stored, or not yet.
        """
        if self._call.action in WITHOUT_CHECKPOINTER:
            return RefusedCheckpoint(CheckpointErrorName.INVALID_STATE)
        last = stored if self._owed is None else max(stored, self._owed)
        largest = None if self._delivered is None else Checkpoint.at(self._delivered)
        wanted = CheckpointRequest(request.sequence, request.sub)
        judged = decide_checkpoint(wanted, last, largest, ended=self._call.action is Action.SHARD_ENDED)
        if isinstance(judged, Refusal):
            return RefusedCheckpoint(judged.error, judged.cause)
        return self._granted(judged.checkpoint) if judged.write else ()

    def finished(self) -> tuple[Step, ...]:
        """Ends the current call; returns the append of what it emitted, then the checkpoint that is owed."""
        call = self._call
        if call.records is not None:
            self._done = call.records.last
        owed = () if self._owed is None else (WriteCheckpoint(self._owed),)
        return (*self._append(), *owed)

    def abandoned(self) -> None:
        """Drops the current call: the child failed in it, and its records will be delivered again."""
        self._owed = None

    def appended(self) -> None:
        """Notes that the current call's append is durable."""
        self._call.pending, self._call.appended = False, True

    def written(self, checkpoint: Checkpoint) -> None:
        """Notes that the lease holds ``checkpoint``."""
        if self._owed is not None and self._owed <= checkpoint:
            self._owed = None

    def _append(self) -> tuple[Step, ...]:
        call = self._call
        return (AppendCall(call.records),) if call.pending and call.records is not None else ()

    def _granted(self, checkpoint: Checkpoint) -> tuple[Step, ...]:
        call, write = self._call, WriteCheckpoint(checkpoint)
        if not self._collecting or call.known or call.records is None or checkpoint.position is None:
            return (write,)  # no emit of the call can be missing in the log
        at_end = checkpoint.position >= call.records.last
        between = not at_end and (self._done is None or checkpoint.position > self._done)
        if at_end and call.pending:
            return (*self._append(), write)
        if (at_end and not call.appended) or (between and call.pending):
            self._owed = checkpoint
            return ()
        return (write,)
