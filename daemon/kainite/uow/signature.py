"""Computes signatures: 64-bit hashes of the keys that two units of work can conflict on.

A delta has two sets of signatures, *written* and *read*; two units conflict when one writes what
the other writes or reads (docs/architecture.md, *Decisions*). There are three spaces:

* **row**: (table, primary key), written by every delta on the row, with the old and the new key
  when the key changes;
* **unique**: (table, unique key), written where a row takes or gives up a value, as far as the value
  is known. A key with a NULL in it excludes nothing and has no signature;
* **existence**: (table, columns that foreign keys name). Written when a row appears, goes away, or
  changes those columns; read by each child row that names the row. An upsert may insert, so it writes.
  The key is the named columns, because a foreign key may name a unique key instead of the primary key.
  A child also reads the parent that it *leaves* (a delete, a changed foreign key): the parent may be
  deleted in a later unit, which must not overtake the child's change.

A value that an update does not change is not guarded: a later unit that changes the value writes the same
row, and so comes in order anyway. A hot parent's other columns can therefore be updated in parallel with its
children, provided that the source says which columns did not change (in ``before``, or by their absence from ``row``).

An unknown value is not guarded: an update or delete without ``before`` does not say which unique
value or parent it gives up. Nothing wrong is committed even then, because the target's own
constraints refuse a unit that comes too early. Sources should send ``before`` for tables with
unique keys and foreign keys (PostgreSQL: ``REPLICA IDENTITY FULL``).

A signature is a 64-bit BLAKE2b hash, as an unsigned integer. A collision costs parallelism,
never correctness; for the same reason key values are joined without escaping.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kainite.base.errors import DeltaError
from kainite.uow.canonical import Canonical, canonical_of
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, Table, UniqueKey
from kainite.uow.delta import Delta, Operation, Row

_NULL = "\x00"
_References: TypeAlias = Mapping[tuple[str, tuple[str, ...]], tuple[Canonical, ...]]
"""For each (parent, its columns that foreign keys name, sorted): the spelling of each column."""


class Signatures:
    """Computes the signatures of deltas; each table's plan is worked out once.

    Args:
        catalogue: the target's tables, or None. Without one a delta has the signature
            (table, key) alone, values compared by their plain text.
    """

    def __init__(self, catalogue: Catalogue | None) -> None:
        self._catalogue = catalogue
        self._references = _references(catalogue) if catalogue else {}
        self._plans: dict[str, _Plan] = {}

    def add(self, delta: Delta, written: set[int], read: set[int]) -> None:
        """Adds a delta's signatures to the two sets.

        Raises:
            DeltaError: the table is unknown, or a key value does not fit its column.
        """
        if self._catalogue is None:
            _add_by_key(delta, written)
            return
        plan = self._plans.get(delta.table) or self._plan(self._catalogue, delta.table)
        written.update(plan.always)
        if delta.op is Operation.INSERT:
            plan.touch({**delta.key, **delta.row}, written, read)
        elif delta.op is Operation.UPDATE:
            plan.update(delta, written, read)
        elif delta.op is Operation.DELETE:
            plan.touch({**delta.before, **delta.key}, written, read)
        else:
            plan.touch({**delta.before, **delta.key}, written, read)
            plan.touch({**delta.key, **delta.row}, written, read)

    def of(self, deltas: Iterable[Delta]) -> tuple[frozenset[int], frozenset[int]]:
        """Returns all signatures of ``deltas``: (written, read); raises as :meth:`add`."""
        written: set[int] = set()
        read: set[int] = set()
        for delta in deltas:
            self.add(delta, written, read)
        return frozenset(written), frozenset(read)

    def _plan(self, catalogue: Catalogue, name: str) -> _Plan:
        table = catalogue.find(name)
        if table is None:
            raise DeltaError(f"table {name!r} is not in the target's catalogue")
        plan = self._plans[name] = _plan(table, catalogue, self._references)
        return plan


@dataclass(frozen=True, slots=True)
class _Key:
    """Some columns of a table whose values are hashed together.

    Attributes:
        table: the table's name, for messages.
        seed: the hash of everything but the values.
        parts: each column and the spelling of its values.
        columns: the columns' names.
        nulls_distinct: a key with a NULL excludes nothing.
    """

    table: str
    seed: hashlib.blake2b
    parts: tuple[tuple[str, Canonical], ...]
    columns: frozenset[str]
    nulls_distinct: bool = True

    def signature(self, image: Row) -> int | None:
        """Returns the hash of the key's value in ``image``; None for a NULL, or when a column is unknown."""
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
        state = self.seed.copy()
        state.update("\0".join(spelled).encode())
        return int.from_bytes(state.digest(), "big")


@dataclass(frozen=True, slots=True)
class _Plan:
    """The keys that a delta on one table writes and reads.

    Attributes:
        row: the primary key; None for a table without one.
        written: row, unique and existence keys.
        read: existence keys of parents, by the child's columns.
        always: signatures of unique keys whose columns say nothing; written by every delta.
    """

    row: _Key | None
    written: tuple[_Key, ...]
    read: tuple[_Key, ...]
    always: tuple[int, ...]

    def touch(self, image: Row, written: set[int], read: set[int]) -> None:
        """Adds the signatures of a row with the values of ``image`` that appears or goes away."""
        for key in self.written:
            if (signature := key.signature(image)) is not None:
                written.add(signature)
        for key in self.read:
            if (signature := key.signature(image)) is not None:
                read.add(signature)

    def update(self, delta: Delta, written: set[int], read: set[int]) -> None:
        old = {**delta.before, **delta.key}
        # Raw values are compared: two that are spelled alike may still differ (see canonical.py).
        changed = {name for name, value in delta.row.items() if name not in old or old[name] != value}
        if self.row is not None and (signature := self.row.signature(old)) is not None:
            written.add(signature)
        new = {**old, **delta.row}
        for keys, into in ((self.written, written), (self.read, read)):
            for key in keys:
                if not key.columns.isdisjoint(changed):
                    into.update(signature for image in (old, new) if (signature := key.signature(image)) is not None)


def _plan(table: Table, catalogue: Catalogue, references: _References) -> _Plan:
    row = _table_key("row", table, table.primary_key) if table.primary_key else None
    existence = [
        _key("existence", table.name, columns, zip(columns, spellings, strict=True))
        for (parent, columns), spellings in references.items()
        if parent == table.name
    ]
    told = [key for key in table.unique_keys if _tells(table, key)]
    return _Plan(
        row=row,
        written=(*([row] if row else []), *(_unique_key(table, key) for key in told), *existence),
        read=tuple(
            _parent_key(table, foreign_key, references)
            for foreign_key in table.foreign_keys
            if foreign_key.parent in catalogue.tables
        ),
        always=tuple(_whole(table, key) for key in table.unique_keys if key not in told),
    )


def _tells(table: Table, key: UniqueKey) -> bool:
    """Returns whether deltas can say the key's value: the target computes some columns itself."""
    return bool(key.columns) and not any(table.columns[name].generated for name in key.columns)


def _unique_key(table: Table, key: UniqueKey) -> _Key:
    return _table_key("unique", table, key.columns, nulls_distinct=key.nulls_distinct)


def _whole(table: Table, key: UniqueKey) -> int:
    signature = _key("unique", table.name, (key.name,), ()).signature({})
    assert signature is not None
    return signature


def _parent_key(table: Table, foreign_key: ForeignKey, references: _References) -> _Key:
    columns, parent_columns = _by_parent_column(foreign_key)
    spellings = references[foreign_key.parent, parent_columns]
    seeded = _key("existence", foreign_key.parent, parent_columns, zip(columns, spellings, strict=True))
    return _Key(table.name, seeded.seed, seeded.parts, seeded.columns)


def _table_key(space: str, table: Table, columns: Sequence[str], *, nulls_distinct: bool = True) -> _Key:
    parts = [(name, canonical_of([table.columns[name]])) for name in columns]
    return _key(space, table.name, columns, parts, nulls_distinct=nulls_distinct)


def _key(
    space: str,
    table: str,
    named: Sequence[str],
    parts: Iterable[tuple[str, Canonical]],
    *,
    nulls_distinct: bool = True,
) -> _Key:
    parts = tuple(parts)
    return _Key(table, _seed(space, table, named), parts, frozenset(name for name, _ in parts), nulls_distinct)


def _seed(space: str, table: str, named: Sequence[str]) -> hashlib.blake2b:
    return hashlib.blake2b("\0".join((space, table, *named, "")).encode(), digest_size=8)


def _references(catalogue: Catalogue) -> _References:
    """Returns every key that some foreign key names, with one spelling for parent and children."""
    columns: defaultdict[tuple[str, tuple[str, ...]], list[list[Column]]] = defaultdict(list)
    for table in catalogue.tables.values():
        for foreign_key in table.foreign_keys:
            parent = catalogue.tables.get(foreign_key.parent)
            if parent is None:
                continue
            children, named = _by_parent_column(foreign_key)
            positions = columns[parent.name, named] or [[parent.columns[name]] for name in named]
            for position, child in zip(positions, children, strict=True):
                position.append(table.columns[child])
            columns[parent.name, named] = positions
    return {key: tuple(canonical_of(position) for position in positions) for key, positions in columns.items()}


def _by_parent_column(foreign_key: ForeignKey) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the foreign key's columns with the parent's columns, in one order for all foreign keys."""
    pairs = sorted(zip(foreign_key.parent_columns, foreign_key.columns, strict=True))
    return tuple(child for _, child in pairs), tuple(parent for parent, _ in pairs)


def _add_by_key(delta: Delta, written: set[int]) -> None:
    """Adds the signatures without a catalogue: (table, key), old and new."""
    key = delta.key
    if not key:
        return
    for image in (key, {name: delta.row.get(name, value) for name, value in key.items()}):
        values = [f"{name}\0{image[name]}" for name in sorted(image)]
        state = _seed("row", delta.table, sorted(image))
        state.update("\0".join(values).encode())
        written.add(int.from_bytes(state.digest(), "big"))
