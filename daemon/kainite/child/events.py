"""The events of a conversation with a child, the same for every dialect."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from kainite.base.position import Position


class Action(StrEnum):
    """The actions that the daemon asks of a child; each is answered by one ``status``."""

    INITIALIZE = "initialize"
    PROCESS_RECORDS = "processRecords"
    LEASE_LOST = "leaseLost"
    SHARD_ENDED = "shardEnded"
    SHUTDOWN_REQUESTED = "shutdownRequested"


@dataclass(frozen=True, slots=True)
class CheckpointRequested:
    """``checkpoint``: sequence number and sub-sequence number as the child wrote them, or None."""

    sequence: str | None
    sub: int | None = None


@dataclass(frozen=True, slots=True)
class Emitted:
    """An ``emit`` line, or a broken line that seems to be one; not parsed."""

    line: bytes


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line that is not a message; ``cut``: it was longer than a line may be, and its rest was dropped."""

    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes to write now."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Span:
    """Records from ``first`` to ``last``, both included."""

    first: Position
    last: Position

    def __str__(self) -> str:
        if self.first == self.last:
            return f"record {self.first}"
        return f"records {self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class ActionDone:
    """The child answered the outstanding action with its status."""

    action: Action


@dataclass(frozen=True, slots=True)
class ProtocolViolation:
    """The child broke the protocol; ``reason`` says how, in one line, as the rest of a sentence about the child."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """Records that were not processed, and will not be.

    Attributes:
        span: their places in the shard.
        cause: why they were not processed, one line.
        payload: the beginning of their payloads.
    """

    span: Span
    cause: str
    payload: bytes


Event: TypeAlias = ActionDone | CheckpointRequested | Emitted | Rejected | Send | SkippedLine | ProtocolViolation
