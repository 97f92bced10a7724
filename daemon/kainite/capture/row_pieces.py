"""Splits the record of a large row, which Kinesis would refuse, into pieces; pure.

Kinesis takes 1 MiB in a record, its partition key included, unless the stream is set to take more. The text of a larger
row goes in pieces, records of their own, and the change's own record, the *main record*, comes behind them and names
them::

    {"uow":"pg-754-0/17184C0","number":17,"type":"fragment","chunk_id":"pg-754-0/17184C0#3","index":0,"data":"{\\"types…"}
    {"uow":"pg-754-0/17184C0","number":17,"ordinal":3,"relation":"public.document","operation":"insert",
     "pieces":{"chunk_id":"pg-754-0/17184C0#3","total":8,"crc32":2774128023,"made":1795255365867000000}}

The pieces' ``data``, one behind the other, is a JSON object with what the main record lacks. ``made`` is when they were
made, by this host's clock: whoever looks for them need not look further back. The record processor joins them
(``kainite.processors.row_pieces``).

A transaction that is sent again gives pieces with the same names and contents; only ``made`` is another.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

MAX_RECORD: Final = 1_000_000
"""Most bytes of a record: 1 MiB, less what the partition key may take."""
PIECE_CHARACTERS: Final = 240_000
"""Characters of a row in a piece. Each takes four bytes at most: as UTF-8, or escaped once more in the piece's JSON."""


def in_records(
    unit: Mapping[str, Any], place: Mapping[str, Any], row: Mapping[str, Any], clock: Callable[[], int]
) -> Iterator[bytes]:
    """Yields a change's record; before it, where the change is too large for one record, its row's pieces.

    Args:
        unit: the name and the number of the change's unit.
        place: the part of the record that says where the change belongs.
        row: the part that says what the row is.
        clock: nanoseconds since the epoch.
    """
    whole = orjson.dumps({**place, **row})
    if len(whole) <= MAX_RECORD:
        yield whole
        return
    data = orjson.dumps(row)
    text = data.decode()
    made, chunk = clock(), f"{unit['uow']}#{place['ordinal']}"
    total = -(-len(text) // PIECE_CHARACTERS)
    for index in range(total):
        part = text[index * PIECE_CHARACTERS : (index + 1) * PIECE_CHARACTERS]
        yield orjson.dumps({**unit, "type": "fragment", "chunk_id": chunk, "index": index, "data": part})
    pieces = {"chunk_id": chunk, "total": total, "crc32": zlib.crc32(data), "made": made}
    yield orjson.dumps({**place, "pieces": pieces})
