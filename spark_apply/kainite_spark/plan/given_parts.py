"""Parts of units that go with a micro-batch to its tasks, as a few large values. Pure.

The driver copies bytes alone: the deltas' JSON as it is in the log, and the signatures as the log's index has them.
Measured with TPC-B: making and pickling the parts of a unit took the driver 18 µs of processor time as objects with
sets of signatures, and takes 6 as bytes.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kainite.base.errors import LogCorruptError
from kainite.log.format.deltas import array_of, left_out
from kainite.log.format.entry import Entry, RefitMeta, UnitMeta
from kainite_spark.plan.unit_part import UnitHeader, UnitPart, unit_part

_SIGNATURE = 8
_NO_HEAD = -1


class GivenParts(NamedTuple):
    """The parts in some entries, in the entries' order; :func:`packed` makes them, :func:`unpacked` reads them.

    Attributes:
        lengths: of each part the bytes of its data, as 64-bit integers.
        data: the data of all parts, one behind the other.
        heads: of each part the number of its unit's deltas, or -1 for a part without a header; how many signatures are
            written, and how many there are in all. 64-bit integers.
        uows: the names of the units, one for each header.
        signed: the signatures of all headers, as :attr:`~kainite.log.format.entry.Entry.signed` has them.
        whole: the parts that say more than this, by their places.
    """

    lengths: bytes
    data: bytes
    heads: bytes
    uows: tuple[str, ...]
    signed: bytes
    whole: dict[int, UnitPart]


def packed(units: Iterable[tuple[int, int]], entries: Iterable[Entry]) -> GivenParts:
    """Returns the parts in some entries.

    Args:
        units: for each entry its unit's transaction id, and the entry's place among the unit's entries.
        entries: the entries, with their data.
    """
    lengths, heads = array("q"), array("q")
    data: list[bytes] = []
    uows: list[str] = []
    signed: list[bytes] = []
    whole: dict[int, UnitPart] = {}
    for place, ((unit, number), entry) in enumerate(zip(units, entries, strict=True)):
        deltas = _plain(entry)
        if deltas is None:
            whole[place] = unit_part(unit, number, entry)
            deltas = b""
        lengths.append(len(deltas))
        data.append(deltas)
        meta = entry.meta
        if place not in whole and isinstance(meta, UnitMeta | RefitMeta):
            heads.extend((meta.count, len(entry.touched.written), len(entry.signed) // _SIGNATURE))
            uows.append(meta.uow)
            signed.append(entry.signed)
        else:
            heads.extend((_NO_HEAD, 0, 0))
    return GivenParts(
        lengths.tobytes(), b"".join(data), heads.tobytes(), tuple(uows), b"".join(signed), whole
    )  # fmt: skip


def unpacked(units: Sequence[tuple[int, int]], given: GivenParts) -> Iterator[UnitPart]:
    """Yields the parts of entries; ``units`` is what :func:`packed` was given."""
    ends = array("q", [0])
    ends.frombytes(given.lengths)
    for place in range(1, len(ends)):
        ends[place] += ends[place - 1]
    heads = _heads(given)
    for place, ((unit, number), (begin, end)) in enumerate(zip(units, pairwise(ends), strict=True)):
        head = next(heads)
        found = given.whole.get(place)
        yield UnitPart(unit, number, given.data[begin:end], head) if found is None else found


def _heads(given: GivenParts) -> Iterator[UnitHeader | None]:
    numbers = array("q")
    numbers.frombytes(given.heads)
    count = len(given.signed) // _SIGNATURE
    signatures = struct.unpack(f">{count}Q", given.signed)
    uows, flat, at = iter(given.uows), iter(numbers), 0
    for size, written, every in zip(flat, flat, flat, strict=True):
        if size == _NO_HEAD:
            yield None
            continue
        middle, end = at + written, at + every
        yield UnitHeader(next(uows), size, frozenset(signatures[at:middle]), frozenset(signatures[middle:end]))
        at = end


def _plain(entry: Entry) -> bytes | None:
    """Returns the entry's deltas; None if more is to be said of them, or of its signatures."""
    if left_out(entry) or len(entry.signed) != _SIGNATURE * entry.touched.size:
        return None
    try:
        return array_of(entry)
    except LogCorruptError:
        return None
