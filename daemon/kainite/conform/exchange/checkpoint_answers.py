"""Answers the child's checkpoint requests as the daemon would, or as the case wants it. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.base.position import Position
from kainite.base.record import position_of
from kainite.child.events import Action, CheckpointRequested
from kainite.conform.cases.case import ScriptedCall
from kainite.leases.holding.checkpoint_requests import CheckpointErrorName, CheckpointRequest, Grant, decide_checkpoint

_START = Checkpoint("TRIM_HORIZON")
_WITHOUT_CHECKPOINTER = (Action.INITIALIZE, Action.LEASE_LOST)


@dataclass(frozen=True, slots=True)
class AnsweredCheckpoint:
    """A checkpoint request, and its answer.

    Attributes:
        request: the request as the child wrote it.
        error: the error that was answered; None if the request was granted.
        cause: says why no daemon would grant the request or, where it is granted, why it means nothing.
        end: whether the checkpoint at the shard's end was granted.
    """

    request: CheckpointRequested
    error: str | None
    cause: str | None = None
    end: bool = False


class CheckpointAnswers:
    """The checkpoint of one shard during one run of a child."""

    def __init__(self) -> None:
        self._stored = _START
        self._delivered: Checkpoint | None = None
        self._places: set[Position] = set()  # the positions of all records that were delivered

    @property
    def settled(self) -> bool:
        """Tells whether the checkpoint covers the last record that was delivered."""
        return self._delivered is None or self._stored >= self._delivered

    def deliver(self, call: ScriptedCall) -> None:
        """Takes note of a call that is about to be made."""
        if call.action is Action.INITIALIZE and call.start is not None:
            self._stored = Checkpoint(call.start, call.sub or 0)
        if call.records:
            self._delivered = Checkpoint.at(position_of(call.records[-1]))
            self._places.update(map(position_of, call.records))

    def answer(self, call: ScriptedCall, request: CheckpointRequested, before: int) -> AnsweredCheckpoint:
        """Answers a request; ``before`` says how many requests the call had already."""
        if call.action in _WITHOUT_CHECKPOINTER:
            return AnsweredCheckpoint(request, CheckpointErrorName.INVALID_STATE.value)
        if call.refuse and (call.refuse.times is None or before < call.refuse.times):
            return AnsweredCheckpoint(request, call.refuse.error.value)
        wanted = CheckpointRequest(request.sequence, request.sub)
        verdict = decide_checkpoint(wanted, self._stored, self._delivered, ended=call.action is Action.SHARD_ENDED)
        if not isinstance(verdict, Grant):
            return AnsweredCheckpoint(request, verdict.error.value, cause=verdict.cause)
        self._stored = verdict.checkpoint
        return AnsweredCheckpoint(
            request, None, self._meaningless(verdict.checkpoint), end=verdict.checkpoint == SHARD_END
        )

    def _meaningless(self, checkpoint: Checkpoint) -> str | None:
        """Returns what is wrong with a checkpoint within the range of the delivered records that is at none of them."""
        at = checkpoint.position
        if at is None or not self._places or at in self._places:
            return None
        return f"no record that was delivered has the number {at}: numbers of 56 digits are text, not numbers"
