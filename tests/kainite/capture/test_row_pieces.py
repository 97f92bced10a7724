"""Records of large rows: each fits into a record of Kinesis, and the pieces give the row."""

from __future__ import annotations

import zlib
from typing import Any

import orjson
import pytest

from kainite.capture.row_pieces import MAX_RECORD, in_records

UNIT = {"uow": "pg-754-0/17184C0", "number": 17}
PLACE = {**UNIT, "ordinal": 3, "relation": "shop.item", "operation": "insert"}


def split(row: dict[str, Any]) -> list[dict[str, Any]]:
    records = list(in_records(UNIT, PLACE, row, lambda: 42))
    assert all(len(record) <= MAX_RECORD for record in records)
    return [orjson.loads(record) for record in records]


def test_a_row_that_fits_is_one_record() -> None:
    row = {"types": {"id": 23}, "key": {"id": "1"}, "new": {"id": "1"}}
    assert split(row) == [{**PLACE, **row}]


@pytest.mark.parametrize("letter", ["x", "ä", "€", "😀", '"', "\\", "\n", "\0", "\x7f"])
def test_the_pieces_of_a_large_row_are_the_row(letter: str) -> None:
    row = {"types": {"v": 25}, "key": {}, "new": {"v": letter * 1_100_000}}
    *pieces, main = split(row)
    text = "".join(piece["data"] for piece in pieces)
    assert orjson.loads(text) == row
    named = main.pop("pieces")
    assert main == PLACE
    assert named == {
        "chunk_id": "pg-754-0/17184C0#3",
        "total": len(pieces),
        "crc32": zlib.crc32(text.encode()),
        "made": 42,
    }
    assert [piece["index"] for piece in pieces] == list(range(len(pieces)))
    assert {(piece["uow"], piece["chunk_id"], piece["type"]) for piece in pieces} == {
        (UNIT["uow"], named["chunk_id"], "fragment")
    }
