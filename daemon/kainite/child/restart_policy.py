"""Decides when a failed child is started again, and when a batch is reported as poison. Without I/O.

The policy's state: how often in a row the child failed, on which batch, and how far children of the shard have got.

::

    no failures --failed--> n failures on one culprit --progress--> no failures
                            another culprit starts at 1 again

The *culprit* is the position of the first record of the batch in which the child failed, or of the part of the batch
that was in flight; :data:`AT_SHARD_END` for a failure at the shard's end; None for a failure at another time.
*Progress* means that a child passes the culprit, or, without a culprit, a batch that no child has passed before.
Passing earlier batches again is no progress: otherwise a child that dies on each fifth batch, or at the shard's end,
would be restarted at full speed without end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kainite.base.position import Position
from kainite.base.retry import Backoff

AT_SHARD_END: Final = Position(10**128)
"""A position after every possible record: Kinesis's sequence numbers have at most 128 digits."""


@dataclass(frozen=True, slots=True)
class RestartDecision:
    """The decision after a failure.

    Attributes:
        pause: seconds to wait before the child is started again.
        tries: how often in a row children failed on the same culprit.
        poison: whether to report the batch now; True once for each culprit.
    """

    pause: float
    tries: int
    poison: bool


class RestartPolicy:
    """Counts the failures of one shard's children.

    Args:
        backoff: seconds of the pause after the first failure; each further failure doubles the pause.
        backoff_max: seconds of the longest pause, which is also the pause after a poison batch.
        poison_tries: failures in a row on one batch that make it poison.
    """

    def __init__(self, backoff: float, backoff_max: float, poison_tries: int) -> None:
        self._backoff = Backoff.doubling(backoff, backoff_max)
        self._backoff_max = backoff_max
        self._poison_tries = poison_tries
        self._culprit: Position | None = None
        self._furthest: Position | None = None
        self._tries = 0

    @property
    def tries(self) -> int:
        """Returns how often in a row children have failed."""
        return self._tries

    def failed(self, culprit: Position | None) -> RestartDecision:
        """Counts a failure on the records that begin with ``culprit``; returns what to do."""
        if culprit != self._culprit:
            self._culprit, self._tries = culprit, 0
        self._tries += 1
        poisoned = culprit is not None and self._tries >= self._poison_tries
        pause = self._backoff_max if poisoned else self._backoff.after(self._tries)
        return RestartDecision(pause, self._tries, poisoned and self._tries == self._poison_tries)

    def passed(self, first: Position | None, last: Position | None) -> None:
        """Notes that a child has processed the batch from ``first`` to ``last``; None for an empty batch."""
        if first is None or last is None:
            return
        news = self._furthest is None or first > self._furthest
        self._furthest = first if self._furthest is None else max(first, self._furthest)
        if news if self._culprit is None else last >= self._culprit:
            self._culprit, self._tries = None, 0
