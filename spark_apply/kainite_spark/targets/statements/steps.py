"""Splits a unit's deltas into steps; deltas of one step may share set-based statements. Pure.

Set-based statements change the order of a unit's deltas to inserts, updates, deletes. The result is
right as long as no row, and no value of a unique key, is touched twice. If one is, the later
delta goes to a later step, and the steps are applied one after the other:

* a delta's step is one more than the step of the delta before it that touched the same row or the
  same unique value (by the source's order);
* a delta that names a parent row is never before that parent's last write, so that a row that is
  deleted and inserted again does not take its new children with it (``ON DELETE CASCADE``);
* a delete goes to the unit's last step if no later delta touches its row, so that children that need
  two steps are gone before their parent.

Values are compared as JSON values (1 and "1" are different). If that misses a duplicate, such as a
unique value that only the target knows, the target refuses the unit, and the caller falls back to
the source's order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

from kainite.uow.catalogue.tables import Catalogue, ForeignKey, Table
from kainite.uow.delta import Delta, Operation, Row

Token: TypeAlias = tuple[Hashable, ...]
_Getter: TypeAlias = Callable[[Row], Hashable]


class Stepper:
    """Splits units into steps; caches for each table how its keys are read."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._keys: dict[str, _TableKeys | None] = {}

    def steps(self, deltas: Sequence[Delta]) -> list[list[Delta]]:
        """Splits a unit's deltas, which are in the source's order, into steps."""
        if len(deltas) < 2:
            return [list(deltas)]
        touched = [self._touched(delta) for delta in deltas]
        if len({token for tokens in touched for token in tokens}) == sum(map(len, touched)):
            return [list(deltas)]
        numbers = self._numbers(deltas, touched)
        layers: list[list[Delta]] = [[] for _ in range(max(numbers) + 1)]
        for delta, number in zip(deltas, numbers, strict=True):
            layers[number].append(delta)
        return layers

    def _numbers(self, deltas: Sequence[Delta], touched: Sequence[Sequence[Token]]) -> list[int]:
        last: dict[Token, int] = {}
        numbers = []
        for delta, tokens in zip(deltas, touched, strict=True):
            number = max((last[token] + 1 for token in tokens if token in last), default=0)
            number = max([number, *(last.get(parent, 0) for parent in self._parents(delta))])
            last.update(dict.fromkeys(tokens, number))
            numbers.append(number)
        final = max(numbers)
        for index, delta in enumerate(deltas):
            if delta.op is Operation.DELETE and all(last[token] == numbers[index] for token in touched[index]):
                numbers[index] = final
        return numbers

    def _touched(self, delta: Delta) -> Sequence[Token]:
        keys = self._of(delta.table)
        return keys.touched(delta) if keys else ()

    def _parents(self, delta: Delta) -> Sequence[Token]:
        keys = self._of(delta.table)
        return keys.parents(delta) if keys else ()

    def _of(self, name: str) -> _TableKeys | None:
        if name not in self._keys:
            table = self._catalogue.find(name)
            self._keys[name] = _TableKeys(table, self._catalogue) if table else None
        return self._keys[name]


class _TableKeys:
    """Reads the keys of one table out of its deltas."""

    def __init__(self, table: Table, catalogue: Catalogue) -> None:
        self._name = table.name
        self._primary = _getter(table.primary_key)
        self._primary_columns = frozenset(table.primary_key)
        self._unique = [(key.name, _getter(key.columns)) for key in table.unique_keys if key.columns]
        self._foreign = [
            (parent.name, _getter(columns))
            for key in table.foreign_keys
            if (parent := catalogue.find(key.parent)) and (columns := _by_primary_key(key, parent))
        ]

    def touched(self, delta: Delta) -> Sequence[Token]:
        """Returns tokens of the row, under its old and its new key, and of its unique values, old and new."""
        if not delta.key:
            return ()
        row: Token = (self._name, _value(self._primary, delta.key))
        renames = delta.op is Operation.UPDATE and not self._primary_columns.isdisjoint(delta.row)
        if not renames and not self._unique:
            return (row,)
        tokens = {row}
        if renames:
            tokens.add((self._name, _value(self._primary, {**delta.key, **delta.row})))
        for name, getter in self._unique:
            for image in (delta.before, delta.row):
                value = _value(getter, image)
                if value is not None:
                    tokens.add((self._name, name, value))
        return tuple(tokens)

    def parents(self, delta: Delta) -> Sequence[Token]:
        """Returns tokens of the parent rows that a written row names."""
        values = ((parent, _value(getter, delta.row)) for parent, getter in self._foreign)
        return [(parent, value) for parent, value in values if value is not None]


def _by_primary_key(key: ForeignKey, parent: Table) -> tuple[str, ...]:
    """Returns the child's columns in the order of the parent's primary key; () if they reference another key."""
    named = dict(zip(key.parent_columns, key.columns, strict=True))
    return tuple(named[column] for column in parent.primary_key) if set(parent.primary_key) == set(named) else ()


def _getter(columns: Sequence[str]) -> _Getter:
    getter: _Getter = itemgetter(*columns) if columns else lambda _: None
    return getter


def _value(getter: _Getter, image: Mapping[str, object]) -> Hashable:
    """Returns a key's value, None if a column is absent; a value that cannot be hashed as its text."""
    try:
        value = getter(image)
        hash(value)
    except KeyError:
        return None
    except TypeError:
        return repr(getter(image))
    return value
