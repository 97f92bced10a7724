"""Rows in pieces, as the extractor gives them: joined from what is remembered, or from the stream, or left out."""

from __future__ import annotations

import zlib
from typing import Any

import orjson
import pytest

from kainite.capture import row_pieces as split
from kainite.processors.pieces import PiecesMissingError, SplitImage
from kainite.processors.row_pieces import MOST_CHARACTERS, RecentPieces, split_row

UNIT = {"uow": "pg-7-0/1", "number": 3}
NOW = 1_795_255_365.0


def records_of(ordinal: int, letter: str = "ä") -> tuple[list[dict[str, Any]], SplitImage]:
    """Returns the pieces of a row, and what its main record says."""
    place = {**UNIT, "ordinal": ordinal}
    records = split.in_records(UNIT, place, {"new": {"v": letter * 1_000_000}}, lambda: int(NOW * 1e9))
    *pieces, main = map(orjson.loads, records)
    return pieces, split_row(main["pieces"], NOW + 2)


def elsewhere(image: SplitImage) -> str:
    raise PiecesMissingError(f"{image.chunk_id} is asked for elsewhere")


def text_of(pieces: list[dict[str, Any]]) -> str:
    return "".join(piece["data"] for piece in pieces)


def test_pieces_are_joined_in_any_order_and_with_copies() -> None:
    pieces, image = records_of(0)
    recent = RecentPieces(elsewhere)
    for piece in (*pieces[::-1], *pieces[:2]):
        recent.add(piece)
    assert recent.find(image) == text_of(pieces)


def test_rows_between_each_others_pieces_stay_apart() -> None:
    (ones, one), (others, other) = records_of(0, "a"), records_of(1, "b")
    recent = RecentPieces(elsewhere)
    for pair in zip(ones, others, strict=True):
        for piece in pair:
            recent.add(piece)
    assert (recent.find(one), recent.find(other)) == (text_of(ones), text_of(others))


def test_what_is_not_remembered_is_looked_for_elsewhere() -> None:
    pieces, image = records_of(0)
    recent = RecentPieces(lambda asked: f"found {asked.chunk_id}")
    for piece in pieces[1:]:
        recent.add(piece)
    assert recent.find(image) == "found pg-7-0/1#0"


def test_a_piece_that_is_no_part_of_the_row_stands_for_none_that_is() -> None:
    pieces, image = records_of(0)
    recent = RecentPieces(lambda asked: "found elsewhere")
    for piece in (*pieces[1:], {**pieces[0], "index": image.total}):
        recent.add(piece)
    assert recent.find(image) == "found elsewhere"


def test_pieces_of_another_text_are_no_row() -> None:
    pieces, image = records_of(0)
    recent = RecentPieces(elsewhere)
    for piece in (*pieces, {**pieces[0], "data": "x"}):
        recent.add(piece)
    with pytest.raises(PiecesMissingError, match="have another checksum than the row had"):
        recent.find(image)


def test_the_oldest_rows_are_forgotten_when_there_is_no_room() -> None:
    rows = [records_of(ordinal, "x") for ordinal in range(4)]
    recent = RecentPieces(elsewhere, most=2_500_000)
    for pieces, _ in rows:
        for piece in pieces:
            recent.add(piece)
    for _, image in rows[:2]:
        with pytest.raises(PiecesMissingError, match="asked for elsewhere"):
            recent.find(image)
    assert [recent.find(image) for _, image in rows[2:]] == [text_of(pieces) for pieces, _ in rows[2:]]


def test_room_is_given_back_when_a_row_is_joined() -> None:
    recent = RecentPieces(elsewhere, most=1_500_000)
    for ordinal in range(5):
        pieces, image = records_of(ordinal, "x")
        for piece in pieces:
            recent.add(piece)
        assert recent.find(image) == text_of(pieces)


def test_a_row_is_remembered_as_a_whole_however_large_the_extractor_gives_it() -> None:
    from kainite.capture.postgresql.pgoutput import MAX_CHANGE

    assert MOST_CHARACTERS >= MAX_CHANGE


def test_a_main_record_says_when_to_look() -> None:
    _, image = records_of(0)
    assert (image.committed, image.made) == (NOW, NOW + 2)
    assert image.checksum_of is zlib.crc32
