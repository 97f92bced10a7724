"""Turns events of rows into changes of the tables that are read, by the binlog's and the catalogue's descriptions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from kainite.capture.mysql.records import MAX_CHANGE, SourceTable, change_record
from kainite.capture.mysql.rows import changed_rows, operation_of
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.source_tables import source_table
from kainite.capture.mysql.table_map import decode_table_map, table_names
from kainite.capture.mysql.transactions import Rows
from kainite.capture.mysql.units import ChangeRecord
from kainite.capture.mysql.values import UncarriedError

SEQUENCE = (
    "next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size", "cycle_option",
    "cycle_count",
)  # fmt: skip
"""The columns of MariaDB's sequences, which the binlog describes as tables."""
HEARTBEATS = "kainite_heartbeat"
"""The table in which heartbeats are written: its changes become no deltas."""


class TableReading:
    """Reads the rows of one database.

    Args:
        catalogue: of the server.
        database: the database; other databases' rows are passed over.
        only: the tables that are read; all where there are none.
    """

    def __init__(self, catalogue: MysqlSourceCatalogue, database: str, only: Collection[str]) -> None:
        self._catalogue = catalogue
        self._database = database
        self._only = frozenset(only)
        self._tables: dict[bytes, SourceTable] = {}

    def read_only(self, tables: Collection[str]) -> None:
        """Reads these tables from now on; all where there are none."""
        self._only = frozenset(tables)

    def is_read(self, table: str) -> bool:
        """Returns whether a table of the database is read."""
        return table != HEARTBEATS and (not self._only or table in self._only)

    def is_of_database(self, rows: Rows) -> bool:
        """Returns whether rows are of the database, of a table that is read or not."""
        return table_names(rows.table)[0] == self._database

    def forget(self) -> None:
        """Asks the catalogue anew for each table: something was altered."""
        self._tables.clear()

    def changes(self, rows: Rows) -> Iterator[ChangeRecord | None]:
        """Yields what makes each change's record; None for a change of a table that is not read.

        Raises:
            SourceError: the rows do not fit their table, or the catalogue cannot be asked.
        """
        if not self.is_of_database(rows):
            return
        table = self._table(rows.table) if self.is_read(table_names(rows.table)[1]) else None
        if table is None:
            yield None
            return
        yield from self._changes(rows, table)

    def _changes(self, rows: Rows, table: SourceTable) -> Iterator[ChangeRecord]:
        operation = operation_of(rows.event)
        problem = table.problem
        if not problem and len(rows.event.body) > 2 * MAX_CHANGE:
            problem = f"the change has more than {MAX_CHANGE // 2**20} MiB"
        if not problem:
            try:
                for row in changed_rows(rows.event, table.readers):
                    yield partial(change_record, table=table, operation=operation, row=row)
                return
            except UncarriedError as error:
                problem = str(error)
        yield partial(change_record, table=table, operation=operation, row=problem)

    def _table(self, body: bytes) -> SourceTable | None:
        """Returns how a table is read; None for a sequence, whose state is no row."""
        if (known := self._tables.get(body)) is None:
            mapped = decode_table_map(body)
            if tuple(column.name for column in mapped.columns) == SEQUENCE and not mapped.key:
                return None
            now = self._catalogue.tables(self._database, [mapped.name]).get(mapped.name)
            text_of, is_mariadb = self._catalogue.charsets.text, self._catalogue.is_mariadb
            known = self._tables[body] = source_table(mapped, now, text_of, with_plugins=is_mariadb)
        return known
