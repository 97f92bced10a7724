"""Single values that a server gives seldom; ``tests/end_to_end/test_types_of_mariadb.py`` compares all types."""

from __future__ import annotations

import pytest

from kainite.capture.mysql.table_map import MappedColumn, Type
from kainite.capture.mysql.values import UncarriedError, reader_of
from support.binlog import text


@pytest.mark.parametrize(
    ("column", "data", "expected"),
    [
        (MappedColumn(Type.INT24), b"\xff\xff\xff", "-1"),
        (MappedColumn(Type.INT24, unsigned=True), b"\xff\xff\xff", "16777215"),
        (MappedColumn(Type.FLOAT), bytes.fromhex("cdcccc3d"), "0.1"),
        (MappedColumn(Type.FLOAT), bytes.fromhex("ffff7f7f"), "3.4028235e+38"),
        (MappedColumn(Type.YEAR), b"\0", "0"),
        (MappedColumn(Type.DATE), b"\0\0\0", "0000-00-00"),
        (MappedColumn(Type.TIME, 0), (0x800000).to_bytes(3, "big"), "00:00:00"),
        (MappedColumn(Type.TIMESTAMP, 3), bytes(6), "0000-00-00 00:00:00.000"),
        (MappedColumn(Type.ENUM, 1, members=(b"a",)), b"\0", ""),
        (MappedColumn(Type.STRING, 4), b"\1a", "\\x61000000"),
        (MappedColumn(Type.VARCHAR, 300, collation=45), b"\2\0\xc3\xa4", "ä"),
    ],
)
def test_values_are_spelled_as_the_server_spells_them(column: MappedColumn, data: bytes, expected: str) -> None:
    assert reader_of(column, text)(data, 0) == (expected, len(data))


@pytest.mark.parametrize(
    ("kind", "message"),
    [(Type.GEOMETRY, "a geometry"), (Type.OLD_DATETIME, "FORCE"), (Type.VARCHAR_COMPRESSED, "COMPRESSED")],
)
def test_types_that_are_not_carried_are_named(kind: Type, message: str) -> None:
    with pytest.raises(UncarriedError, match=message):
        reader_of(MappedColumn(kind, name="c"), text)


@pytest.mark.parametrize("kind", [Type.DATETIME, Type.TIMESTAMP, Type.TIME])
def test_a_moment_with_more_decimals_than_there_are_is_refused(kind: Type) -> None:
    with pytest.raises(UncarriedError, match="12 decimals"):
        reader_of(MappedColumn(kind, 12, name="c"), text)


@pytest.mark.parametrize("kind", [Type.ENUM, Type.SET])
def test_a_value_that_is_no_member_is_refused(kind: Type) -> None:
    with pytest.raises(UncarriedError, match="no member"):
        reader_of(MappedColumn(kind, 1, members=(b"a",)), text)(b"\2", 0)
