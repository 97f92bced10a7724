"""Looks whether a load into MariaDB may begin, and prepares what can be prepared: ``kainite replicate init``.

From PostgreSQL :func:`look_into_mariadb` lists each table that the target lacks with the statement that makes it, and
:func:`write_into_mariadb` executes these, where every type has one that takes all its values
(:mod:`kainite.replicate.mariadb_types`). From MariaDB it is the source's own ``SHOW CREATE TABLE``. Tables come with
their keys and foreign keys at once: these are not checked while rows are copied. Indexes that are not unique are left
to the user. A crash leaves tables, which are left alone by the next call, and none that is half made.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any, Final

import psycopg
import pymysql
from psycopg.rows import namedtuple_row

from kainite.base.errors import CatalogueError
from kainite.capture.mysql.snapshot_tables import SnapshotTable, backticked
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.extract.offsets.offset_file import offset_file_of
from kainite.replicate.binlog_plan import PairedTable
from kainite.replicate.ends import ReplicaEnds, source_session
from kainite.replicate.findings import CheckFinding, fine, warning, wrong
from kainite.replicate.mariadb_checks import look_at_mariadb_target
from kainite.replicate.mariadb_load_ledger import found_mariadb_load
from kainite.replicate.mariadb_plan import MariadbPair, mariadb_pairs
from kainite.replicate.mariadb_target_session import mariadb_session, sql_name
from kainite.replicate.mariadb_types import SourceForeignKey, WrittenTable, mariadb_type, written_table
from kainite.replicate.preparation import made_publication, made_slot, target_catalogue
from kainite.replicate.session_checks import look_at_sessions
from kainite.replicate.settings_checks import look_at_settings
from kainite.replicate.slot import found_slot
from kainite.replicate.source_checks import look_at_source
from kainite.replicate.tables import ReplicaTable, TableName, published
from kainite.settings import Settings
from kainite.targets.mariadb.rows import line_of
from kainite.uow.catalogue.tables import Catalogue, Column

_WRITE: Final = "kainite replicate init --write"
_COUNTER: Final = re.compile(r" AUTO_INCREMENT=\d+")
_SIGNED: Final = re.compile(r"\(\d+\)")
_ACTIONS: Final = {"c": "CASCADE", "n": "SET NULL"}

_UNIQUE: Final = """
    SELECT ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
                 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                 WHERE k.place <= i.indnkeyatts ORDER BY k.place) AS columns
    FROM pg_index i WHERE i.indrelid = %s::regclass AND i.indisunique AND NOT i.indisprimary AND i.indisvalid
      AND i.indpred IS NULL AND i.indexprs IS NULL ORDER BY i.indexrelid"""
_FOREIGN_KEYS: Final = """
    SELECT k.conname::text AS name, n.nspname::text AS schema, p.relname::text AS parent,
           k.confdeltype::text AS deletes, k.confupdtype::text AS updates,
           ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, place)
                 JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum ORDER BY u.place) AS columns,
           ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u (attnum, place)
                 JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.attnum
                 ORDER BY u.place) AS parent_columns
    FROM pg_constraint k JOIN pg_class p ON p.oid = k.confrelid JOIN pg_namespace n ON n.oid = p.relnamespace
    WHERE k.contype = 'f' AND k.conrelid = %s::regclass AND k.conparentid = 0 ORDER BY 1"""


def look_into_mariadb(configured: Settings, ends: ReplicaEnds) -> list[CheckFinding]:
    """Returns the list of what was found at a PostgreSQL source, a MariaDB target, and between them.

    Raises:
        SourceError: the source does not answer.
        TargetUnavailableError: the target does not answer.
    """
    catalogue = target_catalogue(configured, ends)
    with source_session(ends.source.url) as source, mariadb_session(ends.target) as target:
        tables = published(source, ends.source.publication)
        slot = found_slot(source, ends.source.slot)
        pairs, missing = mariadb_pairs(tables, catalogue)
        lacking = [table for table in tables if table.full_name in missing]
        size = sum(table.bytes for table in tables)
        return [
            *look_at_sessions(ends),
            *look_at_source(source, ends.source, tables, ends.required),
            *_presence(pairs, _written(source, lacking, {table.place for table in tables})),
            *(finding for pair in pairs for finding in _columns(pair)),
            *look_at_mariadb_target(target, [pair.place for pair in pairs], size, catalogue, ends.log_partition),
            *look_at_settings(configured, tables, None if slot is None else slot.lsn),
        ]


def write_into_mariadb(configured: Settings, ends: ReplicaEnds) -> Iterator[str]:
    """Makes what is missing for a load from PostgreSQL; yields what was done.

    Raises:
        SourceError: the source refused, or does not answer.
        TargetUnavailableError: the target does not answer.
        CatalogueError: the target refused a table.
    """
    with source_session(ends.source.url) as source, mariadb_session(ends.target) as target:
        yield from made_publication(source, ends)
        load = partial(found_mariadb_load, target, ends.log_partition)
        yield from made_slot(source, load, ends, offset_file_of(configured))
        tables = published(source, ends.source.publication)
        missing = mariadb_pairs(tables, target_catalogue(configured, ends))[1]
        lacking = [table for table in tables if table.full_name in missing]
        written = _written(source, lacking, {table.place for table in tables})
        if any(table.open for table in written.values()):
            yield "made no table: columns have types of which you choose MariaDB's, see the list"
            return
        yield from make_tables(target, {name: table.sql for name, table in written.items()})
        for name, table in written.items():
            if table.short:
                yield f"{name}: longer values are refused of {', '.join(table.short)}"


def make_tables(target: pymysql.connections.Connection, statements: dict[str, str]) -> Iterator[str]:
    """Makes tables in an order of no matter; yields what was done.

    Args:
        target: a session with the target.
        statements: CREATE TABLE by the tables' names.

    Raises:
        CatalogueError: the target refused one.
    """
    target.query("SET SESSION foreign_key_checks = 0")
    for name, sql in statements.items():
        try:
            target.query(sql)
        except pymysql.Error as error:
            raise CatalogueError(f"the target refused {name}: {line_of(error)}: {sql}") from None
        yield f"made table {name}"
    target.query("SET SESSION foreign_key_checks = 1")


def source_statements(source: MysqlSourceCatalogue, tables: Sequence[SnapshotTable]) -> dict[str, str]:
    """Returns the statements that make tables of a MariaDB source; raises SourceError."""
    made = {table.name: source.rows(f"SHOW CREATE TABLE {backticked(table.name)}") for table in tables}
    return {name: _COUNTER.sub("", str(rows[0][1])) for name, rows in made.items()}


def doubts_of_mariadb(pair: PairedTable) -> Iterator[str]:
    """Yields which columns of a MariaDB target may not take, or may change, values of a MariaDB source."""
    for column in pair.source.copied:
        found = pair.target.columns.get(column.name)
        if found is not None and found.type.lower() != column.column_type:
            yield _other_type(f"{'.'.join(pair.place)}.{column.name}", column.column_type, found.type)


def _presence(pairs: Sequence[MariadbPair], written: dict[str, WrittenTable]) -> Iterator[CheckFinding]:
    for name, table in written.items():
        if table.open:
            yield wrong("tables", f"the target lacks {name}, and MariaDB has no one type for all values of"
                        f" {', '.join(table.open)}", f"with types that you choose: {table.sql}")  # fmt: skip
        else:
            yield wrong("tables", f"the target lacks {name}", f"{_WRITE}, or: {table.sql}")
        if table.short:
            yield warning("tables", f"{name}: a key takes 255 characters or bytes of {', '.join(table.short)}, longer"
                          " values are refused", "another length, up to 3072 bytes for all of the key")  # fmt: skip
    if pairs and not written:
        yield fine("tables", f"the target has all {len(pairs)}")
    for pair in pairs:
        if not pair.target.primary_key and pair.source.key:
            yield wrong("tables", f"the target's {'.'.join(pair.place)} has no primary key",
                        f"ALTER TABLE {sql_name(*pair.place)} ADD PRIMARY KEY ({sql_names(pair.source.key)})"
                        )  # fmt: skip


def sql_names(columns: Sequence[str]) -> str:
    """Returns columns as MariaDB reads them."""
    return ", ".join(map(backticked, columns))


def _columns(pair: MariadbPair) -> Iterator[CheckFinding]:
    """Yields where the columns of a table differ in what matters to a copy."""
    table = sql_name(*pair.place)
    for problem in pair.problems:
        yield wrong("columns", problem, f"ALTER TABLE {table} …")
    copied = {column.name for column in pair.source.copied}
    for column in pair.source.copied:
        found = pair.target.columns.get(column.name)
        if found is None or found.generated:
            continue
        name = f"{'.'.join(pair.place)}.{column.name}"
        wanted = mariadb_type(column.type, keyed=False)
        if not _takes(wanted, mariadb_type(column.type, keyed=True), found):
            mend = f"ALTER TABLE {table} MODIFY {backticked(column.name)} {wanted or '…'}"
            yield warning("columns", _other_type(name, column.type, found.type), mend)
        elif not found.nullable and not column.not_null:
            yield warning("columns", f"{name} takes NULL in the source alone: a row with one is refused",
                          f"ALTER TABLE {table} MODIFY {backticked(column.name)} {found.type} NULL")  # fmt: skip
    for found in pair.target.columns.values():
        if found.name not in copied and not found.nullable and found.name not in (pair.target.defaults or ()):
            yield warning("columns", f"{'.'.join(pair.place)}.{found.name} is NOT NULL in the target, and nothing comes"
                          " for it", f"ALTER TABLE {table} ALTER {backticked(found.name)} SET DEFAULT …")  # fmt: skip


def _takes(wanted: str | None, keyed: str | None, found: Column) -> bool:
    """Tells whether a column surely takes all values of a type, by what would be written for it."""
    there = _plain(found.type)
    return there in {_plain(one.partition(" COLLATE")[0]) for one in (wanted, keyed) if one is not None}


def _plain(kind: str) -> str:
    """Returns a type in one spelling: the server lists an integer's display width, and other words for some types."""
    name = kind.lower()
    if name in ("boolean", "tinyint(1)"):
        return "boolean"
    if name in ("json", "longtext"):
        return "longtext"
    return _SIGNED.sub("", name) if name.startswith(("int", "bigint", "smallint")) else name


def _other_type(name: str, source: str, target: str) -> str:
    return (
        f"{name} is {source} in the source and {target} in the target: values that do not fit are refused, others may"
        " be rounded or cut"
    )


def table_written(ends: ReplicaEnds, table: ReplicaTable, target: Catalogue) -> str:
    """Returns the statement that makes a table of a PostgreSQL source; empty where the target has it.

    Foreign keys to tables that the target does not have are left out.

    Raises:
        SourceError: the source does not answer.
        CatalogueError: a column's type has no one type of MariaDB.
    """
    pairs, _ = mariadb_pairs([table], target)
    if pairs:
        return ""
    there = {(one.schema or target.default_schema or "", one.bare_name) for one in target.tables.values()}
    with source_session(ends.source.url) as source:
        written = _written(source, [table], {table.place, *there})[table.full_name]
    if written.open:
        raise CatalogueError(
            f"the target lacks {table.full_name}, and MariaDB has no one type for all values of"
            f" {', '.join(written.open)}: make it with types that you choose, and start again: {written.sql}"
        )
    return written.sql


def _written(
    source: psycopg.Connection, lacking: Sequence[ReplicaTable], places: Collection[TableName]
) -> dict[str, WrittenTable]:
    """Returns the statements that make tables which the target lacks, by their names.

    Args:
        source: a session with the source.
        lacking: the tables.
        places: the tables to which foreign keys may lead.
    """
    found = {}
    for table in lacking:
        names = {column.name for column in table.copied}
        unique = [row.columns for row in _rows(source, _UNIQUE, table.sql) if names.issuperset(row.columns)]
        keys = [_foreign_key(row) for row in _rows(source, _FOREIGN_KEYS, table.sql)]
        kept = [key for key in keys if key.parent in places and names.issuperset(key.columns)]
        found[table.full_name] = written_table(table.place, table.copied, table.key, unique, kept)
    return found


def _foreign_key(row: Any) -> SourceForeignKey:
    actions = [
        f"ON {change} {_ACTIONS[letter]}"
        for change, letter in (("DELETE", row.deletes), ("UPDATE", row.updates))
        if letter in _ACTIONS
    ]
    place = (row.schema, row.parent)
    return SourceForeignKey(row.name, tuple(row.columns), place, tuple(row.parent_columns), " ".join(actions))


def _rows(source: psycopg.Connection, query: str, table: str) -> list[Any]:
    return source.cursor(row_factory=namedtuple_row).execute(query.encode(), (table,)).fetchall()
