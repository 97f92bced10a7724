"""Asks the source's catalogue for what the binlog does not say: computed columns, indexes, engines, character sets.

The answers are of now, and a change is of its time. A column that the catalogue does not have any more is given as the
binlog has it. What has been asked is remembered until the binlog describes the table otherwise, or has DDL.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import pymysql

from kainite.base.errors import SourceError
from kainite.base.redaction import redacted
from kainite.capture.mysql.charsets import Charset, Charsets
from kainite.capture.mysql.source_tables import ColumnNow, TableNow
from kainite.targets.mariadb.connection import connect

_TABLES: Final = """
    SELECT t.table_name, t.engine, COALESCE(e.transactions, 'NO') = 'YES', t.table_type = 'SYSTEM VERSIONED'
    FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
    WHERE t.table_schema = %s AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"""
_COLUMNS: Final = """
    SELECT table_name, column_name, LOWER(data_type), COALESCE(generation_expression, '') <> '',
           column_type LIKE '%% COMPRESSED%%'
    FROM information_schema.columns WHERE table_schema = %s"""
_INDEXES: Final = """
    SELECT table_name, column_name, index_name FROM information_schema.statistics WHERE table_schema = %s"""
_COLLATIONS: Final = """
    SELECT c.id, c.character_set_name, s.maxlen FROM information_schema.{view} c
    JOIN information_schema.character_sets s ON s.character_set_name = c.character_set_name"""
_LOST: Final = (2006, 2013, 2055)
_PRIMARY: Final = "PRIMARY"


@contextmanager
def as_source_error() -> Iterator[None]:
    """Makes what the driver raises a SourceError.

    Raises:
        SourceError: the server refused, or is away.
    """
    try:
        yield
    except pymysql.Error as error:
        raise SourceError(f"the source cannot be read: {redacted(' '.join(str(error.args[-1]).split()))}") from None


class MysqlSourceCatalogue:
    """The catalogue of a source database, over a connection of its own that is opened again where it is lost.

    Args:
        url: the database.
        failing: makes what the driver raises an error of Kainite; by default a SourceError.

    Attributes:
        charsets: reads texts.
        is_mariadb: whether the server is MariaDB.
    """

    def __init__(
        self,
        url: str,
        failing: Callable[[], AbstractContextManager[None]] = as_source_error,
    ) -> None:
        self._url = url
        self._failing = failing
        with failing():
            self._connection = connect(url)
        self.is_mariadb = "mariadb" in str(self.value("SELECT version()")).lower()
        self.charsets = Charsets(self._collations(), self._convert, _complain)

    def tables(self, database: str, names: Collection[str] = ()) -> dict[str, TableNow]:
        """Returns tables by their names.

        Args:
            database: of which.
            names: which; all where there are none.
        """
        columns: dict[str, dict[str, ColumnNow]] = defaultdict(dict)
        indexes: dict[tuple[str, str], set[str]] = defaultdict(set)
        keyed = set()
        for table, column, index in self._of_tables(_INDEXES, database, names):
            indexes[table, column].add(index)
            keyed |= {table} if index == _PRIMARY else set()
        for table, column, kind, made, compressed in self._of_tables(_COLUMNS, database, names):
            indexed = bool(indexes[table, column] - {_PRIMARY})
            columns[table][column.lower()] = ColumnNow(kind, bool(made), indexed, bool(compressed))
        return {
            table: TableNow(engine or "", bool(safe), bool(versioned), table in keyed, columns[table])
            for table, engine, safe, versioned in self._of_tables(_TABLES, database, names, "t.")
        }

    def variables(self, *names: str) -> dict[str, str]:
        """Returns the server's variables, as far as it has them."""
        marks = ", ".join(["%s"] * len(names))
        found = self.rows(f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({marks})", names)
        return {str(name).lower(): str(value) for name, value in found}

    def value(self, query: str, values: Sequence[object] = ()) -> Any:
        """Returns the first value of a query; None without a row."""
        found = self.rows(query, values)
        return found[0][0] if found else None

    def rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a query.

        Raises:
            SourceError: the server refused it, or is away.
        """
        with self._failing():
            try:
                return self._asked(query, values)
            except pymysql.OperationalError as error:
                if error.args[0] not in _LOST:
                    raise
            self._connection = connect(self._url)  # the server closes a session that has been idle (wait_timeout)
            return self._asked(query, values)

    def close(self) -> None:
        self._connection.close()

    def _asked(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(query, list(values) or None)
            return list(cursor.fetchall())

    def _of_tables(self, query: str, database: str, names: Collection[str], of: str = "") -> list[tuple[Any, ...]]:
        if not names:
            return self.rows(query, [database])
        marks = ", ".join(["%s"] * len(names))
        return self.rows(f"{query} AND {of}table_name IN ({marks})", [database, *names])

    def _collations(self) -> Mapping[int, Charset]:
        # MariaDB lists the collations of several character sets with the latter alone.
        view = "collation_character_set_applicability" if self._has_applicable_ids() else "collations"
        found = self.rows(_COLLATIONS.format(view=view))
        return {int(number): Charset(str(name), int(most) == 1) for number, name, most in found if number is not None}

    def _has_applicable_ids(self) -> bool:
        query = (
            "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'information_schema' AND"
            " LOWER(table_name) = 'collation_character_set_applicability' AND LOWER(column_name) = 'id'"
        )
        return bool(self.value(query))

    def _convert(self, charset: str, data: bytes) -> str | None:
        text = self.value(f"SELECT CONVERT(CONVERT(%s USING {charset}) USING utf8mb4)", [data])
        return None if text is None else str(text)


def _complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
