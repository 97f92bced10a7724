"""What the binlog and the catalogue say of a table is put together."""

from __future__ import annotations

import pytest

from kainite.capture.mysql.source_tables import ColumnNow, TableNow, source_table
from kainite.capture.mysql.table_map import MappedColumn, TableMap, Type
from support.binlog import text

NOW = TableNow("InnoDB", True, False, True, {"id": ColumnNow("int"), "made": ColumnNow("int", made=True, indexed=True)})
MAPPED = TableMap(
    1, "shop", "t",
    (MappedColumn(Type.LONG, name="id"), MappedColumn(Type.LONG, name="Made"), MappedColumn(Type.LONG, name="gone")),
    (0,),
)  # fmt: skip


def test_computed_columns_are_left_out() -> None:
    table = source_table(MAPPED, NOW, text, with_plugins=True)
    assert (table.problem, table.given, table.key, table.old) == ("", (0, 2), (0,), ())


def test_types_that_the_binlog_does_not_tell_come_from_the_catalogue() -> None:
    stored = bytes.fromhex("bbccddeeff0099aa178833441122") + b"\x55\x66"
    mapped = TableMap(1, "shop", "t", (MappedColumn(Type.STRING, 16, name="id"),), (0,))
    for kind, data, spelled in (
        ("uuid", bytes.fromhex("00112233445566778899aabbccddeeff"), "00112233-4455-6677-8899-aabbccddeeff"),
        ("inet6", bytes(15) + b"\1", "::1"),
        ("binary", stored, f"\\x{stored.hex()}"),
    ):
        now = TableNow("InnoDB", True, False, True, {"id": ColumnNow(kind)})
        (reader,) = source_table(mapped, now, text, with_plugins=True).readers
        assert reader(b"\x10" + data, 0)[0] == spelled
    assert "gone from the source" in source_table(mapped, None, text, with_plugins=True).problem


def test_a_column_that_has_become_an_address_since_is_not_read_as_one() -> None:
    mapped = TableMap(1, "shop", "t", (MappedColumn(Type.STRING, 20, name="id"),), (0,))
    now = TableNow("InnoDB", True, False, True, {"id": ColumnNow("inet6")})
    assert "was BINARY(20) when the row changed" in source_table(mapped, now, text, with_plugins=True).problem
    assert source_table(mapped, None, text, with_plugins=False).problem == ""


@pytest.mark.parametrize(
    ("now", "problem"),
    [
        (TableNow("MyISAM", False, False, True), "no transactions"),
        (TableNow("InnoDB", True, True, True), "system-versioned"),
        (TableNow("InnoDB", True, False, False), "no primary key"),
        (TableNow("InnoDB", True, False, True, {"g": ColumnNow("point")}), "the type point"),
        (TableNow("InnoDB", True, False, True, {"g": ColumnNow("text", compressed=True)}), "COMPRESSED"),
    ],
)
def test_tables_that_are_not_carried_say_why(now: TableNow, problem: str) -> None:
    assert problem in now.problem()
    assert problem in source_table(MAPPED, now, text, with_plugins=True).problem


def test_a_table_of_its_time_needs_names_and_a_key() -> None:
    nameless = TableMap(1, "shop", "t", (MappedColumn(Type.LONG),), (0,))
    assert "binlog_row_metadata" in source_table(nameless, None, text, with_plugins=True).problem
    keyless = TableMap(1, "shop", "t", (MappedColumn(Type.LONG, name="id"),))
    assert "had no primary key" in source_table(keyless, None, text, with_plugins=True).problem
