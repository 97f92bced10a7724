"""Makes a table of the source in a target that lacks it, and has its changes published from then on.

The table is made in the transaction that begins its load, so that the target never has it without holding its deltas,
in MariaDB behind that (:mod:`kainite.replicate.mariadb_table_ledger`);
the publication gets it behind that. A transaction that was open while the publication got the table may have changes of
it that are not sent; the table's consistent point waits for the transaction's end, so the copy has them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
from psycopg import errors, sql

from kainite.base.errors import CatalogueError, SourceError
from kainite.replicate.ends import ReplicaEnds, is_mariadb, source_session
from kainite.replicate.load_target import has_table
from kainite.replicate.schema_dump import dump_table
from kainite.replicate.tables import ReplicaTable, TableName, described, published
from kainite.uow.catalogue.tables import Catalogue


def source_table(ends: ReplicaEnds, table: TableName) -> ReplicaTable:
    """Returns a table of the source, published or not.

    Raises:
        SourceError: the source has no such table, or does not answer.
    """
    with source_session(ends.source.url) as source:
        found = described(source, [table]).get(table)
    if found is None:
        raise SourceError(f"the source has no table {'.'.join(table)}")
    return found


def make_table(connection: psycopg.Connection, ends: ReplicaEnds, table: ReplicaTable) -> None:
    """Makes a table in the target, unless it is there; in the caller's transaction.

    Foreign keys to tables that the target does not have are left out.

    Raises:
        SettingsError: pg_dump is not installed.
        SourceError: pg_dump refused.
        CatalogueError: the target refused.
    """
    if described(connection, [table.place]):
        return
    script, foreign_keys = dump_table(ends.source.url, table.sql)
    try:
        connection.execute(script.encode())
        for statement in foreign_keys:
            _unless_parent_is_missing(connection, statement)
    except psycopg.Error as error:
        raise CatalogueError(f"the target does not take {table.full_name}: {' '.join(str(error).split())}; make it"
                             " there yourself, with its keys, and start again") from None  # fmt: skip
    connection.execute("SET search_path TO DEFAULT")  # a dump's own lasts for the session


def making(ends: ReplicaEnds, table: ReplicaTable, catalogue: Callable[[], Catalogue]) -> Callable[[Any], None]:
    """Returns what makes a table in the target, unless it is there; it is given the session of the load's driver.

    Args:
        ends: source and target.
        table: the table.
        catalogue: reads the target's tables.

    Raises:
        SourceError: the source does not answer.
        CatalogueError: MariaDB has no one type for all values of a column.
    """
    if not is_mariadb(ends.target):
        return partial(make_table, ends=ends, table=table)
    from kainite.replicate.mariadb_preparation import make_tables, table_written

    statement = table_written(ends, table, catalogue())

    def make(connection: Any) -> None:
        if statement and not has_table(connection, table.place):
            list(make_tables(connection, {table.full_name: statement}))

    return make


def publish(ends: ReplicaEnds, table: ReplicaTable) -> None:
    """Adds a table to the publication, unless it is there.

    Raises:
        SourceError: the source refused; the message has the statement.
    """
    name = ends.source.publication
    with source_session(ends.source.url) as source:
        if any(one.place == table.place for one in published(source, name)):
            return
        statement = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(
            sql.Identifier(name), sql.Identifier(*table.place)
        )
        try:
            source.execute(statement)
        except psycopg.Error as error:
            raise SourceError(f"{' '.join(str(error).split())}: let the publication's owner execute"
                              f" {statement.as_string(source)}; then start again") from None  # fmt: skip


def _unless_parent_is_missing(connection: psycopg.Connection, statement: str) -> None:
    try:
        with connection.transaction():
            connection.execute(statement.encode())
    except errors.UndefinedTable:
        return
