"""The section for the ``markers`` dialect: its markers, its batches, its checkpoints, and its policies for failures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kainite.base.markers import EXTRACTION, USED, Batching, Markers
from kainite.settings.key import Reload, own
from kainite.settings.kinds.markers import argument_templates, marker, variable_templates
from kainite.settings.kinds.values import choice, millis, whole


class CheckpointAt(StrEnum):
    """The time at which a checkpoint is taken for a child that cannot ask for one."""

    CALL = "call"
    ANSWER = "answer"
    INTERVAL = "interval"


class OnDeath(StrEnum):
    """The policy for the message, or the batch, on which a child died.

    RETRY never leaves it out, SKIP does after the first death, ONCE after the second, TRIES after ``poisonBatchTries``.
    """

    RETRY = "retry"
    TRIES = "tries"
    ONCE = "once"
    SKIP = "skip"


class OnBadMessage(StrEnum):
    """The policy for a message that cannot be sent, or that the child calls bad."""

    REPORT = "report"
    FAIL = "fail"


class OnEmptyAnswer(StrEnum):
    """The meaning of an answer without messages: there is nothing to write, or the request was bad."""

    ACCEPT = "accept"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class MarkersSettings:
    """The settings of the ``markers`` dialect, and the parameters that tell a child of them."""

    eom: bytes = own("markerEom", marker(), Reload.NEXT_CHILD, "Ends a message.", default=b"\n")
    eop: bytes = own("markerEop", marker(), Reload.NEXT_CHILD, "Ends an answer of the child.", default=b"\0")
    eob: bytes = own("markerEob", marker(), Reload.NEXT_CHILD, "Ends a batch.", default=b"\x17")
    bnc: bytes = own(
        "markerBnc", marker(), Reload.NEXT_CHILD, "The child asks for one more message of a batch.", default=b"\x06"
    )
    batching: Batching = own(
        "markersBatching",
        choice(Batching),
        Reload.NEXT_CHILD,
        "One message at a time, or batches that the child or the daemon ends.",
        default=Batching.SINGLE,
    )
    batch_size: int = own(
        "markersBatchSize", whole(1, 1_000_000), Reload.NEXT_CHILD, "Most messages in a batch.", default=100
    )
    environment: tuple[tuple[str, str], ...] = own(
        "markersEnvironment",
        variable_templates(),
        Reload.NEXT_CHILD,
        "Variables that tell the child the markers: `{eom}`, `{eop}`, `{eob}`, `{bnc}`, `{batching}`, `{batch_size}`.",
        default=(
            ("KAINITE_EOM", "{eom}"),
            ("KAINITE_EOP", "{eop}"),
            ("KAINITE_EOB", "{eob}"),
            ("KAINITE_BNC", "{bnc}"),
            ("KAINITE_BATCHING", "{batching}"),
            ("KAINITE_BATCH_SIZE", "{batch_size}"),
        ),
    )
    arguments: tuple[str, ...] = own(
        "markersArguments",
        argument_templates(),
        Reload.NEXT_CHILD,
        "Arguments that tell the child the markers, behind those of the command; the same placeholders.",
        default=(),
        otherwise="none",
    )
    checkpoint: CheckpointAt = own(
        "markersCheckpoint",
        choice(CheckpointAt),
        Reload.NEXT_CHILD,
        "When a checkpoint is taken: after each call, after each answer, or once in `markersCheckpointMillis`.",
        default=CheckpointAt.CALL,
    )
    checkpoint_interval: float = own(
        "markersCheckpointMillis",
        millis(1, 86_400_000),
        Reload.NEXT_CHILD,
        "Least time between two checkpoints under `markersCheckpoint=interval`.",
        default=60.0,
    )
    on_death: OnDeath = own(
        "markersOnDeath",
        choice(OnDeath),
        Reload.NEXT_CHILD,
        "How often a message on which a child died is tried: always, `poisonBatchTries` times, twice, or once; then it"
        " is skipped and reported.",
        default=OnDeath.RETRY,
    )
    on_bad_message: OnBadMessage = own(
        "markersOnBadMessage",
        choice(OnBadMessage),
        Reload.NEXT_CHILD,
        "A record that cannot be sent or that the child calls bad: report it and go on, or fail until it is mended.",
        default=OnBadMessage.REPORT,
    )
    on_empty_answer: OnEmptyAnswer = own(
        "markersOnEmptyAnswer",
        choice(OnEmptyAnswer),
        Reload.NEXT_CHILD,
        "An answer without messages: there is nothing to write, or the child could not read its request (pyDKB).",
        default=OnEmptyAnswer.ACCEPT,
    )

    @property
    def markers(self) -> Markers:
        """Returns the markers of a conversation with a worker."""
        return Markers(self.eom, self.eop, self.eob, self.bnc, used=USED[self.batching])

    @property
    def extraction(self) -> Markers:
        """Returns the markers of a conversation with an extractor."""
        return Markers(self.eom, self.eop, self.eob, self.bnc, used=EXTRACTION)
