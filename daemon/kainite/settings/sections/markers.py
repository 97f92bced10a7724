"""The section for the ``markers`` dialect: its markers, its batches, its checkpoints, and its policies for failures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kainite.base.markers import EXTRACTION, USED, Batching, Markers


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
    """The settings of the ``markers`` dialect, and the parameters that tell a child of them.

    Attributes:
        eom, eop, eob, bnc: the bytes of each marker.
        batching: who ends a batch.
        batch_size: most messages in a batch.
        environment: names of variables, and templates of their values.
        arguments: templates of words that are added to the command.
        checkpoint: when a checkpoint is taken.
        checkpoint_interval: least time between two checkpoints under INTERVAL, seconds.
        on_death: what is done with the message on which a child died.
        on_bad_message: what is done with a bad message.
        on_empty_answer: whether a request that is answered by nothing was bad.
    """

    eom: bytes = b"\n"
    eop: bytes = b"\0"
    eob: bytes = b"\x17"
    bnc: bytes = b"\x06"
    batching: Batching = Batching.SINGLE
    batch_size: int = 100
    environment: tuple[tuple[str, str], ...] = (
        ("KAINITE_EOM", "{eom}"),
        ("KAINITE_EOP", "{eop}"),
        ("KAINITE_EOB", "{eob}"),
        ("KAINITE_BNC", "{bnc}"),
        ("KAINITE_BATCHING", "{batching}"),
        ("KAINITE_BATCH_SIZE", "{batch_size}"),
    )
    arguments: tuple[str, ...] = ()
    checkpoint: CheckpointAt = CheckpointAt.CALL
    checkpoint_interval: float = 60.0
    on_death: OnDeath = OnDeath.RETRY
    on_bad_message: OnBadMessage = OnBadMessage.REPORT
    on_empty_answer: OnEmptyAnswer = OnEmptyAnswer.ACCEPT

    @property
    def markers(self) -> Markers:
        """Returns the markers of a conversation with a worker."""
        return Markers(self.eom, self.eop, self.eob, self.bnc, used=USED[self.batching])

    @property
    def extraction(self) -> Markers:
        """Returns the markers of a conversation with an extractor."""
        return Markers(self.eom, self.eop, self.eob, self.bnc, used=EXTRACTION)
