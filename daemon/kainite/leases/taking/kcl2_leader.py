"""Computes which worker of a KCL 2.x fleet syncs shards (docs/kcl.md, *Shard sync*). All workers get the same result.

KCL's ``DeterministicShuffleShardSyncLeaderDecider`` sorts the distinct lease owners, shuffles them with
``java.util.Random`` and a fixed seed, and takes the first. KCL keeps the result for five minutes. Here it is computed
from each scan, which costs nothing. Two leaders for a while do no harm: every lease is created on the condition that
it does not exist. Owners whose leases have all expired are left out. Otherwise a leader's death would stop shard sync
for as long as a finished shard's lease carries its name.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import Any

SEED = 1947
"""KCL's seed."""

_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1


class JavaRandom:
    """``java.util.Random``: the linear congruential generator that its documentation specifies."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def next_int(self, bound: int) -> int:
        """Returns ``nextInt(bound)``: 0 or more and less than ``bound``, which must be positive."""
        bits = self._next31()
        if bound & (bound - 1) == 0:
            return (bound * bits) >> 31
        while bits - bits % bound + (bound - 1) >= 1 << 31:
            bits = self._next31()
        return bits % bound

    def _next31(self) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> 17


def shuffle(items: MutableSequence[Any], random: JavaRandom) -> None:
    """Shuffles in place, as ``Collections.shuffle`` does."""
    for size in range(len(items), 1, -1):
        other = random.next_int(size)
        items[size - 1], items[other] = items[other], items[size - 1]


def elect_leader(owners: Iterable[str]) -> str | None:
    """Returns the leader among the owners of live leases; None when there is no owner."""
    # Java sorts strings by UTF-16 code units.
    workers = sorted(set(owners), key=lambda owner: owner.encode("utf-16-be", "surrogatepass"))
    shuffle(workers, JavaRandom(SEED))
    return workers[0] if workers else None
