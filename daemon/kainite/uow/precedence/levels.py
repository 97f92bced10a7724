"""Computes the precedence map: each table's level in the foreign-key graph.

A table without parents has level 1. Any other table has the highest level of its parents plus one, which is the
length of the longest path down to it. Inserts go by ascending level, deletes by descending level.

A table that references itself is ordered row by row, by the apply job; so are the partitions of such a table, of which
each references the whole. Tables that reference each other in
a cycle share a level when enough of the cycle's foreign keys can be deferred; a foreign key that cannot be
deferred still puts its parent before its child. A cycle without a foreign key that can be deferred has
no order and is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from kainite.base.errors import CatalogueError
from kainite.uow.catalogue.tables import Catalogue, ForeignKey, Table

_Parents: TypeAlias = Mapping[str, Set[str]]


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key as an edge. ``name`` is the constraint's name, empty when it is not known."""

    parent: str
    child: str
    deferrable: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class TableGraph:
    """Tables and the foreign keys between them; every reference's tables are among ``tables``."""

    tables: tuple[str, ...]
    references: tuple[Reference, ...]


def precedence_map(catalogue: Catalogue) -> Mapping[str, int]:
    """Returns the level of each table of the catalogue, from 1.

    Raises:
        CatalogueError: tables reference each other by foreign keys that cannot be deferred.
    """
    return levels(graph_of(catalogue))


def graph_of(catalogue: Catalogue) -> TableGraph:
    """Returns the catalogue's foreign keys as a graph, without those to tables outside the catalogue."""
    references = [
        Reference(_parent(table, foreign_key), table.name, foreign_key.deferrable, foreign_key.name)
        for table in catalogue.tables.values()
        for foreign_key in table.foreign_keys
        if foreign_key.parent in catalogue.tables
    ]
    return TableGraph(tuple(sorted(catalogue.tables)), tuple(references))


def _parent(table: Table, foreign_key: ForeignKey) -> str:
    """Returns the parent of a foreign key; the table itself, where that is the whole that the table is a part of."""
    return table.name if foreign_key.parent == table.part_of else foreign_key.parent


def read_graph(path: Path) -> TableGraph:
    """Reads a file of parent-child pairs, one ``parent child`` on each line.

    A table without relations has a line for itself; ``#`` begins a comment.

    Raises:
        CatalogueError: the file cannot be read, or a line has more than two names.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogueError(f"precedence file {path}: {error}") from error
    tables: dict[str, None] = {}
    references: dict[Reference, None] = {}
    for number, line in enumerate(lines, start=1):
        names = line.partition("#")[0].split()
        if len(names) > 2:
            raise CatalogueError(f"{path}:{number}: one 'parent child' pair on each line, not {len(names)} names")
        tables.update(dict.fromkeys(names))
        if len(names) == 2:
            references[Reference(parent=names[0], child=names[1])] = None
    return TableGraph(tuple(sorted(tables)), tuple(references))


def levels(graph: TableGraph) -> dict[str, int]:
    """Returns the level of each table, from 1, in order of level and name; raises as :func:`precedence_map`."""
    parents = _parents(graph.tables, graph.references)
    groups = _strong_components(parents)
    found: dict[str, int] = {}
    for group in groups:
        outer = {parent for table in group for parent in parents[table]} - group
        base = 1 + max((found[parent] for parent in outer), default=0)
        inner = [edge for edge in graph.references if edge.child in group and edge.parent in group]
        found.update((table, base + depth) for table, depth in _depths(group, inner).items())
    return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))


def cycles(graph: TableGraph) -> tuple[tuple[str, ...], ...]:
    """Returns groups of two and more tables that reference each other, directly or not."""
    groups = _strong_components(_parents(graph.tables, graph.references))
    return tuple(sorted(tuple(sorted(group)) for group in groups if len(group) > 1))


def _parents(tables: Iterable[str], references: Iterable[Reference]) -> dict[str, set[str]]:
    parents: dict[str, set[str]] = {table: set() for table in tables}
    for edge in references:
        if edge.parent != edge.child:
            parents[edge.child].add(edge.parent)
    return parents


def _strong_components(parents: _Parents) -> list[frozenset[str]]:
    """Returns groups of tables that reach each other; parents' groups come before their children's.

    Each cycle that the sorter meets is contracted to one node, until no cycle is left. Schemas
    have few cycles, so the contraction is as fast as Tarjan's algorithm, and shorter.
    """
    group_of = {table: frozenset({table}) for table in parents}
    while True:
        graph: defaultdict[frozenset[str], set[frozenset[str]]] = defaultdict(set)
        for table, above in parents.items():
            group = group_of[table]
            graph[group].update(group_of[parent] for parent in above if group_of[parent] != group)
        try:
            return list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            merged = frozenset[str]().union(*error.args[1])
            group_of.update(dict.fromkeys(merged, merged))


def _depths(group: frozenset[str], inner: Iterable[Reference]) -> dict[str, int]:
    """Returns how far below its group's level each table is, because of foreign keys that cannot be deferred."""
    firm = [edge for edge in inner if not edge.deferrable]
    # Sorted, so that every run reports the same cycle.
    parents = {table: sorted(above) for table, above in sorted(_parents(group, firm).items())}
    depths: dict[str, int] = {}
    try:
        for table in TopologicalSorter(parents).static_order():
            depths[table] = max((depths[parent] + 1 for parent in parents[table]), default=0)
    except CycleError as error:
        raise _refusal(error.args[1], firm) from None
    return depths


def _refusal(cycle: list[str], firm: Iterable[Reference]) -> CatalogueError:
    steps = set(pairwise(cycle))
    names = sorted({edge.name for edge in firm if (edge.parent, edge.child) in steps and edge.name})
    which = f" ({', '.join(names)})" if names else ""
    return CatalogueError(
        f"tables {' → '.join(cycle)} reference each other and their foreign keys cannot be deferred: "
        f"make one of them DEFERRABLE, or drop one where the target defers none, as MariaDB{which}"
    )
