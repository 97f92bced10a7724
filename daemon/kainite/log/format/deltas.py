"""The deltas of FRAGMENT, UNIT and REFIT entries: a JSON array in the entry's data, or in its piece of a blob.

Not all deltas of an array count: the entry's meta names the deltas that the unit had before (``without``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, TypeVar

import msgspec
import orjson

from kainite.base.errors import LogCorruptError
from kainite.log.format.entry import Entry, FragmentMeta, UnitMeta
from kainite.uow.delta import Delta

T = TypeVar("T")

_DELTAS: Final = msgspec.json.Decoder(list[Delta])


def dump_deltas(deltas: Sequence[Delta]) -> bytes:
    """Returns deltas as the data of an entry; no bytes without deltas."""
    return orjson.dumps([delta.to_json() for delta in deltas]) if deltas else b""


def array_of(entry: Entry) -> bytes:
    """Returns the entry's array of deltas; no bytes if the entry has no deltas.

    Raises:
        LogCorruptError: the entry's blob cannot be read.
    """
    if entry.piece is None:
        return entry.data
    try:
        return entry.piece.read()
    except ValueError as error:
        raise LogCorruptError(f"an entry's deltas cannot be decompressed: {error}") from error


def left_out(entry: Entry) -> tuple[int, ...]:
    """Returns the places in the entry's array of the deltas that do not count."""
    return entry.meta.without if isinstance(entry.meta, FragmentMeta | UnitMeta) else ()


def deltas_of(entry: Entry) -> list[Delta]:
    """Returns the deltas of an entry that count.

    Raises:
        LogCorruptError: the deltas cannot be read.
    """
    return read_deltas(array_of(entry), left_out(entry))


def delta_items(entry: Entry) -> list[dict[str, Any]]:
    """Returns the deltas of an entry that count, as JSON.

    Raises:
        LogCorruptError: the deltas cannot be read.
    """
    array = array_of(entry)
    try:
        items = list(orjson.loads(array)) if array else []
    except (ValueError, TypeError) as error:
        raise LogCorruptError(f"an entry's deltas are no JSON array: {error}") from error
    return _counting(items, left_out(entry))


def read_deltas(array: bytes, without: Collection[int] = ()) -> list[Delta]:
    """Returns the deltas of an entry's array.

    Args:
        array: as :func:`array_of` returned it.
        without: as :func:`left_out` returned it.

    Raises:
        LogCorruptError: the array is not what :func:`dump_deltas` gave.
    """
    try:
        deltas = _DELTAS.decode(array) if array else []
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise LogCorruptError(f"an entry's deltas are no JSON array of deltas: {error}") from error
    return _counting(deltas, without)


def _counting(found: list[T], without: Collection[int]) -> list[T]:
    if not without:
        return found
    dropped = frozenset(without)
    return [each for place, each in enumerate(found) if place not in dropped]
