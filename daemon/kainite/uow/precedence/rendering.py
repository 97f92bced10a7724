"""Renders the foreign-key graph: a table for the terminal, Mermaid text for documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from rich.table import Table as RichTable
from rich.text import Text

from kainite.uow.precedence.levels import TableGraph


def as_table(graph: TableGraph, levels: Mapping[str, int]) -> RichTable:
    """Returns a row for each table, by level: its precedence, name, parents and children."""
    parents: defaultdict[str, set[str]] = defaultdict(set)
    children: defaultdict[str, set[str]] = defaultdict(set)
    for edge in graph.references:
        parents[edge.child].add(edge.parent)
        children[edge.parent].add(edge.child)
    shown = RichTable()
    shown.add_column("precedence", justify="right")
    for heading in ("table", "parents", "children"):
        shown.add_column(heading)
    previous = None
    for table, level in levels.items():
        if previous not in (None, level):
            shown.add_section()
        previous = level
        names = (table, ", ".join(sorted(parents[table])), ", ".join(sorted(children[table])))
        # Text, because a name may look like rich's markup.
        shown.add_row(str(level), *(Text(name) for name in names))
    return shown


def as_mermaid(graph: TableGraph, levels: Mapping[str, int]) -> str:
    """Returns a Mermaid flowchart, parents above children; foreign keys that can be deferred are dotted."""
    ids = {table: f"t{number}" for number, table in enumerate(levels)}
    lines = ["flowchart TD"]
    for level in sorted(set(levels.values())):
        lines.append(f'  subgraph level{level}["precedence {level}"]')
        lines += [f'    {ids[table]}["{_quoted(table)}"]' for table in levels if levels[table] == level]
        lines.append("  end")
    edges = sorted({(edge.parent, edge.child, "-.->" if edge.deferrable else "-->") for edge in graph.references})
    lines += [f"  {ids[parent]} {arrow} {ids[child]}" for parent, child, arrow in edges]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")
