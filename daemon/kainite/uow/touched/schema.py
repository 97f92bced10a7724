"""Computes, once for a catalogue, which keys each table's deltas touch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic

from kainite.uow.canonical import Canonical, canonical_of
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, ReferentialAction, UniqueKey
from kainite.uow.touched.cascade import Cascades, Reach, Reference, reference_of
from kainite.uow.touched.family import Family, families
from kainite.uow.touched.key import ColumnKey, T, TokenMaker
from kainite.uow.touched.plan import PARTS, Cascade, CascadeTokens, Named, Parent, TablePlan


class TouchedSchema(Generic[T]):
    """Makes the plans of tables.

    Args:
        catalogue: the target's tables.
        spelling: the rule by which values become tokens.
    """

    def __init__(self, catalogue: Catalogue, spelling: TokenMaker[T]) -> None:
        self.spelling = spelling
        self._families = families(catalogue)
        tables = {family.name: family for family in self._families.values()}
        self._references = _references(tables)
        self._reaches = Cascades(tables.values())
        acted_on = {*self._reaches.on_delete, *self._reaches.on_change}
        self._cascades = {reference: self._cascade(reference) for reference in acted_on}

    def plan(self, table: str) -> TablePlan[T]:
        """Returns the plan of a table of the catalogue, by its name there."""
        family = self._families[table]
        told = [key for key in family.unique_keys if _tells(family, key)]
        return TablePlan(
            family=family.name,
            rows=tuple(
                self._key("rows" if family.several else "row", family, columns) for columns in family.primary_keys
            ),
            unique=tuple(self._key("unique", family, key.columns, key.nulls_distinct) for key in told),
            unclear=frozenset(
                self.spelling.keyed("unique", family.name, (key.name,))("")
                for key in family.unique_keys
                if key not in told
            ),
            named=tuple(self._named(reference) for reference in self._references if reference[0] == family.name),
            parents=tuple(
                self._parent(family, key) for key in family.foreign_keys if reference_of(key) in self._references
            ),
        )

    def overlaps(self) -> frozenset[T]:
        """Returns the tokens of all tables that have foreign keys with actions that share columns."""
        reaches = (*self._reaches.on_delete.values(), *self._reaches.on_change.values())
        return frozenset(self._overlap(table) for reach in reaches for table in reach.overlaps)

    def _key(self, space: str, family: Family, columns: Sequence[str], nulls_distinct: bool = True) -> ColumnKey[T]:
        parts = tuple((name, canonical_of([family.columns[name]])) for name in columns)
        finish = self.spelling.keyed(space, family.name, columns)
        return ColumnKey(family.name, finish, parts, frozenset(columns), nulls_distinct)

    def _named(self, reference: Reference) -> Named[T]:
        return Named(
            key=self._existence(reference[0], reference, reference[1]),
            cascade=self._cascades.get(reference),
            on_delete=self._action(self._reaches.on_delete.get(reference)),
            on_change=self._action(self._reaches.on_change.get(reference)),
            computed=not self._families[reference[0]].computed.isdisjoint(reference[1]),
        )

    def _parent(self, family: Family, key: ForeignKey) -> Parent[T]:
        reference = reference_of(key)
        own = _by_parent_column(key)
        return Parent(
            self._existence(family.name, reference, own),
            self._cascades.get(reference) if key.acts else None,
            family.filled.intersection(own),
            not family.computed.isdisjoint(own),
            key.on_delete is ReferentialAction.CASCADE,
        )

    def _existence(self, table: str, reference: Reference, columns: Sequence[str]) -> ColumnKey[T]:
        """Returns the key of a reference's value, read from ``columns`` of ``table``, parent or child."""
        parts = tuple(zip(columns, self._references[reference], strict=True))
        return ColumnKey(table, self.spelling.keyed("existence", *reference), parts, frozenset(columns))

    def _cascade(self, reference: Reference) -> Cascade[T]:
        guarded = reference in self._reaches.guarded
        whole = self._whole(reference)
        return Cascade(self.spelling, self._parts(reference), whole, frozenset({whole} if guarded else ()))

    def _action(self, reach: Reach | None) -> CascadeTokens[T] | None:
        if reach is None:
            return None
        parts = (part for reference in reach.defaults for part in self._parts(reference))
        written = frozenset({*parts, *(self._whole(reference) for reference in reach.wholes)})
        return CascadeTokens(written, frozenset(self._overlap(table) for table in reach.overlaps))

    def _parts(self, reference: Reference) -> tuple[T, ...]:
        finish = self.spelling.keyed("part", *reference)
        return tuple(finish(str(number)) for number in range(PARTS))

    def _whole(self, reference: Reference) -> T:
        return self.spelling.keyed("whole", *reference)("")

    def _overlap(self, table: str) -> T:
        return self.spelling.keyed("overlap", table, ())("")


def _tells(family: Family, key: UniqueKey) -> bool:
    """Returns whether deltas can say the key's value: the target computes some columns itself."""
    return bool(key.columns) and not any(family.columns[name].generated for name in key.columns)


def _references(tables: Mapping[str, Family]) -> Mapping[Reference, tuple[Canonical, ...]]:
    """Returns every key that some foreign key names, with one spelling for parent and children."""
    columns: defaultdict[Reference, list[list[Column]]] = defaultdict(list)
    for family in tables.values():
        for key in _with_parents(family.foreign_keys, tables):
            parent, named = reference = reference_of(key)
            positions = columns[reference] or [[tables[parent].columns[name]] for name in named]
            for position, child in zip(positions, _by_parent_column(key), strict=True):
                position.append(family.columns[child])
            columns[reference] = positions
    return {key: tuple(canonical_of(position) for position in positions) for key, positions in columns.items()}


def _with_parents(keys: Iterable[ForeignKey], tables: Mapping[str, Family]) -> Iterable[ForeignKey]:
    return (key for key in keys if key.parent in tables)


def _by_parent_column(key: ForeignKey) -> tuple[str, ...]:
    """Returns the foreign key's columns in the order of a reference."""
    return tuple(child for _, child in sorted(zip(key.parent_columns, key.columns, strict=True)))
