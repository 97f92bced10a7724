"""What the child's checkpoint requests are answered: as the daemon would, or as the case wants it. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.base.record import position_of
from kainite.child.events import Action, CheckpointRequested
from kainite.conform.script import Call
from kainite.leases.holding.checkpoint_requests import CheckpointErrorName, CheckpointRequest, Grant, decide_checkpoint

_START = Checkpoint("TRIM_HORIZON")
_WITHOUT_CHECKPOINTER = (Action.INITIALIZE, Action.LEASE_LOST)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and its answer.

    Attributes:
        request: as the child wrote it.
        error: what it was told; None: granted.
        cause: why a request was refused that no daemon would grant.
        end: the shard's end was granted.
    """

    request: CheckpointRequested
    error: str | None
    cause: str | None = None
    end: bool = False


class Granting:
    """The checkpoint of one shard, as far as one child brings it."""

    def __init__(self) -> None:
        self._stored = _START
        self._delivered: Checkpoint | None = None

    def deliver(self, call: Call) -> None:
        """The call is about to be made."""
        if call.action is Action.INITIALIZE and call.start is not None:
            self._stored = Checkpoint(call.start, call.sub or 0)
        if call.records:
            self._delivered = Checkpoint.at(position_of(call.records[-1]))

    def answer(self, call: Call, request: CheckpointRequested, before: int) -> Asked:
        """Answer a request; ``before``: how many there were in the call already."""
        if call.action in _WITHOUT_CHECKPOINTER:
            return Asked(request, CheckpointErrorName.INVALID_STATE.value)
        if call.refuse and (call.refuse.times is None or before < call.refuse.times):
            return Asked(request, call.refuse.error.value)
        wanted = CheckpointRequest(request.sequence, request.sub)
        verdict = decide_checkpoint(wanted, self._stored, self._delivered, ended=call.action is Action.SHARD_ENDED)
        if not isinstance(verdict, Grant):
            return Asked(request, verdict.error.value, cause=verdict.cause)
        self._stored = verdict.checkpoint
        return Asked(request, None, end=verdict.checkpoint == SHARD_END)
