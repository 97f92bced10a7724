"""The scheme of signatures: the part of the catalogue that signatures depend on. Pure.

Signatures of two units meet only if both units were signed by the same rules. The rules come from the catalogue: keys,
unique keys, foreign keys, and how the values of their columns are spelled. A :class:`Scheme` has a digest of these
for each table. A new nullable column, a wider type or another name of a foreign key leave every digest as it is.

The rule by which a unit may not pass another although their signatures do not meet (:meth:`Comparisons.parted`):

    Tables that foreign keys or partitions connect, under either unit's scheme, form a *group*. Units of two schemes
    that both touch tables of one group are *parted* when a table of the group has different digests in the two
    schemes, or when one of the units touches a table of the group that its own scheme does not have.

Parted units are treated as units that conflict. Any two other units are compared by their signatures. If they touch no
group in common, they have no signature in common. If they do, all tables of their common groups have equal digests, so
equal values have equal signatures, as under one catalogue. A group is larger than a signature needs, which relates a
table and its parents; a group also covers all tables that a foreign key may cascade to.

A unit whose parts were signed under different schemes has the scheme :data:`MIXED`, which has no table; so has one
that empties a table (:mod:`kainite.uow.signing`). Two of them are in one group by whatever scheme is known. A unit
without a scheme comes from a release that noted none: it is compared by its signatures alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property

from kainite.uow.canonical import spelling_rule
from kainite.uow.catalogue.tables import Catalogue, ForeignKey, Table

RULES = 1
"""The version of the rules of :mod:`kainite.uow.signature`; part of every digest, to be raised with each change."""

MIXED = "mixed"
"""The scheme of a unit whose parts were signed under different schemes, or that empties a table."""

KEYS_ALONE = f"keys {RULES}"
"""The scheme of units that were signed without a catalogue."""

_NAMES_ONLY = frozenset({"name", "deferrable"})


@dataclass(frozen=True, slots=True)
class TableScheme:
    """One table: a digest of what its signatures depend on; the tables that its foreign keys name or that it is in."""

    digest: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scheme:
    """The facts that signatures depend on, by table; equal catalogues, as far as signatures go, have equal ids."""

    tables: Mapping[str, TableScheme]

    @classmethod
    def of(cls, catalogue: Catalogue | None) -> Scheme:
        """Returns the scheme of a catalogue; the scheme :data:`KEYS_ALONE` of none."""
        if catalogue is None:
            return cls({})
        referenced = _referenced(catalogue)
        return cls({name: _table_scheme(catalogue, table, referenced) for name, table in catalogue.tables.items()})

    @classmethod
    def from_entry(cls, tables: Mapping[str, tuple[str, tuple[str, ...]]]) -> Scheme:
        """Returns the scheme that an entry of the log notes: of each table its digest and its parents."""
        return cls({name: TableScheme(*table) for name, table in tables.items()})

    @cached_property
    def id(self) -> str:
        """Returns a name that no other scheme has."""
        if not self.tables:
            return KEYS_ALONE
        text = "\0".join(f"{name}\0{table.digest}" for name, table in sorted(self.tables.items()))
        return _digest(text)


def merged(one: str | None, other: str | None) -> str | None:
    """Returns the scheme of a unit whose parts have two schemes."""
    return one if one == other else MIXED


class Comparisons:
    """Compares units of different schemes; computes the groups of each pair of schemes once."""

    def __init__(self) -> None:
        self._schemes: dict[str, Scheme] = {}
        self._pairs: dict[tuple[str, str], _Pair] = {}

    def add(self, scheme_id: str, scheme: Scheme) -> None:
        """Makes a scheme known; a scheme that is not known has no table."""
        if scheme_id not in self._schemes:
            self._schemes[scheme_id] = scheme
            self._pairs.clear()

    def parted(
        self, one: str | None, one_tables: Collection[str], other: str | None, other_tables: Collection[str]
    ) -> bool:
        """Returns whether units of these schemes, which touch these tables, cannot be compared by signatures."""
        if one is None or other is None or (one == other and one != MIXED):
            return False
        return self._pair(one, other).parted(one_tables, other_tables)

    def connected(self, scheme: str | None, one: Collection[str], other: Collection[str]) -> bool:
        """Returns whether foreign keys of the scheme connect a table of ``one`` with a table of ``other``."""
        groups = self._pair(scheme or MIXED, scheme or MIXED).groups
        return not {groups.get(name, name) for name in one}.isdisjoint(groups.get(name, name) for name in other)

    def _pair(self, one: str, other: str) -> _Pair:
        pair = self._pairs.get((one, other))
        if pair is None:
            nothing = Scheme({})
            more = self._schemes.values() if one == other == MIXED else ()
            pair = self._pairs[one, other] = _Pair.of(
                self._schemes.get(one, nothing), self._schemes.get(other, nothing), more
            )
        return pair


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two schemes: the group of each table, the groups that differ, and the tables that each scheme has."""

    groups: Mapping[str, str]
    changed: frozenset[str]
    one: Collection[str]
    other: Collection[str]

    @classmethod
    def of(cls, one: Scheme, other: Scheme, more: Iterable[Scheme] = ()) -> _Pair:
        groups = _groups(one, other, *more)
        both = one.tables.keys() & other.tables.keys()
        changed = {groups[name] for name in both if one.tables[name].digest != other.tables[name].digest}
        return cls(groups, frozenset(changed), one.tables.keys(), other.tables.keys())

    def parted(self, one_tables: Iterable[str], other_tables: Iterable[str]) -> bool:
        one, other = self._touched(one_tables, self.one), self._touched(other_tables, self.other)
        return any(group in self.changed or not (one[group] and other[group]) for group in one.keys() & other)

    def _touched(self, tables: Iterable[str], known: Collection[str]) -> dict[str, bool]:
        """Returns the groups of the tables that a unit touches, and whether its own scheme has all these tables."""
        touched: dict[str, bool] = {}
        for name in tables:
            group = self.groups.get(name, name)
            touched[group] = touched.get(group, True) and name in known
        return touched


def _groups(*schemes: Scheme) -> dict[str, str]:
    """Returns for each table a name of its group."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while (above := leader.setdefault(name, name)) != name:
            leader[name] = leader[above]
            name = above
        return name

    for scheme in schemes:
        for name, table in scheme.tables.items():
            for parent in table.parents:
                leader[find(parent)] = find(name)
    return {name: find(name) for scheme in schemes for name in scheme.tables}


def _table_scheme(catalogue: Catalogue, table: Table, referenced: Mapping[str, set[str]]) -> TableScheme:
    parents = {key.parent for key in table.foreign_keys if key.parent in catalogue.tables}
    # A partition's rows are its whole's, so the two are one group, also while it is not attached in one scheme.
    parents |= {table.part_of} if table.part_of is not None else set()
    keys = [table.primary_key, *(key.columns for key in table.unique_keys), *(k.columns for k in table.foreign_keys)]
    spelled = sorted({f"{name} {_spelling(table, name)}" for key in keys for name in key})
    uniques = sorted(repr(key) for key in table.unique_keys)
    relations = sorted(_relation(key) for key in table.foreign_keys if key.parent in catalogue.tables)
    others = [
        f"{field.name}={getattr(table, field.name)!r}"
        for field in fields(table)
        if field.name
        not in ("name", "schema", "columns", "primary_key", "unique_keys", "foreign_keys", "judged", "defaults")
    ]
    others += sorted(f"filled {name}" for name in _filled(table))
    others += ["several"] * any(other.part_of == table.name for other in catalogue.tables.values())
    parts = (str(RULES), repr(table.primary_key), *spelled, *uniques, *relations, *others)
    return TableScheme(_digest("\0".join((*parts, *sorted(referenced.get(table.name, ()))))), tuple(sorted(parents)))


def _filled(table: Table) -> set[str]:
    """Returns the columns of foreign keys that act of which an insert need not tell the value."""
    acting = {name for key in table.foreign_keys if key.acts for name in key.columns}
    return acting if table.defaults is None else acting.intersection(table.defaults)


def _spelling(table: Table, name: str) -> str:
    column = table.columns[name]
    return f"{spelling_rule(column)}{' generated' if column.generated else ''}"


def _relation(key: ForeignKey) -> str:
    """Returns a foreign key as text, without its name and without the time at which the target checks it."""
    return repr([getattr(key, field.name) for field in fields(key) if field.name not in _NAMES_ONLY])


def _referenced(catalogue: Catalogue) -> dict[str, set[str]]:
    """Returns for each parent what its children's foreign keys name, with all rules by which a column is spelled."""
    rules: dict[tuple[str, str], set[str]] = {}
    named: dict[str, set[tuple[str, ...]]] = {}
    actions: dict[str, set[str]] = {}
    for table in catalogue.tables.values():
        for key in table.foreign_keys:
            if key.parent not in catalogue.tables:
                continue
            named.setdefault(key.parent, set()).add(tuple(sorted(key.parent_columns)))
            shown = ("columns", "parent", "parent_columns", *_NAMES_ONLY)
            more = [repr(getattr(key, field.name)) for field in fields(key) if field.name not in shown]
            actions.setdefault(key.parent, set()).update(more)
            for column, parent_column in zip(key.columns, key.parent_columns, strict=True):
                rules.setdefault((key.parent, parent_column), set()).add(spelling_rule(table.columns[column]))
    return {
        parent: {
            *(" ".join(f"{column}:{sorted(rules[parent, column])}" for column in columns) for columns in keys),
            *actions[parent],
        }
        for parent, keys in named.items()
    }


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
