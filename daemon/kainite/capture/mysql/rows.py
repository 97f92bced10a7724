"""Reads the rows of an event: a generator of images, one row after the other; no I/O.

An *image* is a row before or after its change. It has the columns that the session of the source wrote
(``binlog_row_image``); those that it lacks are :data:`MISSING`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, TypeAlias

from kainite.base.errors import SourceError
from kainite.capture.mysql.byte_reader import ByteReader
from kainite.capture.mysql.events import Event, Kind, uncompressed
from kainite.capture.mysql.values import Reader


class Missing(Enum):
    """A value that the image lacks."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
Image: TypeAlias = tuple[str | Missing | None, ...]


class RowOperation(StrEnum):
    """What happened to rows."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class _Form:
    """How an event of rows is laid out.

    Attributes:
        more: whether a header of varying length stands before the rows (version 2).
    """

    operation: RowOperation
    more: bool
    compressed: bool


_FORMS: Final = {
    Kind.WRITE_ROWS_1: _Form(RowOperation.INSERT, False, False),
    Kind.UPDATE_ROWS_1: _Form(RowOperation.UPDATE, False, False),
    Kind.DELETE_ROWS_1: _Form(RowOperation.DELETE, False, False),
    Kind.WRITE_ROWS_2: _Form(RowOperation.INSERT, True, False),
    Kind.UPDATE_ROWS_2: _Form(RowOperation.UPDATE, True, False),
    Kind.DELETE_ROWS_2: _Form(RowOperation.DELETE, True, False),
    Kind.WRITE_ROWS_COMPRESSED_1: _Form(RowOperation.INSERT, False, True),
    Kind.UPDATE_ROWS_COMPRESSED_1: _Form(RowOperation.UPDATE, False, True),
    Kind.DELETE_ROWS_COMPRESSED_1: _Form(RowOperation.DELETE, False, True),
    Kind.WRITE_ROWS_COMPRESSED_2: _Form(RowOperation.INSERT, True, True),
    Kind.UPDATE_ROWS_COMPRESSED_2: _Form(RowOperation.UPDATE, True, True),
    Kind.DELETE_ROWS_COMPRESSED_2: _Form(RowOperation.DELETE, True, True),
}
ROWS: Final = frozenset(_FORMS)
"""The kinds of events that have rows."""


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A changed row: ``before`` is None for an insert, ``after`` for a delete."""

    operation: RowOperation
    before: Image | None
    after: Image | None


def operation_of(event: Event) -> RowOperation:
    """Returns what happened to the rows of an event."""
    return _FORMS[Kind(event.kind)].operation


def changed_rows(event: Event, readers: Sequence[Reader]) -> Iterator[ChangedRow]:
    """Yields the rows of an event.

    Args:
        event: one of :data:`ROWS`.
        readers: what reads the values of the table's columns.

    Raises:
        SourceError: the event does not fit the table, or ends too early.
        UncarriedError: a value cannot be carried; the rows behind it are not read.
    """
    form = _FORMS[Kind(event.kind)]
    head = ByteReader(event.body, 8)
    if form.more:
        head.take(head.number(2) - 2)
    columns = head.packed()
    if columns != len(readers):
        raise SourceError(f"binlog: rows of {columns} columns for a table of {len(readers)}")
    masks = [head.take((columns + 7) // 8) for _ in range(2 if form.operation is RowOperation.UPDATE else 1)]
    data, at = event.body, head.at
    if form.compressed:
        data, at = uncompressed(event.body[head.at :]), 0
    present = [_present(mask, columns) for mask in masks]
    while at < len(data):
        first, at = _image(data, at, readers, present[0])
        match form.operation:
            case RowOperation.INSERT:
                yield ChangedRow(form.operation, None, first)
            case RowOperation.DELETE:
                yield ChangedRow(form.operation, first, None)
            case RowOperation.UPDATE:
                second, at = _image(data, at, readers, present[1])
                yield ChangedRow(form.operation, first, second)


def _present(mask: bytes, columns: int) -> list[int]:
    return [place for place in range(columns) if mask[place // 8] >> place % 8 & 1]


def _image(data: bytes, at: int, readers: Sequence[Reader], present: Sequence[int]) -> tuple[Image, int]:
    nulls = data[at : at + (len(present) + 7) // 8]
    at += len(nulls)
    if len(nulls) * 8 < len(present):
        raise SourceError("binlog: a row ends too early")
    values: list[str | Missing | None] = [MISSING] * len(readers)
    for index, place in enumerate(present):
        if nulls[index // 8] >> index % 8 & 1:
            values[place] = None
        else:
            values[place], at = readers[place](data, at)
    if at > len(data) or not present:
        raise SourceError("binlog: a row ends too early")
    return tuple(values), at
