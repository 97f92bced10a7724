"""Asks a PostgreSQL target whether the apply job's role may do its work there, before the job starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import psycopg
from psycopg.rows import namedtuple_row

from kainite.base.errors import TargetError, TargetUnavailableError
from kainite.base.redaction import redacted
from kainite.base.words import counted
from kainite.doctor.clocks import clock_finding, timed
from kainite.doctor.finding import DoctorFinding, warned, well, wrong
from kainite.settings import TargetCommit
from kainite.targets.postgresql.address import libpq_url
from kainite.targets.postgresql.connection import connect
from kainite.targets.postgresql.pooling import OWN_POOL, leads_through_pooler
from kainite_spark.targets.opener import TargetRequest
from kainite_spark.targets.postgresql.prepared import require_preparing
from kainite_spark.targets.postgresql.rendering import table_name

_AREA: Final = "target"
_OWN: Final = ("kainite_applied", "kainite_fence", "kainite_log_table")
_WANTED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")

_SERVER: Final = """
    SELECT current_user::text AS role, current_schema()::text AS schema, pg_is_in_recovery() AS standby,
           current_setting('transaction_read_only') = 'on' AS read_only, current_setting('server_encoding') AS encoding,
           coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
           extract(epoch FROM clock_timestamp())::float8 AS now"""
# A table that the role may not even look up is one without any right.
_TABLES: Final = """
    SELECT t.name, to_regclass(t.name) IS NOT NULL AS there,
           coalesce(row_security_active(to_regclass(t.name)::oid), false) AS secured,
           ARRAY(SELECT p FROM unnest(%s::text[]) AS p WHERE NOT has_table_privilege(to_regclass(t.name), p)) AS lacking
    FROM unnest(%s::text[]) AS t (name)"""
_EXCLUSIONS: Final = """
    SELECT conrelid::regclass::text AS name, conname FROM pg_constraint
    WHERE contype = 'x' AND conrelid = ANY(SELECT to_regclass(n)::oid FROM unnest(%s::text[]) AS n)"""


def look_at_database(request: TargetRequest) -> Iterator[DoctorFinding]:
    """Yields what is found of the role's rights, table by table, and of the server.

    Raises:
        TargetUnavailableError: the server does not answer.
    """
    assert request.catalogue is not None, "a database has a catalogue"
    names = [table_name(table) for table in request.catalogue.tables.values()]
    try:
        if leads_through_pooler(lambda: connect(libpq_url(request.url), "kainite doctor")):
            yield warned(_AREA, "it is behind a pooler in transaction mode: what other clients of the pool SET reaches"
                         " transactions of Kainite", OWN_POOL)  # fmt: skip
        with closing(connect(libpq_url(request.url), "kainite doctor")) as connection, connection.transaction():
            connection.execute("SET LOCAL search_path TO DEFAULT")
            [server], ours = timed(lambda: _rows(connection, _SERVER))
            yield from _server(server)
            if request.apply.commit is TargetCommit.ATOMIC:
                yield from _preparing(connection)
            yield from _own_tables(connection, server)
            yield from _tables(connection, names, server.role)
            for row in _rows(connection, _EXCLUSIONS, (names,)):
                yield warned(_AREA, f"{row.name} has the exclusion constraint {row.conname}: changes of the table wait"
                             " for each other")  # fmt: skip
            yield clock_finding("the target", server.now, ours)
    except psycopg.Error as error:
        raise TargetUnavailableError(redacted(" ".join(str(error).split()))) from None


def _server(server: Any) -> Iterator[DoctorFinding]:
    if server.standby:
        yield wrong(_AREA, "the server is a standby, which takes no writes", "name the primary in target")
    elif server.read_only:
        yield wrong(
            _AREA, "transactions are read-only", f'ALTER ROLE "{server.role}" RESET default_transaction_read_only'
        )
    if server.encoding != "UTF8":
        yield warned(_AREA, f"the database's encoding is {server.encoding}: a character that it lacks is refused",
                     "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and copy the tables there")  # fmt: skip
    else:
        yield well(_AREA, "the database's encoding is UTF8")


def _preparing(connection: psycopg.Connection) -> Iterator[DoctorFinding]:
    try:
        require_preparing(connection)
    except TargetError as error:
        yield wrong(_AREA, "max_prepared_transactions is 0", str(error))
    else:
        yield well(_AREA, "the server prepares transactions, for targetCommit=atomic")


def _own_tables(connection: psycopg.Connection, server: Any) -> Iterator[DoctorFinding]:
    found = _rows(connection, _TABLES, (list(_WANTED), list(_OWN)))
    if any(not row.there for row in found) and not server.may_create:
        yield wrong(_AREA, f"{server.role} may not make {', '.join(_OWN)} in schema {server.schema}",
                    f'GRANT CREATE ON SCHEMA {server.schema or "…"} TO "{server.role}"')  # fmt: skip
    for row in found:
        if row.there and row.lacking:
            yield _lacking(row, server.role)


def _tables(connection: psycopg.Connection, names: list[str], role: str) -> Iterator[DoctorFinding]:
    found = _rows(connection, _TABLES, (list(_WANTED), names))
    for row in found:
        if not row.there:
            yield wrong(_AREA, f"the target has no table {row.name}",
                        "CREATE TABLE; or write catalogueFile anew: kainite precedence --write")  # fmt: skip
        elif row.lacking:
            yield _lacking(row, role)
        if row.secured:
            yield wrong(_AREA, f"{row.name} is under row security, which hides rows from {role}",
                        f'ALTER ROLE "{role}" BYPASSRLS, or DISABLE ROW LEVEL SECURITY on the table')  # fmt: skip
    if all(row.there and not row.lacking for row in found):
        yield well(_AREA, f"{role} may {', '.join(_WANTED)} on {counted(len(found), 'table')}")


def _lacking(row: Any, role: str) -> DoctorFinding:
    rights = ", ".join(row.lacking)
    return wrong(_AREA, f"{role} may not {rights} on {row.name}", f'GRANT {rights} ON {row.name} TO "{role}"')


def _rows(connection: psycopg.Connection, query: str, values: tuple[Any, ...] | None = None) -> list[Any]:
    return connection.cursor(row_factory=namedtuple_row).execute(query.encode(), values).fetchall()
