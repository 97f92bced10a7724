"""Decides whether a child's request to checkpoint is granted (docs/kcl.md, *Checkpoints*). Pure functions.

The rules are those of KCL's ``ShardRecordProcessorCheckpointer``, with one defect repaired (KCL issue 211). In KCL, a
child that at the shard's end asks for the last record's sequence number again is told "done" while SHARD_END is never
stored, and the shard hangs. Here that request means SHARD_END, also without the sub-sequence number where the last
record came out of an aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from kainite.base.checkpoint import SHARD_END, Checkpoint, is_sequence_number
from kainite.base.errors import KainiteError, LeaseLostError, LeaseTableError, LeaseTableUnavailableError


class CheckpointErrorName(StrEnum):
    """The ``error`` that a child reads: the simple names of KCL's exceptions."""

    SHUTDOWN = "ShutdownException"
    THROTTLING = "ThrottlingException"
    INVALID_STATE = "InvalidStateException"
    DEPENDENCY = "KinesisClientLibDependencyException"
    ILLEGAL_ARGUMENT = "IllegalArgumentException"


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """A child's request; both None means "as far as you have delivered"."""

    sequence: str | None = None
    sub: int | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """A request that is granted; ``write`` is False when there is nothing to store."""

    checkpoint: Checkpoint
    write: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that is refused: ``error`` goes to the child, ``cause`` to the log."""

    error: CheckpointErrorName
    cause: str


CheckpointDecision: TypeAlias = Grant | Refusal


def decide_checkpoint(
    request: CheckpointRequest, last: Checkpoint, largest: Checkpoint | None, *, ended: bool = False
) -> CheckpointDecision:
    """Decides a request made during processRecords, shutdownRequested or shardEnded.

    Args:
        request: the child's request.
        last: the checkpoint that is stored now.
        largest: the last record delivered to the child; None before any.
        ended: whether the request came during shardEnded.
    """
    delivered = last if largest is None else max(last, largest)
    limit = SHARD_END if ended else delivered
    wanted = _wanted(request, last, limit)
    if isinstance(wanted, Refusal):
        return wanted
    if ended and (wanted == delivered or (request.sub is None and request.sequence == delivered.sequence)):
        wanted = SHARD_END
    if not last <= wanted <= limit:
        return _refuse(f"checkpoint {wanted} lies outside {last} … {limit}")
    return Grant(wanted, write=wanted != last)


def _wanted(request: CheckpointRequest, last: Checkpoint, limit: Checkpoint) -> Checkpoint | Refusal:
    if request.sequence is None:
        return limit
    sub = request.sub or 0
    if sub < 0:
        return _refuse(f"sub-sequence number {sub} is negative")
    known = {last.sequence, SHARD_END.sequence}
    if request.sequence not in known and not is_sequence_number(request.sequence):
        return _refuse(f"{request.sequence[:80]!r} is no sequence number")
    return Checkpoint(request.sequence, sub)


def _refuse(cause: str) -> Refusal:
    return Refusal(CheckpointErrorName.ILLEGAL_ARGUMENT, cause)


def error_name(error: KainiteError) -> CheckpointErrorName:
    """Returns the error that a child reads when storing a granted checkpoint failed with ``error``."""
    match error:
        case LeaseLostError():
            return CheckpointErrorName.SHUTDOWN
        case LeaseTableUnavailableError():
            return CheckpointErrorName.THROTTLING
        case LeaseTableError():
            return CheckpointErrorName.INVALID_STATE
        case _:
            return CheckpointErrorName.DEPENDENCY
