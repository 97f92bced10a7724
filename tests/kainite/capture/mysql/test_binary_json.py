"""MySQL's JSON is read as its format is described; MySQL itself was not run."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import SourceError
from kainite.capture.mysql.binary_json import MOST_DEPTH, json_text
from kainite.capture.mysql.table_map import MappedColumn, Type
from kainite.capture.mysql.values import reader_of
from support.binlog import text
from support.mysql_json import Opaque, document

MOMENT = ((2026 * 13 + 11) << 5 | 23) << 17 | 21 << 12 | 5 << 6 | 9
"""2026-11-23 21:05:09, as the server packs it above 24 bits of microseconds."""


def moment(column: int, packed: int) -> Opaque:
    return Opaque(column, packed.to_bytes(8, "little", signed=True))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", "null"),
        ("0400", "null"),
        ("0401", "true"),
        ("0402", "false"),
        ("05ffff", "-1"),
        ("06ffff", "65535"),
        ("0b000000000000f83f", "1.5"),
        ("0c03c3a422", '"ä\\""'),
        # {"a": 1}: one member, 12 bytes, its key at 11 with 1 byte, an inlined number.
        ("00 0100 0c00 0b00 0100 05 0100 61", '{"a": 1}'),
        # [true, "x"]: the text stands behind the entries.
        ("02 0200 0c00 04 0100 0c 0a00 0178", '[true, "x"]'),
        # The same array in the large form.
        ("03 02000000 14000000 04 01000000 0c 12000000 0178", '[true, "x"]'),
        ("00 0000 0400", "{}"),
        # A decimal(3,1), 12.5, and bytes of the type BLOB.
        ("0f f6 04 0301 8c05", "12.5"),
        ("0f fc 02 0102", '"base64:type252:AQI="'),
    ],
)
def test_golden_bytes(data: str, expected: str) -> None:
    assert json_text(bytes.fromhex(data)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (moment(Type.OLD_DATETIME, MOMENT << 24 | 250), '"2026-11-23 21:05:09.000250"'),
        (moment(Type.OLD_TIMESTAMP, MOMENT << 24), '"2026-11-23 21:05:09.000000"'),
        (moment(Type.DATE, MOMENT >> 17 << 41), '"2026-11-23"'),
        (moment(Type.OLD_TIME, -((100 << 12 | 1 << 6 | 2) << 24)), '"-100:01:02.000000"'),
    ],
)
def test_moments_are_spelled_as_in_a_document(value: Opaque, expected: str) -> None:
    assert json_text(document(value)) == expected
    assert json_text(document({"at": value})) == f'{{"at": {expected}}}'


scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=200)
)  # fmt: skip
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5)
)


@given(documents, st.booleans())
def test_any_document_reads_back(value: Any, large: bool) -> None:
    data = document(value, large=large)
    assert json.loads(json_text(data)) == value
    column = MappedColumn(Type.JSON, 4)
    stored = len(data).to_bytes(4, "little") + data
    assert reader_of(column, text)(b"before" + stored + b"behind", 6) == (json_text(data), 6 + len(stored))


@given(documents, st.booleans(), st.data())
def test_broken_bytes_are_no_document_or_another_one(value: Any, large: bool, chosen: st.DataObject) -> None:
    data = bytearray(document(value, large=large))
    for _ in range(chosen.draw(st.integers(1, 3))):
        data[chosen.draw(st.integers(0, len(data) - 1))] = chosen.draw(st.integers(0, 255))
    try:
        found = json_text(bytes(data[: chosen.draw(st.integers(1, len(data)))]))
    except SourceError:
        return
    json.loads(found)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("0403", "a JSON literal 3"),
        ("0e", "a JSON value of the type 14"),
        ("0c05", "ends too early"),
        ("0cffffffffff", "a length in a JSON document"),
        ("0c01ff", "no UTF-8"),
        ("0bffffffffffffff7f", "a JSON number that is none"),
        ("0ff6020505", "a decimal in a JSON document"),
        ("0f0c0100", "a moment in a JSON document"),
        ("00 0100 ff00 0b00 0100 05 0100 61", "ends too early"),
    ],
)
def test_what_is_none_is_refused(data: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        json_text(bytes.fromhex(data))


def test_a_document_whose_values_overlap_takes_no_longer_than_it_is() -> None:
    """Shows it: each array has the next one twice, so the text would have 2**60 numbers."""
    level = b""
    begin = b"\2" + b"\2\0\x0a\0"
    for _ in range(60):
        level += b"\2\0" + (4096).to_bytes(2, "little") + b"\2\x0a\0\2\x0a\0"
    with pytest.raises(SourceError):
        json_text(begin[:1] + level.ljust(5_000, b"\0"))


def test_a_document_is_as_deep_as_the_server_lets_it_be() -> None:
    def nested(depth: int) -> Any:
        return [] if depth == 1 else [nested(depth - 1)]

    assert json_text(document(nested(MOST_DEPTH))) == "[" * MOST_DEPTH + "]" * MOST_DEPTH
    with pytest.raises(SourceError, match="levels deep"):
        json_text(document(nested(MOST_DEPTH + 1)))


def test_a_double_is_spelled_with_all_its_digits() -> None:
    for number in (0.1, 1e300, 5e-324, -0.0, 1e16):
        assert math.copysign(1, float(json_text(document(number)))) == math.copysign(1, number)
        assert float(json_text(document(number))) == number
