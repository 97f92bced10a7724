"""The events of a conversation with a child, whichever dialect it speaks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import TypeAlias

from kainite.base.position import Position


class Action(StrEnum):
    """What the daemon asks of a child; each is answered by one ``status``."""

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
    """A line that is no message."""

    text: str


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
            return f"record {self.first.sequence}"
        return f"records {self.first.sequence} to {self.last.sequence}"


class Turn(Enum):
    """Whose move it is."""

    OURS = auto()
    THEIRS = auto()
    OWED = auto()  # the child waits for a reply
    BROKEN = auto()


@dataclass(frozen=True, slots=True)
class ActionDone:
    """The child answered the outstanding action with its status."""

    action: Action


@dataclass(frozen=True, slots=True)
class ProtocolViolation:
    """The child wrote what it must not; ``reason`` says what, in one line."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """Records that were not processed, and will not be.

    Attributes:
        span: which.
        cause: why, one line.
        payload: the beginning of what they hold.
    """

    span: Span
    cause: str
    payload: bytes


Event: TypeAlias = ActionDone | CheckpointRequested | Emitted | Rejected | Send | SkippedLine | ProtocolViolation
