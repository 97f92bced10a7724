"""Decides when a failed child is started again, and when a batch is reported as poison. Without I/O.

The policy's state: how many children failed since the last progress, how often in a row on which batch, and how far
children of the shard have got.

::

    no failures --failed--> n failures, m of them in a row on one culprit --progress--> no failures

The *culprit* is the position of the first record of the batch in which the child failed, or of the part of the batch
that was in flight; :data:`AT_SHARD_END` for a failure at the shard's end; None for a failure at another time.

*Progress* means that a child passes the furthest culprit, or comes to a later one, or, without any culprit, that it
passes a batch that no child has passed before. To pass earlier batches again is no progress, and neither is a failure
without a culprit.

The pause grows with the failures since the last progress. The tries, of which ``poison_tries`` make a batch poison,
count the failures on one culprit; a failure without a culprit does not interrupt them, one on another culprit does.
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
        tries: how often in a row children failed on the same culprit; without a culprit, since the last progress.
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
        self._culprit: Position | None = None  # the culprit of the last failure, since the last progress
        self._furthest_culprit: Position | None = None
        self._furthest: Position | None = None  # the first record of the furthest batch that a child has passed
        self._tries = 0  # failures in a row on the culprit
        self._failures = 0

    @property
    def failures(self) -> int:
        """Returns how many children have failed since the last progress."""
        return self._failures

    def failed(self, culprit: Position | None) -> RestartDecision:
        """Counts a failure on the records that begin with ``culprit``; returns what to do."""
        # A child that dies soon after its start dies now before its first batch, now in it. So a failure without a
        # culprit neither counts against a batch nor ends the row of failures on one.
        if culprit is not None:
            self._blame(culprit)
        self._failures += 1
        poisoned = culprit is not None and self._tries >= self._poison_tries
        pause = self._backoff_max if poisoned else self._backoff.after(self._failures)
        tries = self._failures if culprit is None else self._tries
        return RestartDecision(pause, tries, poisoned and self._tries == self._poison_tries)

    def passed(self, first: Position | None, last: Position | None) -> None:
        """Notes that a child has processed the batch from ``first`` to ``last``; None for an empty batch."""
        if first is None or last is None:
            return
        # To pass earlier batches again is no progress. Otherwise a child that dies on each fifth batch, or at the
        # shard's end, would be restarted at full speed for ever.
        news = self._furthest is None or first > self._furthest
        self._furthest = first if self._furthest is None else max(first, self._furthest)
        if news if self._furthest_culprit is None else last >= self._furthest_culprit:
            self._progress()

    def _blame(self, culprit: Position) -> None:
        if self._furthest_culprit is not None and culprit > self._furthest_culprit:
            self._progress()
        if culprit != self._culprit:
            self._culprit, self._tries = culprit, 0
        self._furthest_culprit = max(culprit, self._furthest_culprit or culprit)
        self._tries += 1

    def _progress(self) -> None:
        self._culprit = self._furthest_culprit = None
        self._tries = self._failures = 0
