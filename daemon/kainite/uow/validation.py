"""Checks whether a delta fits the target's tables, and brings it to its normal form.

Afterwards the apply job may rely on the following:

* ``table`` is the catalogue's name of a table that exists;
* every column exists, and ``row`` writes no column that the target computes itself;
* ``key`` has exactly the primary key's columns, none of them null, also for a delta that gave its key in ``row`` or
  ``before`` alone (:mod:`kainite.uow.completion`); it is empty for a table without a primary key, which takes inserts
  only;
* an insert's or upsert's ``row`` holds the key too, and does not contradict ``key``. An update's
  ``row`` may contradict it: the update then changes the key.

The values of keys are checked where signatures are computed; the target checks all others.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from msgspec.structs import replace

from kainite.base.errors import DeltaError
from kainite.uow.canonical import canonical_of
from kainite.uow.catalogue.tables import Catalogue, Table
from kainite.uow.completion import completed, is_complete
from kainite.uow.delta import INSERT, UPSERT, Delta, Row


class Validator:
    """Checks deltas against a catalogue; each table's rules are computed once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._rules: dict[str, _TableRules] = {}

    def checked(self, delta: Delta) -> Delta:
        """Returns the delta in its normal form.

        Raises:
            DeltaError: the delta names what the target does not have, or lacks what the target needs.
        """
        rules = self._rules.get(delta.table) or self._rules_of(delta.table)
        if not is_complete(delta):
            delta = completed(delta, rules.table)
        if not delta.row.keys() <= rules.writable:
            raise _wrong_column(rules, "row", delta.row)
        if not delta.before.keys() <= rules.columns:
            raise _wrong_column(rules, "before", delta.before)
        if delta.key.keys() != rules.key and _is_told_twice(delta):
            delta = replace(delta, key={})
        return _keyed(delta, rules) if rules.key else _keyless(delta, rules)

    def _rules_of(self, name: str) -> _TableRules:
        table = self._catalogue.find(name)
        if table is None:
            raise DeltaError(f"table {name!r} is not in the target's catalogue")
        writable = {column.name for column in table.columns.values() if not column.generated}
        rules = _TableRules(table, frozenset(table.primary_key), frozenset(table.columns), frozenset(writable))
        self._rules[name] = rules
        return rules


@dataclass(frozen=True, slots=True)
class _TableRules:
    table: Table
    key: frozenset[str]
    columns: frozenset[str]
    writable: frozenset[str]


def _is_told_twice(delta: Delta) -> bool:
    """Returns whether the delta is an insert whose row has all that its key says, value for value.

    The row of such an insert alone decides. So an insert fits again after the columns of the table's primary key have
    changed, although its key was completed under the former ones.
    """
    return delta.op is INSERT and all(
        name in delta.row and type(delta.row[name]) is type(value) and delta.row[name] == value
        for name, value in delta.key.items()
    )


def _keyless(delta: Delta, rules: _TableRules) -> Delta:
    name = rules.table.name
    if delta.op is not INSERT:
        raise DeltaError(f"table {name!r} has no primary key: it takes inserts only, no {delta.op}")
    if delta.key:
        raise DeltaError(f"table {name!r} has no primary key: leave 'key' out")
    return delta if delta.table == name else replace(delta, table=name)


def _keyed(delta: Delta, rules: _TableRules) -> Delta:
    key, row = delta.key, delta.row
    if delta.op is INSERT and not key:
        key = {name: row[name] for name in rules.table.primary_key if name in row}
    if key.keys() != rules.key:
        raise _wrong_key(rules, key)
    if None in key.values():
        raise DeltaError(f"primary key of {rules.table.name!r} has a null in it")
    if delta.op is INSERT or delta.op is UPSERT:
        row = _row_with_key(key, row, rules)
    if key is delta.key and row is delta.row and delta.table == rules.table.name:
        return delta
    return replace(delta, table=rules.table.name, key=key, row=row)


def _row_with_key(key: Row, row: Row, rules: _TableRules) -> Row:
    for name, value in key.items():
        # Mostly they are identical; values that are spelled differently may still be equal.
        if name in row and row[name] != value and not _same(rules.table, name, value, row[name]):
            raise DeltaError(f"'key' and 'row' differ in column {name!r} of {rules.table.name!r}")
    return row if key.keys() <= row.keys() else {**key, **row}


def _same(table: Table, name: str, one: object, other: object) -> bool:
    canonical = canonical_of([table.columns[name]])
    return other is not None and canonical(one) == canonical(other)


def _wrong_key(rules: _TableRules, key: Row) -> DeltaError:
    named = ", ".join(rules.table.primary_key)
    missing = _first(rules.key - key.keys())
    if missing is not None:
        return DeltaError(f"key column {missing!r} of {rules.table.name!r} is missing: its primary key is ({named})")
    extra = _first(key.keys() - rules.key)
    return DeltaError(f"{extra!r} is no key column of {rules.table.name!r}: its primary key is ({named})")


def _wrong_column(rules: _TableRules, field: str, row: Row) -> DeltaError:
    name = _first(row.keys() - rules.columns)
    if name is not None:
        return DeltaError(f"table {rules.table.name!r} has no column {name!r}, which {field!r} names")
    name = _first(row.keys() - rules.writable)
    return DeltaError(f"column {name!r} of {rules.table.name!r} is computed by the target: leave it out of {field!r}")


def _first(names: Set[str]) -> str | None:
    return min(names, default=None)
