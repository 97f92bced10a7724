"""Assembles units from the parts that the log holds. Pure.

A unit's deltas are in its UNIT entry and, if they came in several appends, in earlier FRAGMENT entries. The deltas of a
unit that was judged anew are all in its REFIT entry.
If the source numbers its deltas (``ordinal``), that order is restored and repeated deltas are
dropped; otherwise the order of arrival stays: the fragments in order, then the UNIT entry.

The log's owner looks into no delta: it adds up the counts that the members send. A unit whose entries hold another
number of deltas, or bytes that are no deltas, has a *fault*: it fails alone, and units that do not depend on it go on.
So has a unit that is too large for a task's memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kainite.base.errors import LogCorruptError
from kainite.base.words import counted
from kainite.uow.delta import Delta
from kainite_spark.plan.unit_part import UnitHeader, UnitPart, too_large
from kainite_spark.targets.contract import Unit


def assemble(parts: Iterable[UnitPart], most_bytes: int | None = None) -> list[Unit]:
    """Returns whole units in log order.

    Args:
        parts: all parts of the units, in any order; a part that comes twice counts once.
        most_bytes: a unit with more bytes of deltas has a fault; None: whatever its size is.

    Raises:
        LogCorruptError: a part is missing.
    """
    by_unit: dict[int, dict[int, UnitPart]] = {}
    for part in parts:
        by_unit.setdefault(part.unit, {})[part.number] = part
    return [_unit(tid, by_unit[tid], most_bytes) for tid in sorted(by_unit)]


def in_target(units: Sequence[Unit], only: Mapping[int, tuple[str, ...]]) -> list[Unit]:
    """Returns the units as their target has them: of those in ``only``, by id, the deltas of these tables alone."""
    return [_kept(unit, frozenset(only[unit.tid])) if unit.tid in only else unit for unit in units]


def in_source_order(deltas: list[Delta]) -> list[Delta]:
    """Returns the deltas by ordinal, each ordinal once, if all have one; otherwise as they are."""
    ordinals = [delta.ordinal for delta in deltas if delta.ordinal is not None]
    if len(ordinals) < len(deltas) or ordinals == sorted(set(ordinals)):
        return deltas
    by_ordinal = dict(zip(reversed(ordinals), reversed(deltas), strict=True))
    return [by_ordinal[ordinal] for ordinal in sorted(by_ordinal)]


def _kept(unit: Unit, tables: Set[str]) -> Unit:
    return replace(unit, deltas=tuple(delta for delta in unit.deltas if delta.table in tables))


def _unit(tid: int, parts: dict[int, UnitPart], most_bytes: int | None) -> Unit:
    last = max(parts)
    head = parts[last].head
    if head is None or len(parts) != last + 1:
        raise LogCorruptError(f"unit {tid} has only parts {sorted(parts)} of its entries in the log")
    in_order = [parts[number] for number in range(last + 1)]
    size = sum([len(part.data) for part in in_order])
    try:
        _carried(in_order, size, most_bytes)
        deltas, fault = _deltas(tid, head, in_order), None
    except LogCorruptError as error:
        deltas, fault = (), str(error)
    return Unit(tid, head.uow, deltas, head.written, head.read, size, fault)


def _carried(parts: Iterable[UnitPart], size: int, most_bytes: int | None) -> None:
    """Looks for what keeps a unit from being read before any of its deltas takes memory.

    Raises:
        LogCorruptError: a part has a fault, or the unit is too large.
    """
    for part in parts:
        if part.fault is not None:
            raise LogCorruptError(part.fault)
    if most_bytes is not None and size > most_bytes:
        raise LogCorruptError(too_large(most_bytes))


def _deltas(tid: int, head: UnitHeader, parts: Sequence[UnitPart]) -> tuple[Delta, ...]:
    """Returns the deltas of a unit's parts, which are given in order.

    Raises:
        LogCorruptError: the deltas cannot be read, or their number is not the one in the unit's header.
    """
    found = parts[0].deltas() if len(parts) == 1 else [delta for part in parts for delta in part.deltas()]
    deltas = in_source_order(found)
    if len(deltas) != head.size:
        has = counted(len(deltas), "delta")
        raise LogCorruptError(f"unit {tid} ({head.uow}) has {has} in the log, not {head.size}")
    return tuple(deltas)
