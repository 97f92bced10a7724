"""Computes the signatures of deltas of which the names are known: which keys to look at is worked out once. Pure.

What :meth:`~kainite.uow.touched.plan.TablePlan.add` finds out for each delta (which keys have columns in the image
that is looked at, and which of them an update writes) follows from the names of columns. Here it is found out once for
all deltas with the same operation and the same names; the signatures are those of ``add``. Foreign keys that act take
more than names, so tables with them have no such plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from kainite.uow.delta import Delta, Json, Operation, Row
from kainite.uow.touched.key import Key
from kainite.uow.touched.plan import TablePlan

CACHED: Final = 8_192
"""Most values whose signatures are remembered, over all tables: parents and hot rows are asked for again."""

Token: TypeAlias = Callable[[Row], int | None]
"""Returns the signature of a key's value in an image; None where it has none."""

Sign: TypeAlias = Callable[[Row, Row, Row, set[int], set[int]], None]
"""Adds the signatures of a delta (key, row, before) in its normal form to two sets, those that are written, and read.

Raises DeltaError for a value that does not fit its column, TypeError for one that is no scalar; then it adds nothing.
"""


@dataclass(frozen=True, slots=True)
class _Change:
    """A key of which an update writes columns.

    Attributes:
        token: of the key.
        compared: the written columns, where all their old values are known; None where one is not, so that it changes.
    """

    token: Token
    compared: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class _Single:
    """A key of one column; two are equal only if they are the same object."""

    key: Key[int]
    column: str

    def token_of(self, value: Json) -> int | None:
        return self.key.token({self.column: value})


class SigningByName:
    """Makes the functions that sign deltas with the same names; shares what it remembers of values among them.

    Threads may use it at a time: it holds nothing but the memory of values.
    """

    def __init__(self) -> None:
        self._remember = lru_cache(CACHED, typed=True)(_Single.token_of)

    def sign(self, plan: TablePlan[int], delta: Delta) -> Sign | None:
        """Returns what signs deltas with the operation and the names of ``delta``; None where a foreign key acts.

        Args:
            plan: of the delta's table.
            delta: in its normal form.
        """
        if any(parent.cascade for parent in plan.parents) or any(one.on_delete or one.on_change for one in plan.named):
            return None
        written = (*plan.rows, *plan.unique, *(named.key for named in plan.named))
        read = tuple(parent.key for parent in plan.parents)
        if delta.op is not Operation.UPDATE:
            return _IMAGES[delta.op](self._tokens(written), self._tokens(read))
        rows, writes, reads = self._tokens(plan.rows), self._changes(written, delta), self._changes(read, delta)
        if writes or reads or not all(key.columns <= delta.key.keys() for key in plan.rows):
            return _update(rows, writes, reads)
        return _update_of_values(rows)

    def _changes(self, keys: Iterable[Key[int]], delta: Delta) -> tuple[_Change, ...]:
        known = delta.before.keys() | delta.key.keys()
        return tuple(
            _Change(self._token_of(key), tuple(names) if names <= known else None)
            for key in keys
            if (names := key.columns & delta.row.keys())
        )

    def _tokens(self, keys: Iterable[Key[int]]) -> tuple[Token, ...]:
        return tuple(map(self._token_of, keys))

    def _token_of(self, key: Key[int]) -> Token:
        if len(key.parts) != 1 or not key.nulls_distinct:
            return key.token
        return _remembered(self._remember, _Single(key, key.parts[0][0]))


# These make closures: each is called for every delta, and passes on as little as possible.


def _remembered(remember: Callable[[_Single, Json], int | None], single: _Single) -> Token:
    column = single.column

    def token(image: Row) -> int | None:
        value = image.get(column)
        return None if value is None else remember(single, value)

    return token


def _insert(writes: Sequence[Token], reads: Sequence[Token]) -> Sign:
    def sign(_: Row, row: Row, __: Row, written: set[int], read: set[int]) -> None:
        found, parents = _signatures(writes, row), _signatures(reads, row)
        written.update(found)
        read.update(parents)

    return sign


def _delete(writes: Sequence[Token], reads: Sequence[Token]) -> Sign:
    def sign(key: Row, _: Row, before: Row, written: set[int], read: set[int]) -> None:
        old = {**before, **key}
        found, parents = _signatures(writes, old), _signatures(reads, old)
        written.update(found)
        read.update(parents)

    return sign


def _upsert(writes: Sequence[Token], reads: Sequence[Token]) -> Sign:
    def sign(key: Row, row: Row, before: Row, written: set[int], read: set[int]) -> None:
        old, new = {**before, **key}, {**key, **row}
        found = _signatures(writes, old), _signatures(writes, new)
        parents = _signatures(reads, old), _signatures(reads, new)
        written.update(*found)
        read.update(*parents)

    return sign


def _update_of_values(rows: Sequence[Token]) -> Sign:
    """Signs updates that write no column of any key."""

    def sign(key: Row, _: Row, __: Row, written: set[int], ___: set[int]) -> None:
        written.update(_signatures(rows, key))

    return sign


def _update(rows: Sequence[Token], writes: Sequence[_Change], reads: Sequence[_Change]) -> Sign:
    def sign(key: Row, row: Row, before: Row, written: set[int], read: set[int]) -> None:
        old = {**before, **key}
        new = {**old, **row}
        found, parents = _signatures(rows, old) + _changed(writes, old, new), _changed(reads, old, new)
        written.update(found)
        read.update(parents)

    return sign


def _changed(changes: Sequence[_Change], old: Row, new: Row) -> list[int]:
    # Raw values are compared, as in TablePlan: two that are spelled alike may still differ.
    tokens = [
        change.token
        for change in changes
        if change.compared is None or any(old[name] != new[name] for name in change.compared)
    ]
    return _signatures(tokens, old) + _signatures(tokens, new) if tokens else []


def _signatures(tokens: Sequence[Token], image: Row) -> list[int]:
    return [signature for token in tokens if (signature := token(image)) is not None]


_IMAGES: Final = {Operation.INSERT: _insert, Operation.DELETE: _delete, Operation.UPSERT: _upsert}
