"""Lists a source's tables as a load reads them, and cuts each into ranges of its primary key.

A range is a condition on the key's first column. The first range is open below and the last one above, so together
they have each row once, whatever the values at which they are cut, and whenever these were read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.table_reading import HEARTBEATS
from kainite.capture.mysql.text_forms import TextForm, text_form

RANGE_BYTES: Final = 32 * 2**20
"""Bytes of a range, about: a step that is killed is repeated."""

INNODB: Final = "ALTER TABLE … ENGINE=InnoDB"
"""What mends a table of another engine."""

_LEAST_ROWS: Final = 1000
_TABLES: Final = """
    SELECT table_name, COALESCE(table_rows, 0), COALESCE(data_length, 0) FROM information_schema.tables
    WHERE table_schema = %s AND table_type = 'BASE TABLE'"""
_COLUMNS: Final = """
    SELECT table_name, column_name, LOWER(data_type), LOWER(column_type), COALESCE(generation_expression, '') <> '',
           COALESCE(character_set_name, ''), COALESCE(collation_name, '')
    FROM information_schema.columns WHERE table_schema = %s ORDER BY table_name, ordinal_position"""
_KEYS: Final = """
    SELECT table_name, column_name FROM information_schema.statistics
    WHERE table_schema = %s AND index_name = 'PRIMARY' ORDER BY table_name, seq_in_index"""
_STORED: Final = frozenset({"binary", "varbinary", "char", "varchar"})
_BY_TEXT: Final = frozenset({"decimal", "date", "datetime", "timestamp", "uuid", "inet4", "inet6"})


@dataclass(frozen=True, slots=True)
class SnapshotColumn:
    """A column.

    Attributes:
        name: its name.
        data_type: its type's name alone, in lower case.
        column_type: its type as the catalogue spells it, in lower case.
        made: whether the source computes it; such a column is not copied.
        charset, collation: of a text; else empty.
    """

    name: str
    data_type: str
    column_type: str
    made: bool
    charset: str
    collation: str

    @property
    def form(self) -> TextForm:
        """Returns how its text is got."""
        return text_form(backticked(self.name), self.data_type, self.column_type)

    @property
    def cut(self) -> str:
        """Returns an expression for what :meth:`literal` reads: of texts and bytes, what is stored, in hexadecimal."""
        name = backticked(self.name)
        return f"HEX({name})" if self.data_type in _STORED else f"CONCAT('', {self.form.sql})"

    def literal(self, text: str) -> str | None:
        """Returns a value of the column as SQL compares it; None for a type at whose values nothing is cut.

        Args:
            text: the value as a query of :attr:`cut` gives it.
        """
        if self.data_type in ("tinyint", "smallint", "mediumint", "int", "bigint"):
            return str(int(text))
        if self.data_type in ("binary", "varbinary"):
            return f"X'{text}'"
        if self.data_type in ("char", "varchar"):
            return f"_{self.charset} X'{text}' COLLATE {self.collation}"
        return f"'{text.removesuffix('+00')}'" if self.data_type in _BY_TEXT else None


@dataclass(frozen=True, slots=True)
class SnapshotTable:
    """A table.

    Attributes:
        name: its name, as deltas have it.
        columns: its columns, in order.
        key: the names of the primary key's columns, in order.
        rows, bytes: its size, as the server estimates it.
        schema: its database; empty for the one that a session is connected with.
    """

    name: str
    columns: tuple[SnapshotColumn, ...]
    key: tuple[str, ...]
    rows: int
    bytes: int
    schema: str = ""

    @property
    def sql(self) -> str:
        """Returns its name as SQL."""
        return ".".join(backticked(part) for part in (self.schema, self.name) if part)

    @property
    def copied(self) -> tuple[SnapshotColumn, ...]:
        """Returns the columns whose values are copied."""
        return tuple(column for column in self.columns if not column.made)

    def query(self, condition: str, columns: Sequence[SnapshotColumn] | None = None) -> str:
        """Returns a query: the texts of columns of rows, by default of those that are copied."""
        texts = ", ".join(column.form.sql for column in (self.copied if columns is None else columns))
        return f"SELECT {texts} FROM {self.sql} WHERE {condition}"


def snapshot_tables(catalogue: MysqlSourceCatalogue, database: str, only: Collection[str]) -> tuple[SnapshotTable, ...]:
    """Returns the tables of a database that are read.

    Args:
        catalogue: of the server.
        database: the database.
        only: which tables; all where there are none.

    Raises:
        SourceError: the server refused, or is away.
    """
    columns: dict[str, list[SnapshotColumn]] = {}
    for table, *column in catalogue.rows(_COLUMNS, [database]):
        name, data_type, column_type, made, charset, collation = column
        columns.setdefault(table, []).append(
            SnapshotColumn(name, data_type, column_type, bool(made), charset, collation)
        )
    keys: dict[str, list[str]] = {}
    for table, name in catalogue.rows(_KEYS, [database]):
        keys.setdefault(table, []).append(name)
    return tuple(
        SnapshotTable(table, tuple(columns[table]), tuple(keys.get(table, ())), int(rows), int(size))
        for table, rows, size in sorted(catalogue.rows(_TABLES, [database]))
        if table != HEARTBEATS and (not only or table in only)
    )


def of_other_engines(catalogue: MysqlSourceCatalogue, database: str, only: Collection[str]) -> list[str]:
    """Returns the tables that are not InnoDB's, whose snapshots have a place in the binlog.

    Args:
        catalogue: of the server.
        database: the database.
        only: which tables; all where there are none.

    Raises:
        SourceError: the server refused, or is away.
    """
    found = catalogue.tables(database, only)
    return sorted(name for name, table in found.items() if table.engine.lower() != "innodb" and name != HEARTBEATS)


def key_ranges(catalogue: MysqlSourceCatalogue, table: SnapshotTable) -> Iterator[str]:
    """Yields conditions which together have each row of a table once; one at least.

    Raises:
        SourceError: the server refused, or is away.
    """
    below = "TRUE"
    for cut in _cuts(catalogue, table):
        name = backticked(table.key[0])
        yield f"{below} AND {name} < {cut}"
        below = f"{name} >= {cut}"
    yield below


def _cuts(catalogue: MysqlSourceCatalogue, table: SnapshotTable) -> Iterator[str]:
    """Yields values of the key's first column, in their order, each about :data:`RANGE_BYTES` behind the one before."""
    column = next((one for one in table.columns if table.key and one.name == table.key[0]), None)
    if column is None or table.bytes <= RANGE_BYTES:
        return
    rows = max(table.rows * RANGE_BYTES // table.bytes, _LEAST_ROWS)
    name, source = backticked(column.name), table.sql
    above = "TRUE"
    while True:
        order = f"FROM {source} WHERE {above} ORDER BY {name} LIMIT 1"
        text = catalogue.value(f"SELECT {column.cut} {order} OFFSET {rows}")
        cut = None if text is None else column.literal(str(text))
        if cut is None:
            return
        yield cut
        above = f"{name} > {cut}"


def backticked(name: str) -> str:
    """Returns a name as SQL."""
    return "`" + name.replace("`", "``") + "`"
