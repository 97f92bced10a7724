"""Tells which deletes of a transaction its other deletes make by themselves, by foreign keys with ON DELETE CASCADE.

The answer says *may*: below a table from which rows are taken along, any row may be under one of these, and a delete
that does not tell its row's parents may be of any parent's child.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from simulation.schema import Reference, Tables
from simulation.source import Write, folded


def taken_along(tables: Tables, write: Write, whole: Sequence[Write], *, told: bool) -> bool:
    """Returns whether a change deletes a row that another delete of its transaction may take along.

    Args:
        tables: the source's.
        write: the change.
        whole: its transaction's changes.
        told: whether deletes tell the parents that the row had.
    """
    if write.op != "delete":
        return False
    others = [other for other in whole if other.op == "delete" and other is not write]
    reached = _below(tables, {other.table for other in others})
    return any(
        r.parent in reached or any(_is_parent(other, r, write, told=told) for other in others)
        for r in tables[write.table].references
        if r.on_delete == "CASCADE"
    )


def _is_parent(other: Write, r: Reference, write: Write, *, told: bool) -> bool:
    if other.table != r.parent:
        return False
    named = folded(other.old.get(r.named))
    return not told or (named is not None and named == folded(write.old.get(r.column)))


def _below(tables: Tables, deleted: Collection[str]) -> set[str]:
    """Returns the tables of which rows may be taken along when rows of these are deleted."""
    found: set[str] = set()
    while (
        fresh := {
            table.name
            for table in tables.values()
            if any(r.on_delete == "CASCADE" and r.parent in found | {*deleted} for r in table.references)
        }
        - found
    ):
        found |= fresh
    return found
