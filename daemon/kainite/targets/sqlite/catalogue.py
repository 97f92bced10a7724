"""Reads SQLite's tables from its pragmas.

SQLite compares names without regard to case, and stores foreign keys as they were typed; this module
spells their names as in the parent tables. Every foreign key of SQLite can be deferred, by
``PRAGMA defer_foreign_keys`` within a transaction, whatever its declaration says.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path

from kainite.base.errors import CatalogueError, TargetUnavailableError
from kainite.targets.sqlite.address import path_of
from kainite.targets.sqlite.type_families import family_of
from kainite.uow.catalogue.introspection import CatalogueReader, FoundForeignKey, FoundTable
from kainite.uow.catalogue.tables import Column, ReferentialAction, TypeFamily, UniqueKey

_TABLES = r"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'"
_COLUMNS = 'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(:name) ORDER BY cid'
_INDEXES = 'SELECT name, origin, partial FROM pragma_index_list(:name) WHERE "unique" ORDER BY name'
_INDEX = "SELECT name, coll FROM pragma_index_xinfo(:name) WHERE key ORDER BY seqno"
_FOREIGN_KEYS = (
    'SELECT id, "table" AS parent, "from" AS child_column, "to" AS parent_column, on_delete, on_update '
    "FROM pragma_foreign_key_list(:name) ORDER BY id, seq"
)
_MADE = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = :name"
_ALL_INDEXES = "SELECT name, partial FROM pragma_index_list(:name)"

_HIDDEN_GENERATED = (2, 3)
_CHECK = re.compile(r"\bcheck\b", re.IGNORECASE)
_QUOTED = re.compile(r"['\"`\[]|--|/\*")


@contextmanager
def reading(url: str) -> Iterator[CatalogueReader]:
    """Opens the database file and gives a reader of its tables.

    Raises:
        CatalogueError: there is no such file.
        TargetUnavailableError: the file cannot be read.
    """
    path = path_of(url)
    if not Path(path).is_file():
        raise CatalogueError(f"target {path!r} does not exist: SQLite would make an empty one")
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            yield SqliteCatalogue(connection)
    except sqlite3.Error as error:
        raise TargetUnavailableError(f"catalogue of {url} cannot be read: {error}") from error


class SqliteCatalogue:
    """SQLite 3.31 and later; implements :class:`kainite.uow.catalogue.introspection.CatalogueReader`.

    Its tables have no schema: deltas name them without one, since a file has only one.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def default_schema(self) -> str | None:
        return "main"

    def schemas(self) -> Sequence[str]:
        return ["main"]

    def table_names(self, schema: str | None) -> Sequence[str]:
        return [row["name"] for row in self._connection.execute(_TABLES)]

    def tables(self, schema: str | None, names: Sequence[str]) -> Sequence[FoundTable]:
        spelled = {name.casefold(): name for name in names}
        return [self._table(name, spelled) for name in names]

    def _table(self, name: str, spelled: Mapping[str, str]) -> FoundTable:
        columns = self._columns(name)
        return FoundTable(
            schema=None,
            name=name,
            columns=columns,
            primary_key=self._primary_key(name),
            unique_keys=self._unique_keys(name),
            foreign_keys=tuple(self._foreign_keys(name, spelled)),
            part_of=None,
            judged=self._judged(name, columns),
            defaults=self._defaults(name),
        )

    def _about(self, query: str, name: str) -> list[sqlite3.Row]:
        """Returns the rows of a query about one table, or one index."""
        return self._connection.execute(query, {"name": name}).fetchall()

    def _columns(self, table: str) -> tuple[Column, ...]:
        folded = self._collated_columns(table)
        return tuple(
            Column(
                name=row["name"],
                type=row["type"],
                family=TypeFamily.OPAQUE if row["name"] in folded else family_of(row["type"]),
                nullable=not row["notnull"] and not row["pk"],
                generated=row["hidden"] in _HIDDEN_GENERATED,
            )
            for row in self._about(_COLUMNS, table)
        )

    def _collated_columns(self, table: str) -> set[str]:
        """Returns the key columns that are not compared byte by byte (NOCASE, RTRIM, the application's own)."""
        return {
            column["name"]
            for index in self._about(_INDEXES, table)
            for column in self._about(_INDEX, index["name"])
            if column["name"] is not None and column["coll"] != "BINARY"
        }

    def _primary_key(self, table: str) -> tuple[str, ...]:
        keyed = [row for row in self._about(_COLUMNS, table) if row["pk"]]
        return tuple(row["name"] for row in sorted(keyed, key=lambda row: row["pk"]))

    def _unique_keys(self, table: str) -> tuple[UniqueKey, ...]:
        return tuple(
            UniqueKey(index["name"], self._determined(index))
            for index in self._about(_INDEXES, table)
            if index["origin"] != "pk"
        )

    def _determined(self, index: sqlite3.Row) -> tuple[str, ...]:
        """Returns the columns of an index; none for a partial index or an index over expressions."""
        names = self._index_columns(index)
        return () if index["partial"] or None in names else tuple(filter(None, names))

    def _index_columns(self, index: sqlite3.Row) -> list[str | None]:
        """Returns the columns of an index; None stands for an expression."""
        return [column["name"] for column in self._about(_INDEX, index["name"])]

    def _judged(self, table: str, columns: Sequence[Column]) -> tuple[str, ...] | None:
        """Returns :attr:`~kainite.uow.catalogue.tables.Table.judged` of a table."""
        if any(column.generated for column in columns):
            return None
        if any(index["partial"] or None in self._index_columns(index) for index in self._about(_ALL_INDEXES, table)):
            return None
        [made] = self._about(_MADE, table)
        checks = _checks(made["sql"])
        # What is quoted or a comment may hide where a condition ends.
        all_of_them = bool(checks) and _QUOTED.search(made["sql"]) is not None
        return tuple(column.name for column in columns if all_of_them or _stands_in(column.name, checks))

    def _defaults(self, table: str) -> tuple[str, ...]:
        """Returns :attr:`~kainite.uow.catalogue.tables.Table.defaults` of a table; an INTEGER key numbers rows."""
        return tuple(
            row["name"]
            for row in self._about(_COLUMNS, table)
            if row["hidden"] not in _HIDDEN_GENERATED
            and (row["dflt_value"] is not None or (row["pk"] and row["type"].upper() == "INTEGER"))
        )

    def _foreign_keys(self, table: str, spelled: Mapping[str, str]) -> Iterator[FoundForeignKey]:
        """Yields the foreign keys to the tables of ``spelled``, which has them by their names without case."""
        own = self._spelling(table)
        for _, rows in groupby(self._about(_FOREIGN_KEYS, table), key=lambda row: row["id"]):
            key = list(rows)
            parent = spelled.get(key[0]["parent"].casefold())
            if parent is None:
                continue
            columns = tuple(own[row["child_column"].casefold()] for row in key)
            yield FoundForeignKey(
                # SQLite does not report the names of constraints.
                name=f"{table}_{'_'.join(columns)}_fkey",
                columns=columns,
                parent_schema=None,
                parent=parent,
                parent_columns=self._named(parent, [row["parent_column"] for row in key]),
                deferrable=True,
                on_delete=_action(key[0]["on_delete"]),
                on_update=_action(key[0]["on_update"]),
            )

    def _named(self, parent: str, columns: Sequence[str | None]) -> tuple[str, ...]:
        """Returns the columns of the parent that a foreign key names; a key that names none means the primary key."""
        if None in columns:
            return self._primary_key(parent)
        spelling = self._spelling(parent)
        return tuple(spelling[column.casefold()] for column in columns if column is not None)

    def _spelling(self, table: str) -> dict[str, str]:
        """Returns the table's columns by their names without case."""
        return {row["name"].casefold(): row["name"] for row in self._about(_COLUMNS, table)}


def _checks(made: str) -> str:
    """Returns the conditions of all CHECKs of a CREATE TABLE statement, perhaps with more."""
    return " ".join(made[match.end() : _end(made, match.end())] for match in _CHECK.finditer(made))


def _end(made: str, begin: int) -> int:
    """Returns the place behind the parenthesis that closes what opens behind ``begin``."""
    depth = 0
    for place in range(begin, len(made)):
        depth += {"(": 1, ")": -1}.get(made[place], 0)
        if depth == 0 and made[place] == ")":
            return place + 1
    return len(made)


def _stands_in(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _action(word: str) -> ReferentialAction:
    known = word.lower() in list(ReferentialAction)
    return ReferentialAction(word.lower()) if known else ReferentialAction.NO_ACTION
