"""Divides units between targets by their tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kainite.settings.assignment import TableAssignment
from kainite_spark.targets.contract import Unit


def divided(units: Sequence[Unit], assignment: TableAssignment) -> dict[str, list[Unit]]:
    """Returns what each target gets, in the order of the targets: its deltas of the units that touch it.

    A unit without deltas belongs to the first target, as do tables that no target has.
    """
    found: dict[str, list[Unit]] = {}
    for unit in units:
        parts = assignment.parts({delta.table for delta in unit.deltas})
        for target, tables in parts.items():
            found.setdefault(target, []).append(unit if len(parts) == 1 else _part(unit, frozenset(tables)))
    return {name: found[name] for name in assignment.names if name in found}


def _part(unit: Unit, tables: frozenset[str]) -> Unit:
    return replace(unit, deltas=tuple(delta for delta in unit.deltas if delta.table in tables))
