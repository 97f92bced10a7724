"""Reads the tables of MariaDB and MySQL from ``information_schema``.

A database of the server is what Kainite calls a schema. Names of tables are those that the server lists: where it keeps
them in lower case (``lower_case_table_names``), deltas name them so. Nothing can be deferred: foreign keys are checked
row by row. The parts of a partitioned table have no names of their own that a statement could change.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import pymysql
from pymysql.cursors import DictCursor

from kainite.base.errors import CatalogueError, TargetUnavailableError
from kainite.base.redaction import redacted, redacted_url
from kainite.targets.mariadb.address import server_of
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.type_families import family_of
from kainite.targets.mariadb.unfinished_load import foreign_keys_off
from kainite.uow.catalogue.introspection import CatalogueReader, FoundForeignKey, FoundTable
from kainite.uow.catalogue.tables import Column, ReferentialAction, UniqueKey

_SCHEMAS: Final = "SELECT schema_name AS name FROM information_schema.schemata"

_TABLES: Final = """
    SELECT table_name AS name, create_options LIKE '%%partitioned%%' AS parted FROM information_schema.tables
    WHERE table_schema = %s AND table_type = 'BASE TABLE'"""

_COLUMNS: Final = """
    SELECT table_name AS tab, column_name AS name, data_type AS data_type, column_type AS type,
           collation_name AS collation, is_nullable = 'YES' AS nullable, column_default AS filled, extra AS extra,
           coalesce(generation_expression, '') <> '' AS made, privileges AS privileges
    FROM information_schema.columns WHERE table_schema = %s ORDER BY table_name, ordinal_position"""

_INDEXES: Final = """
    SELECT table_name AS tab, index_name AS name, column_name AS col, sub_part IS NOT NULL AS cut
    FROM information_schema.statistics WHERE table_schema = %s AND non_unique = 0
    ORDER BY table_name, index_name, seq_in_index"""

_FOREIGN_KEYS: Final = """
    SELECT k.table_name AS tab, k.constraint_name AS name, k.column_name AS col,
           k.referenced_table_schema AS parent_schema, k.referenced_table_name AS parent,
           k.referenced_column_name AS parent_col, r.delete_rule AS on_delete, r.update_rule AS on_update
    FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r
      ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name
     AND r.table_name = k.table_name
    WHERE k.table_schema = %s AND r.constraint_schema = k.table_schema AND k.referenced_table_name IS NOT NULL
    ORDER BY k.table_name, k.constraint_name, k.ordinal_position"""

_CHECKS: Final = "SELECT table_name AS tab, check_clause AS told FROM information_schema.check_constraints"
_CHECKS_OF_MARIADB: Final = f"{_CHECKS} WHERE constraint_schema = %s"
_CHECKS_OF_MYSQL: Final = f"""
    {_CHECKS} JOIN information_schema.table_constraints USING (constraint_schema, constraint_name)
    WHERE constraint_schema = %s AND constraint_type = 'CHECK'"""

_RIGHTS: Final = ("insert", "update")
_NO_DATABASE: Final = 1049


@contextmanager
def reading(url: str) -> Iterator[CatalogueReader]:
    """Connects to the server and gives a reader of its tables.

    Raises:
        CatalogueError: there is no such database.
        TargetUnavailableError: the server does not answer, or refuses the connection.
    """
    try:
        with closing(connect(url)) as connection:
            yield MariadbCatalogue(connection, server_of(url).database)
    except pymysql.Error as error:
        told = f"catalogue of {redacted_url(url)} cannot be read: {redacted(str(error.args[-1]))}"
        if error.args[0] == _NO_DATABASE:
            raise CatalogueError(told) from None
        raise TargetUnavailableError(told) from None


class MariadbCatalogue:
    """MariaDB 10.5 and MySQL 8.0, and later; implements :class:`~kainite.uow.catalogue.introspection.CatalogueReader`.

    Args:
        connection: to the server.
        database: the one whose tables deltas call without a schema.
    """

    def __init__(self, connection: pymysql.connections.Connection, database: str) -> None:
        self._connection = connection
        self._database = database
        with connection.cursor() as cursor:
            cursor.execute("SELECT version()")
            self._is_mariadb = "MariaDB" in str(cursor.fetchone())

    def default_schema(self) -> str | None:
        return self._database

    def schemas(self) -> Sequence[str]:
        return [row["name"] for row in self._rows(_SCHEMAS)]

    def table_names(self, schema: str | None) -> Sequence[str]:
        return [row["name"] for row in self._rows(_TABLES, schema)]

    def tables(self, schema: str | None, names: Sequence[str]) -> Sequence[FoundTable]:
        parted = {row["name"] for row in self._rows(_TABLES, schema) if row["parted"]}
        columns, indexes = self._by_table(_COLUMNS, schema), self._by_table(_INDEXES, schema)
        keys = self._foreign_keys(schema, columns)
        checks = self._by_table(_CHECKS_OF_MARIADB if self._is_mariadb else _CHECKS_OF_MYSQL, schema)
        spelled = {
            (schema, name.casefold()): (name, {row["name"].casefold(): row["name"] for row in rows})
            for name, rows in columns.items()
        }
        return [
            FoundTable(
                schema=schema,
                name=name,
                columns=tuple(map(_column, columns[name])),
                primary_key=tuple(row["col"] for row in indexes[name] if row["name"] == "PRIMARY"),
                unique_keys=tuple(_unique_keys(indexes[name])),
                foreign_keys=tuple(_foreign_keys(keys[name], spelled)),
                part_of=None,
                judged=None if name in parted else _judged(columns[name], checks[name]),
                defaults=tuple(row["name"] for row in columns[name] if self._is_filled(row)),
            )
            for name in names
        ]

    def _is_filled(self, column: Mapping[str, Any]) -> bool:
        """Returns whether the server may fill in the column where an insert does not name it."""
        told, extra = column["filled"], column["extra"].lower()
        # MariaDB spells no default as NULL, and has none of a column that must not be null. An ENUM then has its first
        # word.
        is_default = told is not None and not (self._is_mariadb and told == "NULL")
        is_first_word = column["data_type"] == "enum" and not column["nullable"]
        return not column["made"] and (is_default or is_first_word or "auto_increment" in extra)

    def _foreign_keys(
        self, schema: str | None, columns: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> defaultdict[str, list[dict[str, Any]]]:
        """Returns the foreign keys by tables, also those that loads of single tables have taken off."""
        keys = self._by_table(_FOREIGN_KEYS, schema)
        there = {(table, row["name"]) for table, rows in keys.items() for row in rows}
        names = {table: {row["name"] for row in rows} for table, rows in columns.items()}
        for row in foreign_keys_off(self._connection, schema, names):
            if (row["tab"], row["name"]) not in there:
                keys.setdefault(row["tab"], []).append(row)
        return keys

    def _by_table(self, query: str, schema: str | None) -> defaultdict[str, list[dict[str, Any]]]:
        found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self._rows(query, schema):
            found[row["tab"]].append(row)
        return found

    def _rows(self, query: str, *values: str | None) -> list[dict[str, Any]]:
        with self._connection.cursor(DictCursor) as cursor:
            cursor.execute(query, values or None)
            return list(cursor.fetchall())


def _column(row: Mapping[str, Any]) -> Column:
    return Column(
        name=row["name"],
        type=row["type"],
        family=family_of(row["data_type"], row["type"], row["collation"]),
        nullable=bool(row["nullable"]),
        generated=bool(row["made"]),
    )


def _unique_keys(indexes: Sequence[Mapping[str, Any]]) -> Iterator[UniqueKey]:
    """Yields the unique keys; one without columns for what full values do not determine: prefixes and expressions."""
    by_name: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in indexes:
        by_name[row["name"]].append(row)
    for name, rows in by_name.items():
        if any(row["cut"] or row["col"] is None for row in rows):
            yield UniqueKey(name, ())
        elif name != "PRIMARY":
            yield UniqueKey(name, tuple(row["col"] for row in rows))


def _foreign_keys(
    rows: Sequence[Mapping[str, Any]], spelled: Mapping[tuple[str | None, str], tuple[str, Mapping[str, str]]]
) -> Iterator[FoundForeignKey]:
    """Yields the foreign keys of a table, with the parents' names as the parents are listed."""
    by_name: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_name[row["name"]].append(row)
    for name, key in by_name.items():
        schema, parent = key[0]["parent_schema"], key[0]["parent"]
        listed, columns = spelled.get((schema, parent.casefold()), (parent, {}))
        _, own = spelled.get((schema, key[0]["tab"].casefold()), ("", {}))
        yield FoundForeignKey(
            name=name,
            columns=tuple(own.get(row["col"].casefold(), row["col"]) for row in key),
            parent_schema=schema,
            parent=listed,
            parent_columns=tuple(columns.get(row["parent_col"].casefold(), row["parent_col"]) for row in key),
            deferrable=False,
            on_delete=_action(key[0]["on_delete"]),
            on_update=_action(key[0]["on_update"]),
        )


def _judged(columns: Sequence[Mapping[str, Any]], checks: Sequence[Mapping[str, Any]]) -> tuple[str, ...] | None:
    """Returns :attr:`~kainite.uow.catalogue.tables.Table.judged` of a table."""
    if any(row["made"] or "on update" in row["extra"].lower() for row in columns):
        return None
    if any(not set(_RIGHTS) <= set(row["privileges"].split(",")) for row in columns):
        return None
    told = " ".join(row["told"] for row in checks)
    return tuple(row["name"] for row in columns if _stands_in(row["name"], told))


def _stands_in(name: str, text: str) -> bool:
    quoted = re.escape(name.replace("`", "``"))
    return re.search(rf"(?<!\w){quoted}(?!\w)", text, re.IGNORECASE) is not None


def _action(word: str) -> ReferentialAction:
    known = word.lower() in list(ReferentialAction)
    return ReferentialAction(word.lower()) if known else ReferentialAction.NO_ACTION
