"""The 32-bit hashes of locks. Clients compute them; the owner compares nothing else.

All clients of a partition must use one of the two functions.
"""

from __future__ import annotations

import hashlib
from typing import Final

_SIGN: Final = 1 << 31
_MASK: Final = (1 << 32) - 1


def lock_hash(name: str, *key: str | int) -> int:
    """Returns the hash of a lock on a named thing, such as ``lock_hash("account", 17)``. Equal hashes are rare."""
    text = "\0".join((name, *(f"{type(part).__name__} {part}" for part in key)))
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).digest(), "big", signed=True)


def waltz_lock_hash(name: str, number: int) -> int:
    """Returns the hash that Waltz's own clients compute; of neighbouring names and numbers many are equal.

    Args:
        name: the name of the locked thing's kind.
        number: a signed 64-bit number.
    """
    units = name.encode("utf-16-be", "surrogatepass")
    text = 0
    for at in range(0, len(units), 2):
        text = (31 * text + int.from_bytes(units[at : at + 2], "big")) & _MASK
    bits = number & ((1 << 64) - 1)
    return _signed(text ^ (bits & _MASK) ^ (bits >> 32))


def _signed(bits: int) -> int:
    return (bits & _MASK ^ _SIGN) - _SIGN
