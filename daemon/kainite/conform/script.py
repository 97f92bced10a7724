"""A case as data: what the child is asked, one step after another, and what it owes. Pure.

A case is one life of one child. The steps go through the dialect's state machine as the daemon's do, so a case cannot
ask for what the daemon would never ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from kainite.base.record import RawRecord
from kainite.child.events import Action
from kainite.leases.holding.checkpoint_requests import CheckpointErrorName

ONE_RECORD: Final = "one-record"
ONE_MESSAGE: Final = "one-message"


class Checkpointing(Enum):
    """Whether the child must ask for a checkpoint in a call."""

    FREE = auto()
    WISE = auto()  # a note when it does not
    REQUIRED = auto()
    FORBIDDEN = auto()


class Weight(Enum):
    """What a failure in the case means."""

    REQUIRED = auto()
    REFUSABLE = auto()  # the payload is odd: a child may refuse it, by ending with a status
    OPTIONAL = auto()  # the daemon does not do this unless told to: any failure is a note


class Held(Enum):
    """What is held back for a moment, to see whether the child speaks without having read it."""

    REQUESTS = auto()  # their ends
    REPLIES = auto()  # to checkpoint requests


@dataclass(frozen=True, slots=True)
class Refuse:
    """Checkpoint requests are answered with ``error``: the first ``times`` of them, or all."""

    error: CheckpointErrorName
    times: int | None


@dataclass(frozen=True, slots=True)
class Call:
    """One action, to be answered.

    Attributes:
        action: what is asked.
        records: of ``processRecords``.
        start, sub: of ``initialize``: where reading begins.
        behind: milliseconds behind the stream's end.
        checkpoint: whether it must ask for one.
        refuse: how its checkpoint requests are refused; None: granted, if they can be.
        unknown_field: each record has a field that nobody knows.
        may_end: ending is an honest answer too.
    """

    action: Action
    records: tuple[RawRecord, ...] = ()
    start: str | None = "TRIM_HORIZON"
    sub: int | None = 0
    behind: int | None = 0
    checkpoint: Checkpointing = Checkpointing.FREE
    refuse: Refuse | None = None
    unknown_field: bool = False
    may_end: bool = False


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """The child's input ends; it must end too."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages in the markers dialect, alone or in batches as the settings have it; each is to be answered.

    Attributes:
        payloads: of the messages; none: an empty batch.
        bad: they are no deltas, and to be reported as bad messages.
        eom_after_eob: an EOM is written after EOB, as some supervisors do.
    """

    payloads: tuple[bytes, ...]
    bad: bool = False
    eom_after_eob: bool = False


Step: TypeAlias = Call | Messages | EndOfInput


@dataclass(frozen=True, slots=True)
class Case:
    """One life of one child.

    Attributes:
        name: for ``--case`` and reports.
        title: what is tried, for people.
        steps: what is asked.
        needs: cases that must not have failed: otherwise this one would only fail for the same reason.
        weight: what a failure means.
        held: what is held back.
        strict_output: a line on its standard output that is no message is a failure; a note otherwise.
        patience: how many times the usual limits an answer may take.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    needs: tuple[str, ...] = ()
    weight: Weight = Weight.REQUIRED
    held: Held | None = None
    strict_output: bool = False
    patience: float = 1.0

    @property
    def on_known_payloads(self) -> bool:
        """It is only tried when the child takes the payloads that it is given."""
        return ONE_RECORD in self.needs or ONE_MESSAGE in self.needs
