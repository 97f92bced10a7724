"""A table's description names its columns, their signs, character sets and members, and its key."""

from __future__ import annotations

from kainite.capture.mysql.events import Kind
from kainite.capture.mysql.table_map import Type, decode_table_map, table_id_of, table_names
from support.binlog import first


def test_a_table_is_described_as_it_was_at_its_change() -> None:
    body = first(Kind.TABLE_MAP).body
    table = decode_table_map(body)
    columns = {column.name: column for column in table.columns}
    assert table_names(body) == (table.schema, table.name) == ("shop", "t")
    assert table_id_of(body) == table.table_id
    assert table.key == (0,)
    assert [name for name, column in columns.items() if column.unsigned] == ["y", "u"]
    assert (columns["d"].size, columns["d"].scale) == (12, 3)
    assert (columns["e"].type, columns["e"].members) == (Type.ENUM, (b"a", b"b"))
    assert (columns["st"].type, columns["st"].members) == (Type.SET, (b"x", b"y"))
    assert (columns["l"].collation, columns["n"].collation) == (8, 45)
    assert columns["ch"].size == 20
