"""Asks MariaDB or MySQL for rows by their keys, in a read-only transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

import pymysql

from kainite.base.errors import TargetUnavailableError
from kainite.base.redaction import redacted, redacted_url
from kainite.targets.mariadb.connection import connect
from kainite.targets.present_row import LIMIT_S, PresentRow, RowAsked, as_text, names_of

_COLUMNS: Final = (
    "SELECT column_name FROM information_schema.columns"
    " WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s ORDER BY ordinal_position"
)


def present_rows(url: str, asked: Sequence[RowAsked]) -> tuple[PresentRow | None, ...]:
    """Returns the rows; as :data:`kainite.targets.present_row.PresentRowReader`."""
    try:
        with closing(connect(url)) as connection, connection.cursor() as cursor:
            cursor.execute(f"SET SESSION lock_wait_timeout = {LIMIT_S}")
            cursor.execute("START TRANSACTION READ ONLY")
            return tuple(_row(cursor, one) for one in asked)
    except pymysql.Error as error:
        raise TargetUnavailableError(f"target {redacted_url(url)}: {redacted(str(error))}") from error


def _row(cursor: Any, asked: RowAsked) -> PresentRow | None:
    for parts in names_of(asked.table):
        schema, name = parts if len(parts) == 2 else (None, parts[0])
        cursor.execute(_COLUMNS, (schema, name))
        if columns := [str(row[0]) for row in cursor.fetchall()]:
            break
    if not asked.key.keys() <= set(columns):
        return None
    shown = ", ".join(f"CAST({_quoted(column)} AS char)" for column in columns)
    same = " AND ".join(f"{_quoted(column)} <=> %s" for column in asked.key)
    values = [None if value is None else as_text(value) for value in asked.key.values()]
    cursor.execute(f"SELECT {shown} FROM {'.'.join(map(_quoted, parts))} WHERE {same} LIMIT 2", values)
    found = cursor.fetchall()
    return dict(zip(columns, found[0], strict=True)) if len(found) == 1 else None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``").replace("%", "%%") + "`"
