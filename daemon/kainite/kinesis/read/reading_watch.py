"""Watches whether the reading of a shard gets on: no reply, an iterator that stands still, a throttled stream. No I/O.

States: *resting* (the reader has not asked, or its last reply brought it on) → :meth:`ReadingWatch.asks` → *wanting*,
until :meth:`ReadingWatch.answered` tells of a reply that brought it on. Time counts in *wanting* alone, so a reader
that waits for room in its queue, because its child is slow, does not stand still.

A reply brings a reader on when it has records, when the shard holds nothing more, or when it comes nearer to the
shard's newest record than every reply before it: an iterator walks over stretches without records for many replies.

Throttling counts from the first refused call, and is over when no call was refused for
:data:`~kainite.kinesis.read.poll_interval.THROTTLED_FOR_S`: a throttled reader gets on now and then.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from kainite.kinesis.read.poll_interval import THROTTLED_FOR_S
from kainite.observe.shard_status import Standstill


class ReadingWatch:
    """The watch over one reader.

    Args:
        clock: seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wanting_since: float | None = None
        self._nearest_ms: float = math.inf  # by how much the nearest reply was behind, since the reader got on
        self._why = ""
        self._throttled_since = 0.0
        self._throttled_at = -math.inf

    def asks(self) -> None:
        """Notes that the reader asks for more."""
        if self._wanting_since is None:
            self._wanting_since, self._nearest_ms, self._why = self._clock(), math.inf, ""

    def answered(self, *, records: bool, behind_ms: int | None) -> None:
        """Notes a reply.

        Args:
            records: whether it has any.
            behind_ms: how far it is behind the shard's newest record, milliseconds; None where it does not say.
        """
        behind = behind_ms or 0
        if records or behind <= 0 or behind < self._nearest_ms < math.inf:
            self._wanting_since = None
            return
        self._nearest_ms = min(behind, self._nearest_ms)
        self._why = f"replies bring no record, though the newest one is {behind / 1000:.0f} s ahead"

    def failed(self, error: Exception, *, throttled: bool = False) -> None:
        """Notes a call that failed; the reader asks again."""
        self._why = f"reading fails: {error}"
        if throttled:
            self._throttled_since = self._throttled_since if self.is_throttled else self._clock()
            self._throttled_at = self._clock()

    @property
    def is_throttled(self) -> bool:
        """Tells whether Kinesis refused a call within the last minute because there were too many."""
        return self._clock() < self._throttled_at + THROTTLED_FOR_S

    @property
    def throttled(self) -> float | None:
        """Returns the seconds for which calls have been throttled again and again; None while they are not."""
        return self._clock() - self._throttled_since if self.is_throttled else None

    @property
    def standstill(self) -> Standstill | None:
        """Returns for how long the reader has not got on, and why; None while it rests."""
        if self._wanting_since is None:
            return None
        return Standstill(self._clock() - self._wanting_since, self._why or "Kinesis has not answered")
