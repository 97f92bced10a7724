"""Metas and records read back; what is none of its class is one clear error."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given

from kainite.base.compression import compressed
from kainite.base.errors import LogCorruptError
from kainite.log.format.batch_codec import MAGIC, decode
from kainite.log.format.entry import Entry, EntryKind, Meta, PositionMeta, UnitMeta
from kainite.log.format.index import DECODER, ENCODER, KINDS, Index, IndexRecord
from support.log_builders import ENTRIES


@given(ENTRIES)
def test_a_meta_reads_back_as_one_of_its_kind(entry: Entry) -> None:
    [read] = DECODER.decode(ENCODER.encode(Index(0, 1, 0, [], 0, [record(entry.meta)]))).records
    assert read.meta == entry.meta
    assert KINDS[type(read.meta)] is entry.kind


def record(meta: Meta) -> IndexRecord:
    return IndexRecord(meta, 0, b"", (), (), None, None, 0, 0, 0, 0)


UNIT: list[Any] = msgspec.to_builtins(record(UnitMeta("T", 1)), builtin_types=(bytes,))
"""A record as an array."""


def batch(*records: Any, blobs: Any = ()) -> bytes:
    return MAGIC + compressed(msgspec.msgpack.encode([0, 1, 0, blobs, 0, records]))


def changed(place: int, value: Any) -> list[Any]:
    return [*UNIT[:place], value, *UNIT[place + 1 :]]


def of_unit(*fields: Any) -> list[Any]:
    return changed(0, [EntryKind.UNIT, *fields])


def test_the_record_that_is_changed_is_read_as_it_is() -> None:
    assert decode(batch(UNIT), None).entries == (Entry(EntryKind.UNIT, UnitMeta("T", 1)),)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ([], "of length 11|of at least length 11"),
        (UNIT[:-1], "of length 11|of at least length 11"),
        ([*UNIT, 0], "at most length 11|of length 11"),
        (changed(0, []), "Expected `array` of at least length 1"),
        (changed(0, [99, "T", 1]), "Invalid value 99"),
        (of_unit("T"), "Expected `array` of at least length 3"),
        (of_unit(1, 1), "Expected `str`, got `int`"),
        (of_unit("T", -1), "Expected `int` >= 0"),
        (of_unit("T", 1, ["s"], [1.5]), "Expected `int`, got `float`"),
        (of_unit("T", 1, [], [], None, "odd"), "Invalid enum value 'odd'"),
        (changed(1, 1), "announces 1 written signatures and has 0"),
        (changed(2, b"1234567"), "requires a buffer of 0 bytes"),
        (changed(3, [1]), "Expected `str`, got `int`"),
        (changed(5, 1), "Expected `str | null`, got `int`"),
        (changed(6, [0, 0, 0, 1 << 31]), "Expected `int` <"),
        (changed(7, 1), "out of range"),
        (changed(9, 1 << 32), "Expected `int` <"),
    ],
)
def test_what_is_no_record_is_refused(wrong: Any, problem: str) -> None:
    with pytest.raises(LogCorruptError, match=problem):
        decode(batch(wrong), None)


def test_a_blob_that_nobody_writes_is_refused() -> None:
    with pytest.raises(LogCorruptError, match="Expected `int` <="):
        decode(batch(blobs=[[1, 0, 1 << 40]]), None)


@pytest.mark.parametrize("sequence", ["", "x", "1\n", "-1", "9" * 129, "\u0663"])
def test_a_sequence_number_has_digits_alone(sequence: str) -> None:
    with pytest.raises(LogCorruptError, match="matching regex"):
        decode(batch(record(PositionMeta("s", sequence))), None)
