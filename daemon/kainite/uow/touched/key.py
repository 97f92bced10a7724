"""Keys of tables, and the tokens that their values become.

A token is whatever a :class:`TokenMaker` makes of a key's canonical value: a 64-bit hash (``HASHED``), or text
(``PLAIN``), which costs less where it is not stored. Values that may be equal to the target have the same token
(:mod:`kainite.uow.canonical`); a token that stands for too much costs parallelism, never correctness. For
the same reason values are joined without escaping.

Some decisions need more than that two units *may* touch one row (:mod:`kainite.log.state.corrections`). So hashes tell
what they stand for: the highest bit, :data:`ROW`, is set in the hash of a primary key's value that stands for one row,
and in no other.

=========================================  ===============================================================
the token is                               :data:`ROW`
=========================================  ===============================================================
a row of one table, by its primary key     set
a row of a partitioned table, or of one    not set: each partition, and each heir, may have a row with the
that others inherit from                   key (the space is ``rows`` then)
a row whose spelled key has an empty part  not set: opaque values are spelled so, and others of which several
                                           are spelled alike
a unique value, existence, a cascade, a    not set
part, a whole, an overlap, a table
=========================================  ===============================================================

Keys of text that differ in spaces at the end alone, and binary keys that differ in zeros at the end alone, are spelled
alike, and count as one row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar

from kainite.base.errors import DeltaError
from kainite.uow.canonical import Canonical
from kainite.uow.delta import Row

_NULL = "\x00"
ROW: Final = 1 << 63
"""The bit that is set in the hashes that stand for one row each."""

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TokenMaker(Generic[T]):
    """Makes tokens.

    Attributes:
        keyed: takes a space, a table and the names of columns; returns a function that makes a token of their values.
        derived: makes another token out of a token; no key's value has that token.
        number: makes a whole number of a token; for tokens that are stored it is the same in every process.
    """

    keyed: Callable[[str, str, Sequence[str]], Callable[[str], T]]
    derived: Callable[[T], T]
    number: Callable[[T], int]


@dataclass(frozen=True, slots=True)
class ColumnKey(Generic[T]):
    """Some columns of a table whose values become one token.

    Attributes:
        table: the table's name, for messages.
        finish: makes a token of the spelled values.
        parts: each column and the spelling of its values.
        columns: the columns' names.
        nulls_distinct: whether a key with a NULL excludes nothing.
    """

    table: str
    finish: Callable[[str], T]
    parts: tuple[tuple[str, Canonical], ...]
    columns: frozenset[str]
    nulls_distinct: bool = True

    def token(self, image: Row) -> T | None:
        """Returns the token of the key's value in ``image``; None for a NULL, or when a column is unknown.

        Raises:
            DeltaError: a value does not fit its column.
        """
        if len(self.parts) == 1:  # most keys: without a list
            name, canonical = self.parts[0]
            if (value := image.get(name)) is not None:
                try:
                    return self.finish(canonical(value))
                except DeltaError as error:
                    raise DeltaError(f"column {name!r} of {self.table!r}: {error}") from None
        spelled = []
        for name, canonical in self.parts:
            value = image.get(name)
            if value is not None:
                try:
                    spelled.append(canonical(value))
                except DeltaError as error:
                    raise DeltaError(f"column {name!r} of {self.table!r}: {error}") from None
            elif self.nulls_distinct or name not in image:
                return None
            else:
                spelled.append(_NULL)
        return self.finish("\0".join(spelled))

    def unknown(self, image: Row) -> bool:
        """Returns whether the key's value in ``image`` is open: some part is unknown and no known part is NULL."""
        return not any(name in image and image[name] is None for name in self.columns)


def _hashed(space: str, table: str, columns: Sequence[str]) -> Callable[[str], int]:
    seed = hashlib.blake2b("\0".join((space, table, *columns, "")).encode(), digest_size=8)
    return partial(_row_digest, seed, len(columns)) if space == "row" else partial(_digest, seed)


def _digest(seed: hashlib.blake2b, spelled: str) -> int:
    state = seed.copy()
    state.update(spelled.encode())
    return int.from_bytes(state.digest(), "big") & ~ROW


def _row_digest(seed: hashlib.blake2b, columns: int, spelled: str) -> int:
    token = _digest(seed, spelled)
    parts = spelled.split("\0")
    return token | ROW if len(parts) == columns and all(parts) else token


def _plain(space: str, table: str, columns: Sequence[str]) -> Callable[[str], str]:
    return "\0".join((space, table, *columns, "")).__add__


HASHED: TokenMaker[int] = TokenMaker(_hashed, 0x1E3779B97F4A7C15.__xor__, int)
"""The signatures: 63 bits of a BLAKE2b hash, below :data:`ROW`, as unsigned integers."""

PLAIN: TokenMaker[str] = TokenMaker(_plain, "\1".__add__, hash)
"""Text, for one process."""
