"""A set of many 128-bit digests in little memory, from which the oldest leave first.

A Python set takes about 100 bytes for a digest. Here a digest's first two bytes choose one of 65,536 byte strings, in
which the other fourteen lie one behind the other in the order in which they came; an array has the choice for each
digest in the order of all. So the oldest digest is at the front of its byte string. A digest takes about 25 bytes, and
looking one up is one search in a short byte string.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections import defaultdict
from functools import lru_cache
from typing import Final

DIGEST_BYTES: Final = 16
"""The bytes of a digest: so many that two names never have the same digest by chance."""

_REST = DIGEST_BYTES - 2
_PARTS = struct.Struct(f">H{_REST}s")


@lru_cache(maxsize=8192)  # a unit's name is looked up with its first fragment, and added when it is dispatched
def digest_of(name: str) -> bytes:
    """Returns the digest of a name."""
    return hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).digest()


class DigestSet:
    """Digests in order of age; a digest that was added twice stays until its second copy has left."""

    def __init__(self) -> None:
        self._buckets: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._order = array("H")
        self._left = 0
        """How many digests at the front of ``_order`` have left."""

    def __len__(self) -> int:
        return len(self._order) - self._left

    def __contains__(self, digest: bytes) -> bool:
        chosen, rest = _PARTS.unpack(digest)
        bucket = self._buckets.get(chosen, b"")
        at = bucket.find(rest)
        while at > 0 and at % _REST:  # the end of one digest and the beginning of the next
            at = bucket.find(rest, at + 1)
        return at >= 0

    def extend(self, digests: bytes) -> None:
        """Adds digests, given as one byte string, oldest first."""
        buckets, order = self._buckets, self._order
        for chosen, rest in _PARTS.iter_unpack(digests):
            buckets[chosen] += rest
            order.append(chosen)

    def forget(self, count: int) -> None:
        """Removes the ``count`` oldest digests."""
        for at in range(self._left, self._left + count):
            del self._buckets[self._order[at]][:_REST]
        self._left += count
        if self._left > len(self._order) // 2:
            del self._order[: self._left]
            self._left = 0
