"""Metas read back; those of earlier releases, without later fields, are read."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given

from kainite.log.format.entry import Entry, EntryKind, UnitMeta
from kainite.log.format.meta_codec import decode_meta, encode_meta
from support.log_builders import ENTRIES


@given(ENTRIES)
def test_a_meta_reads_back(entry: Entry) -> None:
    assert decode_meta(entry.kind, orjson.loads(encode_meta(entry.meta))) == entry.meta


@pytest.mark.parametrize("without", [["x"], [None], 3, [1.5]])
def test_places_that_are_no_numbers_are_refused(without: object) -> None:
    fields = orjson.loads(encode_meta(UnitMeta("T", 1)))
    with pytest.raises(TypeError):
        decode_meta(EntryKind.UNIT, {**fields, "without": without})
