"""The result of one step of a case. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from kainite.conform.exchange.checkpoint_answers import AnsweredCheckpoint


class Reaction(Enum):
    """The child's reaction to a request."""

    ANSWERED = auto()
    LEFT_OUT = auto()  # not asked: the dialect has no such request
    EARLY = auto()  # the child wrote before it had read the request
    HASTY = auto()  # the child went on before it had read the answer to its checkpoint
    SILENT = auto()
    UNREADABLE = auto()  # the child wrote something that is no message
    UNFINISHED = auto()  # silent after messages without EOP
    NEEDS_EOM = auto()  # silent until an EOM followed EOB
    IGNORES_EOB = auto()  # silent after EOB, also when an EOM followed
    NO_EMPTY_ANSWER = auto()  # silent after the EOB of an empty batch
    NO_BAD_ANSWER = auto()  # silent after a message that is no record
    FLUSHED_LATE = auto()  # silent until its input ended
    ENDLESS = auto()  # the child asks for checkpoints without end
    GONE = auto()
    VIOLATED = auto()  # the dialect forbids what the child wrote


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one request.

    Attributes:
        asked: the request, as the child knows it.
        reaction: how the child reacted.
        detail: what the child wrote, or how it ended.
        seconds: how long the child took to answer, seconds.
        checkpoints: the child's checkpoint requests during the step, with their answers.
        emitted: how many emit lines the child wrote.
        rejects: the texts that are no deltas among what the child gave, each with the reason.
        junk: lines on the child's standard output that are no messages.
        messages: the messages of the child's answer, in the markers dialect.
    """

    asked: str
    reaction: Reaction
    detail: str = ""
    seconds: float = 0.0
    checkpoints: tuple[AnsweredCheckpoint, ...] = ()
    emitted: int = 0
    rejects: tuple[str, ...] = ()
    junk: tuple[str, ...] = ()
    messages: tuple[bytes, ...] = ()
