"""The tokens that deltas on one table write and read. The rule is in :mod:`kainite.uow.touched.deltas`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Generic

from kainite.uow.delta import DELETE, INSERT, UPDATE, UPSERT, Delta, Row
from kainite.uow.touched.key import ColumnKey, T, TokenMaker

PARTS = 16


@dataclass(frozen=True, slots=True)
class CascadeTokens(Generic[T]):
    """The tokens that a delete or a change of a parent writes beside its value.

    Attributes:
        written: wholes further down, and parts of children that move to a default.
        overlaps: tokens of overlaps.
    """

    written: frozenset[T]
    overlaps: frozenset[T]


@dataclass(frozen=True, slots=True)
class Cascade(Generic[T]):
    """The tokens of one reference of which some foreign key acts."""

    spelling: TokenMaker[T]
    parts: tuple[T, ...]
    whole: T
    read_always: frozenset[T]

    def write_old(self, key: ColumnKey[T], image: Row, written: set[T]) -> None:
        """Adds the tokens that a delta on a parent writes when the parent gives up its value in ``image``."""
        token = key.token(image)
        if token is not None:
            written.add(self.spelling.derived(token))
            written.add(self.parts[self.spelling.number(token) % PARTS])
        elif key.unknown(image):
            written.add(self.whole)

    def read_old(self, key: ColumnKey[T], image: Row, read: set[T]) -> None:
        """Adds the tokens that a delta on a child reads; ``image`` has the child's old values."""
        read.update(self.read_always)
        token = key.token(image)
        if token is not None:
            read.add(self.spelling.derived(token))
        elif key.unknown(image):
            self.read_any(read)

    def read_any(self, read: set[T]) -> None:
        """Adds the tokens that a delta on a child reads whose parent may be any."""
        read.add(self.whole)
        read.update(self.parts)


@dataclass(frozen=True, slots=True)
class Named(Generic[T]):
    """Columns of a table that foreign keys name.

    Attributes:
        key: makes the tokens of the parents' existence.
        cascade: the tokens of the reference's cascade; None unless some foreign key acts.
        on_delete, on_change: the effects of a delete, or of a change of the columns; None if there are none.
        computed: whether a column is generated, so that any update may change it.
    """

    key: ColumnKey[T]
    cascade: Cascade[T] | None
    on_delete: CascadeTokens[T] | None
    on_change: CascadeTokens[T] | None
    computed: bool = False

    def may_change(self, changed: Set[str]) -> bool:
        """Returns whether an update that changes these columns may change the named ones."""
        return not self.key.columns.isdisjoint(changed) or (self.computed and bool(changed))


@dataclass(frozen=True, slots=True)
class Parent(Generic[T]):
    """A foreign key.

    Attributes:
        key: makes the tokens of the parent's existence from the child's columns.
        cascade: the tokens of the reference's cascade; None unless the foreign key acts.
        filled: the columns that may have a value where an insert does not name them.
        computed: whether a column is generated, so that any update may change it.
        takes_along: whether the child is deleted with its parent (ON DELETE CASCADE).
    """

    key: ColumnKey[T]
    cascade: Cascade[T] | None
    filled: frozenset[str] = frozenset()
    computed: bool = False
    takes_along: bool = False

    def fills_in(self, image: Row) -> bool:
        """Returns whether an insert of ``image`` may name a parent that is not told."""
        untold = self.key.columns - image.keys()
        return bool(untold) and untold <= self.filled and self.key.unknown(image)


@dataclass(frozen=True, slots=True)
class TablePlan(Generic[T]):
    """The tokens that deltas on one table write and read.

    Attributes:
        family: the name of the outermost table, which all tables share whose rows may be the same ones.
        rows: the primary keys; none for a table without one.
        unique: the unique keys.
        unclear: tokens of unique keys whose columns say nothing; every delta writes them.
        named: columns that foreign keys name.
        parents: the table's own foreign keys.
        acting: whether some change of the rows makes a foreign key act.
        guarded: the columns that an update must not write to touch its row alone; None where each update may touch
            more.
    """

    family: str
    rows: tuple[ColumnKey[T], ...]
    unique: tuple[ColumnKey[T], ...]
    unclear: frozenset[T]
    named: tuple[Named[T], ...]
    parents: tuple[Parent[T], ...]
    acting: bool = field(init=False)
    guarded: frozenset[str] | None = field(init=False)

    def __post_init__(self) -> None:
        acting = any(named.on_delete or named.on_change for named in self.named)
        keys = (*self.rows, *self.unique, *(one.key for one in self.named), *(one.key for one in self.parents))
        more = acting or any(parent.cascade for parent in self.parents)
        object.__setattr__(self, "acting", acting)
        object.__setattr__(self, "guarded", None if more else frozenset[str]().union(*(key.columns for key in keys)))

    def lone(self, delta: Delta) -> T | None:
        """Returns the token if :meth:`exclusive` would add one only and it is quickly computed; otherwise None."""
        if self.unique or len(self.rows) != 1:
            return None
        key, image = self.rows[0], delta.key
        if delta.op is UPDATE:
            row = delta.row
            for name in key.columns:
                if name in row and (name not in image or image[name] != row[name]):
                    return None
        return key.token(image)

    def takers(self, delta: Delta) -> set[T]:
        """Returns the tokens of what a deleted row's parents write when they take it along (ON DELETE CASCADE)."""
        read: set[T] = set()
        for parent in self.parents:
            if parent.takes_along and parent.cascade is not None:
                parent.cascade.read_old(parent.key, {**delta.before, **delta.key}, read)
        return read

    def exclusive(self, delta: Delta, rows: set[T]) -> None:
        """Adds the tokens of rows and unique values alone, as :meth:`add` does."""
        if delta.op is not UPDATE:
            for image in _images(delta):
                _add(self.rows, image, rows)
                _add(self.unique, image, rows)
            return
        old = {**delta.before, **delta.key}
        self._changed_rows(old, {**old, **delta.row}, _changed(delta, old), rows)

    def acts(self, delta: Delta) -> bool:
        """Returns whether the delta may make the target change other rows by itself."""
        if not self.acting or delta.op is INSERT:
            return False
        if delta.op is DELETE:
            return any(named.on_delete for named in self.named)
        changed = _changed(delta, {**delta.before, **delta.key})
        return any(named.on_change and named.may_change(changed) for named in self.named)

    def touches_row_alone(self, delta: Delta) -> bool:
        """Returns whether :meth:`add` adds no more than the tokens of the row by its primary keys.

        A source may tell all columns of a row: a guarded one that has its old value is not changed.
        """
        if delta.op is not UPDATE or self.guarded is None:
            return False
        row, key = delta.row, delta.key
        for name in self.guarded:
            if name in row:
                old = key if name in key else delta.before
                if name not in old or old[name] != row[name]:
                    return False
        return True

    def add(self, delta: Delta, rows: set[T], existence: set[T], cascades: set[T], read: set[T]) -> None:
        """Adds a delta's tokens to four sets, of which the first three are written.

        Args:
            delta: in its normal form (:mod:`kainite.uow.validation`).
            rows: tokens of rows, unique values and overlaps.
            existence: tokens of existence.
            cascades: tokens of cascades, parts and wholes.
            read: tokens of everything that the delta reads.

        Raises:
            DeltaError: a key value does not fit its column.
        """
        if delta.op is UPDATE:
            self._update(delta, rows, existence, cascades, read)
            return
        for image in (images := _images(delta)):
            _add(self.rows, image, rows)
            _add(self.unique, image, rows)
            for named in self.named:
                if (token := named.key.token(image)) is not None:
                    existence.add(token)
            for parent in self.parents:
                _read_named(parent, image, read)
        if delta.op is INSERT:
            for parent in self.parents:
                if parent.cascade is not None:
                    read.update(parent.cascade.read_always)
                    if parent.fills_in(images[0]):
                        parent.cascade.read_any(read)
            return
        old = images[0]
        for parent in self.parents:
            if parent.cascade is not None:
                parent.cascade.read_old(parent.key, old, read)
                if parent.computed and delta.op is UPSERT:
                    parent.cascade.read_any(read)
        if delta.op is UPSERT:
            self._change(delta, old, rows, cascades)
            return
        for named in self.named:
            if named.on_delete is not None:
                _act(named, named.on_delete, old, None, rows, cascades)

    def _update(self, delta: Delta, rows: set[T], existence: set[T], cascades: set[T], read: set[T]) -> None:
        old = {**delta.before, **delta.key}
        if self.touches_row_alone(delta):
            _add(self.rows, old, rows)
            return
        new = {**old, **delta.row}
        changed = _changed(delta, old)
        self._changed_rows(old, new, changed, rows)
        for named in self.named:
            if not named.key.columns.isdisjoint(changed):
                existence.update(token for image in (old, new) if (token := named.key.token(image)) is not None)
        for parent in self.parents:
            moves = not parent.key.columns.isdisjoint(changed)
            if parent.cascade is not None:
                parent.cascade.read_old(parent.key, old, read)
                if parent.computed and changed:
                    parent.cascade.read_any(read)
            if moves:
                _read_named(parent, old, read)
                _read_named(parent, new, read)
        self._change(delta, old, rows, cascades)

    def _changed_rows(self, old: Row, new: Row, changed: set[str], rows: set[T]) -> None:
        _add(self.rows, old, rows)
        for keys in (self.rows, self.unique):
            for key in keys:
                if not key.columns.isdisjoint(changed):
                    rows.update(token for image in (old, new) if (token := key.token(image)) is not None)

    def _change(self, delta: Delta, old: Row, rows: set[T], cascades: set[T]) -> None:
        """Adds the tokens that follow from changed columns that foreign keys name."""
        for named in self.named:
            if named.on_change is not None and named.may_change(_changed(delta, old)):
                _act(named, named.on_change, old, {**old, **delta.row}, rows, cascades)


def _images(delta: Delta) -> Sequence[Row]:
    """Returns the row as an insert leaves it, as a delete finds it, or both for an upsert."""
    if delta.op is INSERT:
        # As a rule the row holds the key already.
        return (delta.row if delta.key.keys() <= delta.row.keys() else {**delta.key, **delta.row},)
    old = {**delta.before, **delta.key}
    return (old,) if delta.op is DELETE else (old, {**delta.key, **delta.row})


def _changed(delta: Delta, old: Row) -> set[str]:
    # Raw values are compared: two that are spelled alike may still differ (see canonical.py).
    return {name for name, value in delta.row.items() if name not in old or old[name] != value}


def _add(keys: Iterable[ColumnKey[T]], image: Row, into: set[T]) -> None:
    for key in keys:
        if (token := key.token(image)) is not None:
            into.add(token)


def _read_named(parent: Parent[T], image: Row, read: set[T]) -> None:
    if (token := parent.key.token(image)) is not None:
        read.add(token)
        if parent.cascade is not None:
            read.add(parent.cascade.spelling.derived(token))


def _act(named: Named[T], action: CascadeTokens[T], old: Row, new: Row | None, rows: set[T], cascades: set[T]) -> None:
    assert named.cascade is not None, "a foreign key that acts has a cascade"
    named.cascade.write_old(named.key, old, cascades)
    if new is not None and (token := named.key.token(new)) is not None:
        cascades.add(named.cascade.spelling.derived(token))
    cascades.update(action.written)
    rows.update(action.overlaps)
