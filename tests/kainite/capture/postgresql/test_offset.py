"""Offsets as Kainite stores them, and requests that name them."""

from __future__ import annotations

import orjson
import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.offset import Offset, places_in
from kainite.capture.postgresql.source_identity import SourceIdentity


@pytest.mark.parametrize("source", [None, SourceIdentity("739", 2, "shop")])
def test_an_offset_comes_back_as_it_was_stored(source: SourceIdentity | None) -> None:
    offset = Offset(0x1_0000_0010, 7, source)
    assert Offset.from_json(orjson.loads(orjson.dumps(offset.as_json()))) == offset


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        {},
        {"lsn": "0/1"},
        {"lsn": "x", "number": 1},
        {"lsn": "0/1", "number": "x"},
        orjson.loads("[" * 300 + "]" * 300),
    ],
)
def test_what_is_no_offset_is_refused(value: object) -> None:
    with pytest.raises(SourceError, match=r"is no offset of this extractor|is no LSN"):
        Offset.from_json(value)


def test_without_a_stored_place_everything_before_the_start_is_stored() -> None:
    start, stored = {"lsn": "0/20", "number": 2}, {"lsn": "0/10", "number": 1}
    assert places_in(orjson.dumps({"start": start, "end": None})) == (Offset(32, 2), Offset(32, 2))
    assert places_in(orjson.dumps({"start": start, "stored": stored})) == (Offset(32, 2), Offset(16, 1))
