"""Decides when Aurora DSQL's records reach the stream, and under which keys: late, again, in bursts. Pure.

Each record gets a random partition key, and a delay of its own, so records overtake each other within
:attr:`Habits.spread`. Some come again, later. Records whose keys hash into one part of the stream come later still:
their shard lags. From time to time nothing comes for a moment, and then everything at once. :attr:`Habits.lateness`
bounds all of it: a record is due that long after it was given, at the latest. The same seed gives the same delays and
keys for the same records.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_KEYS: Final = 2**128


@dataclass(frozen=True, slots=True)
class Habits:
    """How untidy the delivery is; all times in seconds.

    Attributes:
        spread: a record comes at most so much later than it could.
        repeats: the part of all records that come again, from 0 to 1.
        lagging: the part of all keys whose records lag, from 0 to 1.
        lag: by how much the records of these keys come later.
        burst_every: the time from one pause to the next; 0 means that there are no pauses.
        burst_pause: how long a pause lasts, during which no record comes.
    """

    spread: float = 0.4
    repeats: float = 0.05
    lagging: float = 0.25
    lag: float = 0.3
    burst_every: float = 5.0
    burst_pause: float = 0.5

    @property
    def lateness(self) -> float:
        """Returns the longest time from a record's begin to the last time that it is due."""
        return 2 * self.spread + self.lag + self.burst_pause


@dataclass(frozen=True, slots=True, order=True)
class _Due:
    at: float
    number: int
    key: str
    data: bytes


class UntidyDelivery:
    """Holds records until they are due.

    Args:
        habits: how untidy the delivery is.
        choice: decides keys, delays and repeats.
    """

    def __init__(self, habits: Habits, choice: random.Random) -> None:
        self._habits = habits
        self._choice = choice
        self._waiting: list[_Due] = []
        self._given = 0

    def give(self, data: bytes, now: float) -> None:
        """Takes a record at a time on any clock."""
        self._schedule(data, now + self._choice.uniform(0, self._habits.spread))
        if self._choice.random() < self._habits.repeats:
            self._schedule(data, now + self._choice.uniform(0, 2 * self._habits.spread))

    def due(self, now: float) -> Iterator[tuple[str, bytes]]:
        """Yields keys and records that are due, each once."""
        while self._waiting and self._waiting[0].at <= now:
            one = heapq.heappop(self._waiting)
            yield one.key, one.data

    def __len__(self) -> int:
        """Returns how many records are not due yet."""
        return len(self._waiting)

    def _schedule(self, data: bytes, at: float) -> None:
        key = f"{self._choice.getrandbits(128):032x}"
        if hash_of(key) < self._habits.lagging * _KEYS:
            at += self._habits.lag
        self._given += 1
        heapq.heappush(self._waiting, _Due(self._after_pause(at), self._given, key, data))

    def _after_pause(self, at: float) -> float:
        every, pause = self._habits.burst_every, self._habits.burst_pause
        return at + pause - at % every if every and at % every < pause else at


def hash_of(partition_key: str) -> int:
    """Returns the place of a partition key among the hash keys that shards share, as Kinesis computes it."""
    return int(hashlib.md5(partition_key.encode(), usedforsecurity=False).hexdigest(), 16)
