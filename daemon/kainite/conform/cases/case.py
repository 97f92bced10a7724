"""A case as data: the requests to the child, one step after another, and what the child must do. Pure.

A case is one run of one child. The steps go through the dialect's state machine as the daemon's calls do, so a case
cannot ask for what the daemon would never ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Final, TypeAlias

from kainite.base.record import RawRecord
from kainite.child.events import Action
from kainite.conform.cases.read_back import LoadedRow
from kainite.leases.holding.checkpoint_requests import CheckpointErrorName

ONE_RECORD: Final = "one-record"
ONE_MESSAGE: Final = "one-message"


class Stage(StrEnum):
    """The stage of a pipeline that a command is meant for (docs/protocol.md, *Stages*)."""

    EXTRACT = "extract"
    TRANSFORM = "transform"
    LOAD = "load"


class Checkpointing(Enum):
    """The rule for the child's checkpoints in a call."""

    FREE = auto()
    WISE = auto()  # a note when the child does not ask for one
    REQUIRED = auto()
    FORBIDDEN = auto()


class Weight(Enum):
    """The weight of a failure in a case."""

    REQUIRED = auto()
    REFUSABLE = auto()  # the payload is odd: a child may refuse it by ending with a status
    OPTIONAL = auto()  # the daemon does not make such a request unless told to: any failure is a note


class Withheld(Enum):
    """The part that is held back for a moment, to see whether the child answers without having read it."""

    REQUESTS = auto()  # the ends of requests
    REPLIES = auto()  # the replies to checkpoint requests


@dataclass(frozen=True, slots=True)
class Refuse:
    """Checkpoint requests are answered with ``error``: the first ``times`` requests, or all where ``times`` is None."""

    error: CheckpointErrorName
    times: int | None


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One call, which the child must answer.

    Attributes:
        action: the call's action.
        records: the records of ``processRecords``.
        start, sub: the sequence and sub-sequence number of ``initialize``, where reading begins.
        behind: milliseconds behind the stream's end.
        checkpoint: whether the child must ask for a checkpoint.
        refuse: how the child's checkpoint requests are refused; None means granted where the daemon would grant them.
        unknown_field: whether each record has a field that the protocol does not have.
        may_end: whether the child may end in place of an answer.
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
    """The child's input ends; the child must end too."""


@dataclass(frozen=True, slots=True)
class Loading:
    """What a loader may answer to a request.

    Attributes:
        loaded: the units that have been loaded so far.
        asked: whether the loader is asked which units are loaded.
        outranked: whether the request comes from an apply job that another one has replaced.
        rows: the rows that the loader is asked for, as they were loaded.
    """

    loaded: frozenset[int] = frozenset()
    asked: bool = False
    outranked: bool = False
    rows: tuple[LoadedRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages in the markers dialect, alone or in batches as the settings have it; the child must answer each.

    Attributes:
        payloads: the messages' payloads; without payloads the request is an empty batch.
        bad: whether the payloads are no records, and are to be reported as bad messages.
        eom_after_eob: whether an EOM is written after EOB, as some supervisors write it.
        loading: what a loader may answer; None for a transform, which answers with deltas.
    """

    payloads: tuple[bytes, ...]
    bad: bool = False
    eom_after_eob: bool = False
    loading: Loading | None = None


@dataclass(frozen=True, slots=True)
class Extract:
    """A cycle of an extractor or, without a request, the whole run of a plain one.

    Attributes:
        request: the request to the extractor; None means that nothing is asked, and the extractor ends by itself.
        offset_wanted: whether messages must come with a new offset, which Kainite keeps.
    """

    request: bytes | None = None
    offset_wanted: bool = False


Step: TypeAlias = ScriptedCall | Messages | Extract | EndOfInput


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The same records, cut into requests in one of several ways.

    Attributes:
        name: says how the records are cut.
        lives: the requests to each of several children, one child after another.
        renumbered: whether the records have other numbers than in the first arrangement.
    """

    name: str
    lives: tuple[tuple[Step, ...], ...]
    renumbered: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One run of one child or, with arrangements, several runs whose deltas are compared.

    Attributes:
        name: the case's name, for ``--case`` and reports.
        title: says what is tried.
        steps: the requests, in order; none with arrangements.
        needs: cases that must have passed: where one failed, this case would only fail for the same reason.
        weight: the weight of a failure.
        held: the part that is held back.
        strict_output: whether a line on standard output that is no message is a failure; otherwise it is a note.
        patience: how many times the usual limits an answer may take.
        arrangements: the same records in several ways, for which the child must give the same deltas.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    needs: tuple[str, ...] = ()
    weight: Weight = Weight.REQUIRED
    held: Withheld | None = None
    strict_output: bool = False
    patience: float = 1.0
    arrangements: tuple[Arrangement, ...] = ()

    @property
    def on_known_payloads(self) -> bool:
        """Tells whether the case is only tried with a child that understands the case's payloads."""
        return ONE_RECORD in self.needs or ONE_MESSAGE in self.needs
