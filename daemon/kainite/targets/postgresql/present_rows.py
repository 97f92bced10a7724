"""Asks PostgreSQL for rows by their keys, in a read-only transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Final

import psycopg
from psycopg import sql

from kainite.base.errors import TargetUnavailableError
from kainite.base.redaction import redacted, redacted_url
from kainite.targets.postgresql.address import libpq_url
from kainite.targets.postgresql.connection import connect
from kainite.targets.present_row import LIMIT_S, PresentRow, RowAsked, as_text, names_of

_COLUMNS: Final = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"

_ROWS: Final = sql.SQL(
    "SELECT ARRAY(SELECT ARRAY[j.key, j.value] FROM json_each_text(to_json(t)) AS j) FROM {} AS t WHERE {} LIMIT 2"
)


def present_rows(url: str, asked: Sequence[RowAsked]) -> tuple[PresentRow | None, ...]:
    """Returns the rows; as :data:`kainite.targets.present_row.PresentRowReader`."""
    try:
        with closing(connect(libpq_url(url), "kainite uow show")) as connection, connection.transaction():
            connection.execute("SET TRANSACTION READ ONLY")
            connection.execute(f"SET LOCAL statement_timeout = '{LIMIT_S}s'")
            connection.execute("SET LOCAL search_path TO DEFAULT")
            return tuple(_row(connection, one) for one in asked)
    except psycopg.Error as error:
        raise TargetUnavailableError(f"target {redacted_url(url)}: {redacted(str(error).strip())}") from error


def _row(connection: psycopg.Connection, asked: RowAsked) -> PresentRow | None:
    name = _name(connection, asked.table)
    if name is None:
        return None
    known = {str(row[0]) for row in connection.execute(_COLUMNS, (name.as_string(connection),))}
    if not asked.key.keys() <= known:
        return None
    same = sql.SQL(" AND ").join(
        sql.SQL("t.{} IS NULL" if value is None else "t.{} = %s").format(sql.Identifier(column))
        for column, value in asked.key.items()
    )
    values = [as_text(value) for value in asked.key.values() if value is not None]
    try:
        with connection.transaction():  # a savepoint: a value that its column cannot take spoils no other look
            found = connection.execute(_ROWS.format(name, same), values).fetchall()
    except psycopg.DataError:
        return None
    return dict(found[0][0]) if len(found) == 1 else None


def _name(connection: psycopg.Connection, table: str) -> sql.Identifier | None:
    for parts in names_of(table):
        name = sql.Identifier(*parts)
        row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name.as_string(connection),)).fetchone()
        if row is not None and row[0]:
            return name
    return None
