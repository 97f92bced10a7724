"""Asks a MariaDB or MySQL target whether the apply job's role may do its work there, before the job starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pymysql
from pymysql.cursors import DictCursor

from kainite.base.errors import TargetError, TargetUnavailableError
from kainite.base.redaction import redacted
from kainite.base.words import counted
from kainite.doctor.clocks import clock_finding, timed
from kainite.doctor.finding import DoctorFinding, warned, well, wrong
from kainite.settings import TargetCommit
from kainite.targets.mariadb.address import server_of
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.grants import TableGrant, grants_of, lacking
from kainite.uow.canonical import canonical_of, is_opaque
from kainite.uow.catalogue.tables import Table
from kainite_spark.targets.mariadb import ledger
from kainite_spark.targets.mariadb.prepared import require_preparing
from kainite_spark.targets.mariadb.present_tables import why_not_transactional
from kainite_spark.targets.mariadb.rendering import quoted, table_name
from kainite_spark.targets.opener import TargetRequest

_AREA: Final = "target"
_OF_LOADS: Final = ("kainite_load", "kainite_load_table")
_WRITTEN_OF_LOADS: Final = {"kainite_load_table": ("UPDATE",), "kainite_held_delta": ("INSERT",)}
"""What the apply job writes of tables that are loaded by themselves."""
_WANTED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")

_SERVER: Final = """
    SELECT CURRENT_USER() AS role, @@global.read_only AS read_only, @@global.binlog_format AS format,
           @@global.log_bin AS logs, UNIX_TIMESTAMP(SYSDATE(6)) AS now"""
_TABLES: Final = "SELECT table_name AS name, engine AS engine FROM information_schema.tables WHERE table_schema = %s"


def look_at_database(request: TargetRequest) -> Iterator[DoctorFinding]:
    """Yields what is found of the role's rights, table by table, and of the server.

    Raises:
        TargetUnavailableError: the server does not answer.
    """
    assert request.catalogue is not None, "a database has a catalogue"
    tables = list(request.catalogue.tables.values())
    try:
        with closing(connect(request.url)) as connection:
            [server], ours = timed(lambda: _rows(connection, _SERVER))
            grants = grants_of(line for row in _rows(connection, "SHOW GRANTS") for line in row.values())
            yield from _server(server)
            if request.apply.commit is TargetCommit.ATOMIC:
                yield from _preparing(connection)
            yield from _own_tables(connection, server_of(request.url).database, server["role"], grants)
            yield from _tables(connection, tables, server["role"], grants)
            yield clock_finding("the target", float(server["now"]), ours)
    except pymysql.Error as error:
        raise TargetUnavailableError(redacted(" ".join(str(error.args[-1]).split()))) from None


def _server(server: dict[str, Any]) -> Iterator[DoctorFinding]:
    if str(server["read_only"]).upper() not in ("0", "OFF"):
        yield wrong(_AREA, "the server is read-only", "name the primary in target, or SET GLOBAL read_only = OFF")
    if str(server["logs"]).upper() in ("1", "ON") and server["format"] == "STATEMENT":
        yield wrong(_AREA, "binlog_format is STATEMENT, which does not go with READ COMMITTED",
                    "SET GLOBAL binlog_format = 'ROW'")  # fmt: skip


def _preparing(connection: pymysql.connections.Connection) -> Iterator[DoctorFinding]:
    try:
        require_preparing(connection)
    except TargetError as error:
        yield wrong(_AREA, "the server cannot take part in targetCommit=atomic", str(error))
    else:
        yield well(_AREA, "the server keeps what it has prepared, for targetCommit=atomic")


def _own_tables(
    connection: pymysql.connections.Connection, schema: str, role: str, grants: tuple[TableGrant, ...]
) -> Iterator[DoctorFinding]:
    found = {row["name"] for row in _rows(connection, _TABLES, schema)}
    for name in ledger.TABLES:
        rights = lacking(grants, (*_WANTED, *(() if name in found else ("CREATE",))), schema, name)
        if rights:
            yield _lacking(f"{quoted(schema)}.{quoted(name)}", rights, role)
    for name in _OF_LOADS:  # the server refuses the question, too, where the table is not there
        if lacking(grants, ("SELECT",), schema, name):
            yield _lacking(f"{quoted(schema)}.{quoted(name)}", ["SELECT"], role)
    for name, wanted in _WRITTEN_OF_LOADS.items():
        if name in found and (rights := lacking(grants, wanted, schema, name)):
            yield _lacking(f"{quoted(schema)}.{quoted(name)}", rights, role)


def _tables(
    connection: pymysql.connections.Connection, tables: list[Table], role: str, grants: tuple[TableGrant, ...]
) -> Iterator[DoctorFinding]:
    engines = {
        (schema, row["name"]): row["engine"]
        for schema in {table.schema for table in tables}
        for row in _rows(connection, _TABLES, schema)
    }
    done = True
    for table in tables:
        place = table.schema, table.bare_name
        rights = lacking(grants, (*_WANTED, "TRIGGER"), table.schema or "", table.bare_name)
        if place not in engines:
            yield wrong(_AREA, f"the target has no table {table.name}",
                        "CREATE TABLE; or write catalogueFile anew: kainite precedence --write")  # fmt: skip
        elif why := why_not_transactional(table.name, engines[place]):
            yield wrong(_AREA, why, f"ALTER TABLE {table_name(table)} ENGINE = InnoDB")
        if rights:
            yield _lacking(table_name(table), rights, role)
        done = done and place in engines and not rights
        yield from _coarse(table)
    if done:
        yield well(_AREA, f"{role} may {', '.join((*_WANTED, 'TRIGGER'))} on {counted(len(tables), 'table')}")


def _coarse(table: Table) -> Iterator[DoctorFinding]:
    columns = [table.columns[name] for name in table.primary_key]
    if columns and all(is_opaque(canonical_of([column])) for column in columns):
        types = ", ".join(f"{column.name} {column.type}" for column in columns)
        yield warned(_AREA, f"the key of {table.name} ({types}) has a type or collation that Kainite does not compare:"
                     " units of the table wait for each other", "COLLATE utf8mb4_bin")  # fmt: skip


def _lacking(name: str, rights: list[str], role: str) -> DoctorFinding:
    user = "@".join(quoted(part) for part in role.rsplit("@", 1))
    told = ", ".join(rights)
    return wrong(_AREA, f"{role} may not {told} on {name}", f"GRANT {told} ON {name} TO {user}")


def _rows(connection: pymysql.connections.Connection, query: str, *values: object) -> list[dict[str, Any]]:
    with connection.cursor(DictCursor) as cursor:
        cursor.execute(query, values or None)
        return list(cursor.fetchall())
