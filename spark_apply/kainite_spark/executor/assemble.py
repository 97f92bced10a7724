"""Putting units together from the parts that the log keeps of them. Pure.

A unit's deltas stand in its UNIT entry and, when they came in several appends, in earlier FRAGMENT
entries. Where the source numbers its deltas (``ordinal``) that order is restored, and what it wrote
twice is dropped; elsewhere the order of arrival stays: fragment by fragment, then the entry's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from kainite.base.errors import LogCorruptError
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit


class UnitHeader(NamedTuple):
    """What a UNIT entry says of its unit; ``size`` is its number of deltas.

    A plain tuple, as is :class:`UnitPart`, for they are pickled by the thousand.
    """

    uow: str
    size: int
    written: frozenset[int]
    read: frozenset[int]


class UnitPart(NamedTuple):
    """The deltas of one entry.

    Attributes:
        unit: the unit's transaction id.
        number: the entry's place among the unit's entries, from 0.
        data: a JSON array of deltas; empty for none.
        head: of the UNIT entry, which is the last part; None for a fragment.
    """

    unit: int
    number: int
    data: bytes
    head: UnitHeader | None = None


def assemble(parts: Iterable[UnitPart]) -> list[Unit]:
    """Whole units in log order, from all their parts in any order; a part that came twice counts once.

    Raises:
        LogCorruptError: a part is missing, is no list of deltas, or deltas are too few or too many.
    """
    by_unit: dict[int, dict[int, UnitPart]] = {}
    for part in parts:
        by_unit.setdefault(part.unit, {})[part.number] = part
    return [_unit(tid, by_unit[tid]) for tid in sorted(by_unit)]


def read_deltas(data: bytes) -> list[Delta]:
    """The deltas of one entry's data, which were validated before they were appended.

    Raises:
        LogCorruptError: they are not what :meth:`Delta.to_json` gave.
    """
    try:
        return [_delta(item) for item in orjson.loads(data)] if data else []
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LogCorruptError(f"an entry's deltas cannot be read: {type(error).__name__} {error}") from error


def in_source_order(deltas: list[Delta]) -> list[Delta]:
    """Deltas by ordinal, each ordinal once, if all have one; else as they are."""
    by_ordinal = {delta.ordinal: delta for delta in reversed(deltas)}
    if None in by_ordinal:
        return deltas
    return [delta for _, delta in sorted(by_ordinal.items(), key=lambda item: item[0] or 0)]


def _unit(tid: int, parts: dict[int, UnitPart]) -> Unit:
    last = max(parts)
    head = parts[last].head
    if head is None or len(parts) != last + 1:
        raise LogCorruptError(f"unit {tid} has only parts {sorted(parts)} of its entries in the log")
    deltas = in_source_order([delta for number in range(last + 1) for delta in read_deltas(parts[number].data)])
    if len(deltas) != head.size:
        raise LogCorruptError(f"unit {tid} ({head.uow}) has {len(deltas)} deltas in the log, not {head.size}")
    return Unit(tid, head.uow, tuple(deltas), head.written, head.read)


_OPERATIONS = {operation.value: operation for operation in Operation}


def _delta(item: dict[str, Any]) -> Delta:
    return Delta(
        item["table"],
        _OPERATIONS[item["op"]],
        item.get("key", {}),
        item.get("row", {}),
        item.get("before", {}),
        item.get("ordinal"),
    )
