"""The reach of foreign keys with actions: the rows that the target changes by itself when a parent goes away. Pure.

A *reference* is a table and the columns of it that foreign keys name. When the parent row with a known value of a
reference is deleted, or changes that value, the target may delete or change the child rows under that value. If
these are themselves parents, it goes on below them, and there the values are unknown: any row of
the tables below may be under the one that is gone. So the effect of one delete or change is

* precise for the direct children: the value of the reference;
* the *whole* of each reference further down, that is, every child of any parent;
* with SET DEFAULT the whole of the reference itself, because the children move to a parent that is not known.

Two foreign keys of one table may share columns. When the target sets the columns of one of them, the row may no longer
be under the other one's parent. So deletes of the two parents depend on each other. Such a table is an *overlap*. So is
a table where the target sets the columns of one foreign key while another one has a generated column, which may follow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from kainite.uow.catalogue.tables import ForeignKey, ReferentialAction
from kainite.uow.touched.family import Family

Reference: TypeAlias = tuple[str, tuple[str, ...]]
_Changed: TypeAlias = tuple[str, frozenset[str] | None]
"""A table, and the columns of unknown rows that the target changes; None for rows that it deletes."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The effects of a delete, or of a change of a reference's value, beyond the direct children.

    Attributes:
        wholes: references whose children change below parents that are not known.
        defaults: references whose children move to another parent.
        overlaps: tables that are overlaps and of which rows are deleted or changed.
    """

    wholes: frozenset[Reference]
    defaults: frozenset[Reference]
    overlaps: frozenset[str]


class Cascades:
    """The reach of each reference of a catalogue.

    Attributes:
        on_delete, on_change: the action of each reference; references on which the target does not act are left out.
        guarded: references of which the whole may be written, so that each child has to read it.
    """

    def __init__(self, families: Iterable[Family]) -> None:
        tables = self._tables = {family.name: family for family in families}
        self._incoming = _incoming(tables)
        self._overlaps = frozenset(name for name, family in tables.items() if _overlaps(family))
        references = {reference_of(key) for keys in self._incoming.values() for _, key in keys}
        deleted = {reference: self._reach(reference, None) for reference in references}
        changed = {reference: self._reach(reference, frozenset(reference[1])) for reference in references}
        self.on_delete = {reference: reach for reference, reach in deleted.items() if reach is not None}
        self.on_change = {reference: reach for reference, reach in changed.items() if reach is not None}
        self.guarded = frozenset(
            whole for reach in (*self.on_delete.values(), *self.on_change.values()) for whole in reach.wholes
        ) | {
            reference
            for reference in (*self.on_delete, *self.on_change)
            if not _always_told(tables[reference[0]], reference[1])
        }

    def _reach(self, reference: Reference, columns: frozenset[str] | None) -> Reach | None:
        """Returns the reach of a delete (``columns`` is None) or of a change; None if the target does nothing."""
        direct = [
            (child, key, action)
            for child, key in self._incoming[reference[0]]
            if reference_of(key) == reference
            and (action := key.on_delete if columns is None else key.on_update) is not ReferentialAction.NO_ACTION
        ]
        if not direct:
            return None
        defaults = {reference for _, _, action in direct if action is ReferentialAction.SET_DEFAULT}
        wholes = set(defaults)
        overlaps = {child for child, _, _ in direct} & self._overlaps
        todo = [_next(self._tables[child], key, action, columns) for child, key, action in direct]
        done: set[_Changed] = set()
        while todo:
            table, changed = here = todo.pop()
            if here in done:
                continue
            done.add(here)
            for child, key in self._incoming.get(table, ()):
                action = key.on_delete if changed is None else key.on_update
                if action is ReferentialAction.NO_ACTION or (
                    changed is not None and changed.isdisjoint(key.parent_columns)
                ):
                    continue
                wholes.add(reference_of(key))
                if action is ReferentialAction.SET_DEFAULT:
                    defaults.add(reference_of(key))
                overlaps |= {child} & self._overlaps
                todo.append(_next(self._tables[child], key, action, changed))
        return Reach(frozenset(wholes), frozenset(defaults), frozenset(overlaps))


def reference_of(key: ForeignKey) -> Reference:
    """Returns the parent and its columns that the foreign key names, in one order for all foreign keys."""
    return key.parent, tuple(sorted(key.parent_columns))


def _next(child: Family, key: ForeignKey, action: ReferentialAction, changed: frozenset[str] | None) -> _Changed:
    deletes = changed is None and action is ReferentialAction.CASCADE
    return child.name, None if deletes else child.computed.union(key.columns)


def _incoming(tables: Mapping[str, Family]) -> Mapping[str, list[tuple[str, ForeignKey]]]:
    """Returns each table's foreign keys by their parents: (child, foreign key)."""
    found: defaultdict[str, list[tuple[str, ForeignKey]]] = defaultdict(list)
    for family in tables.values():
        for key in family.foreign_keys:
            if key.parent in tables:
                found[key.parent].append((family.name, key))
    return dict(found)


def _overlaps(family: Family) -> bool:
    return any(
        one.acts and other.acts and (_decides(family, one, other) or _decides(family, other, one))
        for one, other in combinations(family.foreign_keys, 2)
    )


def _decides(family: Family, one: ForeignKey, other: ForeignKey) -> bool:
    """Returns whether the target may change the columns of ``other`` when it acts by ``one``."""
    return _sets(one) and not family.computed.union(one.columns).isdisjoint(other.columns)


def _sets(key: ForeignKey) -> bool:
    """Returns whether the target may change the columns of the foreign key by itself."""
    return key.on_update is not ReferentialAction.NO_ACTION or key.on_delete in (
        ReferentialAction.SET_NULL,
        ReferentialAction.SET_DEFAULT,
    )


def _always_told(family: Family, columns: Iterable[str]) -> bool:
    """Returns whether every delete and update says the columns' values: ``key`` holds them."""
    return all(set(columns) <= set(key) for key in family.primary_keys)
