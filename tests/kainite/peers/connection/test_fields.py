"""Fields read back as written; a count without its bytes is refused before anything is made of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import LogProtocolError
from kainite.peers.connection.fields import FieldReader, FieldWriter

INT32 = st.integers(-(2**31), 2**31 - 1)


@given(INT32, st.integers(-(2**63), 2**63 - 1), st.lists(INT32), st.binary(), st.text() | st.none(), st.booleans())
def test_fields_read_back(number: int, long: int, array: list[int], data: bytes, text: str | None, flag: bool) -> None:
    writer = FieldWriter()
    writer.int32s(number, 1, -1, number)
    writer.int64(long)
    writer.int32_array(array)
    writer.checked_data(data)
    writer.optional_bytes(data)
    writer.text(text)
    writer.boolean(flag)
    reader = FieldReader(writer.body())
    assert reader.int32s(4) == (number, 1, -1, number)
    assert reader.int64() == long
    assert reader.int32_array() == tuple(array)
    assert reader.checked_data() == data
    assert reader.optional_bytes() == data
    assert reader.text() == text
    assert reader.boolean() is flag
    reader.finish()


def test_only_a_one_is_true() -> None:
    assert [FieldReader(bytes([byte])).boolean() for byte in (0, 1, 2, 255)] == [False, True, False, False]


def test_text_that_is_no_utf8_is_replaced() -> None:
    assert FieldReader(b"\0\0\0\2a\xff").text() == "a\ufffd"
    writer = FieldWriter()
    writer.text("a\ud800")
    assert writer.body() == b"\0\0\0\2a?"


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (b"", FieldReader.byte),
        (b"\0", FieldReader.int16),
        (b"\0\0\0", FieldReader.int32),
        (bytes(7), FieldReader.int64),
        (bytes(15), lambda reader: reader.int32s(4)),
        (b"\0\0\0\2a", FieldReader.byte_array),
        (b"\xff\xff\xff\xff", FieldReader.byte_array),
        (b"\xff\xff\xff\xfe", FieldReader.optional_bytes),
        (b"\x7f\xff\xff\xff", FieldReader.optional_bytes),
        (b"\x7f\xff\xff\xff\0\0\0\0", FieldReader.int32_array),
        (b"\xff\xff\xff\xff", FieldReader.int32_array),
        (b"\0\0\0\1a\0\0\0\0", FieldReader.checked_data),
        (b"\0\0\0\1a\0\0\0", FieldReader.checked_data),
        (b"x", FieldReader.finish),
    ],
)
def test_a_field_that_is_not_there_is_refused(body: bytes, read: Callable[[FieldReader], object]) -> None:
    with pytest.raises(LogProtocolError):
        read(FieldReader(body))
