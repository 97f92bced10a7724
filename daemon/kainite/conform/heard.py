"""What happened in one step of a case. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from kainite.conform.granting import Asked


class Outcome(Enum):
    """How the child took a request."""

    ANSWERED = auto()
    LEFT_OUT = auto()  # the dialect has no such request
    EARLY = auto()  # it wrote before it had read
    HASTY = auto()  # it went on before it had read the answer to its checkpoint
    SILENT = auto()
    UNFINISHED = auto()  # silent after messages without EOP
    NEEDS_EOM = auto()  # silent until an EOM followed EOB
    FLUSHED_LATE = auto()  # silent until its input ended
    ENDLESS = auto()  # it asks for checkpoints without end
    GONE = auto()
    VIOLATED = auto()  # its dialect forbids what it wrote


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of one request.

    Attributes:
        asked: the request, as the child knows it.
        outcome: how it was taken.
        detail: what the child wrote, or how it went.
        seconds: until it was answered.
        checkpoints: what it asked for meanwhile.
        emitted: how many emit lines it wrote.
        rejects: what is no delta among what it emitted, or answered: why, and the text.
        junk: lines on its standard output that are no messages.
        messages: what it answered, where answers are messages.
    """

    asked: str
    outcome: Outcome
    detail: str = ""
    seconds: float = 0.0
    checkpoints: tuple[Asked, ...] = ()
    emitted: int = 0
    rejects: tuple[str, ...] = ()
    junk: tuple[str, ...] = ()
    messages: tuple[bytes, ...] = ()
