"""Metas read back; what is none of its kind is one clear error."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from kainite.base.errors import LogCorruptError
from kainite.log.format.entry import Entry, EntryKind, PositionMeta, UnitMeta
from kainite.log.format.meta_codec import decode_meta, encode_meta
from kainite.uow.touches import NOTHING
from support.log_builders import ENTRIES

NONE: frozenset[int] = frozenset()


@given(ENTRIES)
def test_a_meta_reads_back(entry: Entry) -> None:
    data, touched = encode_meta(entry.meta, entry.touched), entry.touched
    assert decode_meta(entry.kind, data, touched.written, touched.read) == (entry.meta, touched)


UNIT = msgspec.to_builtins(UnitMeta("T", 1))
"""The fields of a unit's meta."""


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([], "at least length 1|length 4"),
        ([{}, [], [], None], "Expected `array`"),
        ([[], [], [], None], "Expected `array` of at least length 2"),
        ([[1, 1], [], [], None], "Expected `str`, got `int`"),
        ([["T", -1], [], [], None], "Expected `int` >= 0"),
        ([["T", 1, ["s"], [1.5]], [], [], None], "Expected `int`, got `float`"),
        ([[*UNIT[:5], "odd"], [], [], None], "Invalid enum value 'odd'"),
        ([UNIT, [1], [], None], "Expected `str`, got `int`"),
        ([UNIT, [], [], 1], "Expected `str | null`"),
    ],
)
def test_what_is_no_meta_of_a_unit_is_refused(fields: list[object], problem: str) -> None:
    with pytest.raises(LogCorruptError, match=problem):
        decode_meta(EntryKind.UNIT, msgspec.msgpack.encode(fields), NONE, NONE)


@pytest.mark.parametrize("sequence", ["", "x", "1\n", "-1", "9" * 129, "\u0663"])
def test_a_sequence_number_has_digits_alone(sequence: str) -> None:
    data = encode_meta(PositionMeta("s", sequence), NOTHING)
    with pytest.raises(LogCorruptError, match="POSITION"):
        decode_meta(EntryKind.POSITION, data, NONE, NONE)


def test_an_entry_of_no_kind_is_refused() -> None:
    with pytest.raises(LogCorruptError, match="of kind 99"):
        decode_meta(99, b"", NONE, NONE)
