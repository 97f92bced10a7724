"""Pieces read back what was packed; a blob that lies is an error, and no reader decompresses a large one for a small
piece."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kainite.base.compression import compressed
from kainite.uow.delta import Delta, Operation
from kainite.uow.packing import BLOB_BYTES, Blob, Piece, pack

DELTA = Delta("t", Operation.INSERT, {"id": 1}, {"id": 1}, {}, 3)


@given(st.lists(st.lists(st.integers(0, 2**60), max_size=3), max_size=4))
def test_pieces_read_back(fragments: list[list[int]]) -> None:
    deltas = [[replace(DELTA, ordinal=number) for number in numbers] for numbers in fragments]
    pieces = pack(deltas)
    for each, piece in zip(deltas, pieces, strict=True):
        assert (piece is None) == (not each)
        assert piece is None or orjson.loads(piece.read()) == [delta.to_json() for delta in each]
    assert len({id(piece.blob) for piece in pieces if piece is not None}) <= 1


def test_a_blob_takes_no_more_than_its_bytes() -> None:
    half = replace(DELTA, row={"note": "x" * (BLOB_BYTES // 2)})
    whole = replace(DELTA, row={"note": "x" * BLOB_BYTES})
    pieces = [piece for piece in pack([[DELTA], [half], [half], [whole], [DELTA]]) if piece is not None]
    assert [piece.offset == 0 for piece in pieces] == [True, False, True, True, True]
    assert all(piece.blob.size <= BLOB_BYTES or piece.length == piece.blob.size for piece in pieces)


@pytest.mark.parametrize(
    "blob",
    [
        Blob(b"no frame", 3, 0),
        Blob(compressed(b"abcd"), 3, 0),
        Blob(compressed(b"ab"), 3, 0),
        Blob(bytes.fromhex("28b52ffd0458010000"), 3, 0),  # a frame that does not say its size
    ],
)
@pytest.mark.parametrize("length", [2, 3])
def test_a_blob_that_is_not_what_it_is_said_to_be_is_an_error(blob: Blob, length: int) -> None:
    with pytest.raises(ValueError, match=r"frame|blob"):
        Piece(blob, 0, length).read()
