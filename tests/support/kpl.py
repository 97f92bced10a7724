"""KPL aggregates written byte by byte: an encoder that shares nothing with what reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

MAGIC = bytes([0xF3, 0x89, 0x9A, 0xC2])
DIGEST_BYTES = 16


@dataclass(frozen=True)
class User:
    """A user record, as its indexes into the tables."""

    data: bytes
    key: int = 0
    explicit: int | None = None


def aggregate(users: Sequence[User], keys: Sequence[str] = ("k",), explicit: Sequence[str] = ()) -> bytes:
    """Returns an aggregate as a KPL producer puts it."""
    return sealed(message(users, keys, explicit))


def message(users: Sequence[User], keys: Sequence[str] = ("k",), explicit: Sequence[str] = ()) -> bytes:
    """Returns the protobuf message."""
    tables = [_bytes(1, key.encode()) for key in keys] + [_bytes(2, key.encode()) for key in explicit]
    return b"".join(tables + [_bytes(3, _user(user)) for user in users])


def sealed(body: bytes) -> bytes:
    """Returns the magic, the message and its digest."""
    return MAGIC + body + hashlib.md5(body).digest()


def _user(user: User) -> bytes:
    explicit = b"" if user.explicit is None else _varint(2 << 3) + _varint(user.explicit)
    return _varint(1 << 3) + _varint(user.key) + explicit + _bytes(3, user.data)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(high) if high else bytes([low])
