"""A part of a unit: the deltas and facts of it in one entry of the log."""

from __future__ import annotations

from typing import NamedTuple

from kainite.base.errors import LogCorruptError
from kainite.log.format.deltas import array_of, left_out, read_deltas
from kainite.log.format.entry import Entry, RefitMeta, UnitMeta
from kainite.uow.delta import Delta


class UnitHeader(NamedTuple):
    """The facts that a UNIT entry has of its unit; ``size`` is its number of deltas.

    A tuple, as is :class:`UnitPart`, because tasks pickle them by the thousand.
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
        data: a JSON array of deltas; empty if the entry has no delta.
        head: the facts in the UNIT entry, which is the last part; None in the part of a FRAGMENT entry.
        without: the indexes of deltas in the array that do not count.
        fault: why the deltas cannot be decompressed; None if they can.
    """

    unit: int
    number: int
    data: bytes
    head: UnitHeader | None = None
    without: tuple[int, ...] = ()
    fault: str | None = None

    def deltas(self) -> list[Delta]:
        """Returns the deltas that count.

        Raises:
            LogCorruptError: the deltas cannot be read.
        """
        if self.fault is not None:
            raise LogCorruptError(self.fault)
        return read_deltas(self.data, self.without)


def too_large(bound: int) -> str:
    """Returns the fault of a unit whose deltas take more bytes than the bound."""
    return (
        f"its deltas take more than {bound} bytes (applyUnitBytes): set a larger value, with as much memory as it says,"
        " and kainite uow retry"
    )


def unit_part(unit: int, number: int, entry: Entry) -> UnitPart:
    """Returns the part of a unit in an entry; ``number`` is the entry's place among the unit's entries."""
    meta = entry.meta
    head = None
    if isinstance(meta, UnitMeta | RefitMeta):
        head = UnitHeader(meta.uow, meta.count, entry.touched.written, entry.touched.read)
    try:
        return UnitPart(unit, number, array_of(entry), head, left_out(entry))
    except LogCorruptError as error:
        return UnitPart(unit, number, b"", head, left_out(entry), str(error))
