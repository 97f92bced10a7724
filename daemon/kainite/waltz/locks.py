"""The locks of an application's log partition, each with the transaction that last raised it. Pure.

A lock is a 32-bit hash that clients compute. Each lock that was raised among the last ``most`` is known exactly; of all
others only *the floor* is known: none of them was raised behind it. So a lock's transaction is never underestimated,
and a client that has applied everything up to the floor meets no false conflict but that of equal hashes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

MOST_LOCKS: Final = 200_000


class Locks:
    """Args: most: how many locks are known exactly; floor: the floor at the beginning."""

    def __init__(self, floor: int, most: int = MOST_LOCKS) -> None:
        self._raised: OrderedDict[int, int] = OrderedDict()
        self._floor = floor
        self._most = most

    def latest(self, locks: Iterable[int]) -> int:
        """Returns the latest transaction that may have raised one of the locks; −1 for no locks."""
        return max((self._raised.get(lock, self._floor) for lock in locks), default=-1)

    def note(self, transaction: int, locks: Iterable[int]) -> None:
        """Notes that a transaction, later than all before, raises locks."""
        for lock in locks:
            self._raised[lock] = transaction
            self._raised.move_to_end(lock)
        while len(self._raised) > self._most:
            self._floor = max(self._floor, self._raised.popitem(last=False)[1])
