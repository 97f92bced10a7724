"""Looks at a MariaDB target: server, rights, tables, keys, foreign keys, and whether it is empty."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import pymysql

from kainite.base.errors import CatalogueError
from kainite.replicate import mariadb_ledger as ledger
from kainite.replicate.findings import CheckFinding, fine, some_names, warning, wrong
from kainite.replicate.found_load import FoundLoad
from kainite.replicate.ledger import LoadState
from kainite.replicate.mariadb_load_ledger import found_mariadb_load
from kainite.replicate.mariadb_table_ledger import TABLES as OWN_TABLES
from kainite.replicate.mariadb_target_session import mariadb_tables_with_rows, sql_name
from kainite.replicate.mariadb_types import COLLATION
from kainite.replicate.tables import TableName
from kainite.targets.mariadb.grants import grants_of, lacking
from kainite.targets.mariadb.rows import rows_if_there, rows_of
from kainite.targets.mariadb.type_families import is_text
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.precedence.levels import precedence_map

LEAST_PACKET: Final = 4 * 2**20
"""Bytes of ``max_allowed_packet`` that inserts of many rows need (:mod:`kainite_spark.targets.mariadb.rendering`)."""

_RIGHTS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRIGGER", "DROP")
_OWN_RIGHTS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE")
_SERVER: Final = """
    SELECT VERSION(), @@global.read_only, @@max_allowed_packet, @@global.log_bin, @@global.binlog_format, @@datadir,
           CURRENT_USER(), DATABASE()"""
_CLUSTER: Final = "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'"
_ENGINES: Final = "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = %s"
_COLLATIONS: Final = """
    SELECT s.column_name, c.collation_name, c.column_type FROM information_schema.statistics s
    JOIN information_schema.columns c USING (table_schema, table_name, column_name)
    WHERE table_schema = %s AND table_name = %s AND s.non_unique = 0 AND c.collation_name IS NOT NULL
    GROUP BY 1, 2, 3 ORDER BY 1"""


def look_at_mariadb_target(
    target: pymysql.connections.Connection,
    places: Sequence[TableName],
    size: int,
    catalogue: Catalogue,
    log_partition: str,
) -> Iterator[CheckFinding]:
    """Yields what a target lacks, and what it has, whatever its source is.

    Args:
        target: a session with it.
        places: its tables that are to be loaded, and exist.
        size: the bytes of the source's tables.
        catalogue: all its tables.
        log_partition: the log's name in the target.
    """
    version, read_only, packet, logs, binlog, folder, role, database = rows_of(target, _SERVER)[0]
    yield from _server(target, str(version), str(read_only), int(packet))
    if str(logs).upper() in ("1", "ON") and binlog == "STATEMENT":
        yield wrong("server", "binlog_format is STATEMENT, which does not go with READ COMMITTED",
                    "SET GLOBAL binlog_format = 'ROW'")  # fmt: skip
    yield from _rights(target, places, str(role), str(database))
    yield from _engines(target, places)
    for place in places:
        yield from _collations(target, place)
    yield from _foreign_keys(catalogue, places)
    load = found_mariadb_load(target, log_partition)
    yield _emptiness(target, places, size, load, log_partition, str(folder))


def _server(
    target: pymysql.connections.Connection, version: str, read_only: str, packet: int
) -> Iterator[CheckFinding]:
    if "MariaDB" not in version:
        yield wrong("server", f"the target is no MariaDB ({version}): a load was not tried with MySQL",
                    "a target of MariaDB; or copy by hand, and only apply")  # fmt: skip
    if read_only.upper() not in ("0", "OFF"):
        yield wrong("server", "the target is read-only", "name the primary in target, or SET GLOBAL read_only = OFF")
    if any(str(value).upper() == "ON" for _, value in rows_of(target, _CLUSTER)):
        yield wrong("server", "the target is a node of a Galera cluster: the lock that keeps two loads apart holds in"
                    " one node alone", "load a server that is no node, and let the cluster replicate it")  # fmt: skip
    if packet < LEAST_PACKET:
        yield wrong("max_allowed_packet", f"is {packet}, and an INSERT of many rows has up to {LEAST_PACKET} bytes",
                    f"SET GLOBAL max_allowed_packet = {4 * LEAST_PACKET}")  # fmt: skip
    else:
        yield fine("max_allowed_packet", f"is {packet}: a row that is longer, as SQL, is refused")
    yield fine("sql_mode", "Kainite's sessions are strict, whatever the server's is; local_infile is not needed")


def _rights(
    target: pymysql.connections.Connection, places: Collection[TableName], role: str, database: str
) -> Iterator[CheckFinding]:
    grants = grants_of(str(line) for (line,) in rows_of(target, "SHOW GRANTS"))
    user = "@".join(sql_name(part) for part in role.rsplit("@", 1))
    own = sorted(
        {right for name in (*ledger.TABLES, *OWN_TABLES) for right in lacking(grants, _OWN_RIGHTS, database, name)}
    )
    if own:
        yield wrong("rights", f"{role} may not {', '.join(own)} Kainite's own tables in {database}",
                    f"GRANT {', '.join(own)} ON {sql_name(database)}.* TO {user}")  # fmt: skip
    for place in places:
        if rights := lacking(grants, _RIGHTS, *place):
            yield wrong("rights", f"{role} may not {', '.join(rights)} on {'.'.join(place)}",
                        f"GRANT {', '.join(rights)} ON {sql_name(*place)} TO {user}")  # fmt: skip


def _engines(target: pymysql.connections.Connection, places: Collection[TableName]) -> Iterator[CheckFinding]:
    for schema in sorted({schema for schema, _ in places}):
        found = dict(rows_of(target, _ENGINES, schema))
        for one, name in places:
            if one == schema and (engine := found.get(name)) != "InnoDB":
                yield wrong("engine", f"{schema}.{name} has the storage engine {engine}: a range could not be copied"
                            " whole", f"ALTER TABLE {sql_name(schema, name)} ENGINE = InnoDB")  # fmt: skip


def _collations(target: pymysql.connections.Connection, place: TableName) -> Iterator[CheckFinding]:
    """Yields keys in which texts are one that a source tells apart."""
    for column, collation, kind in rows_of(target, _COLLATIONS, *place):
        if is_text(kind) and not str(collation).endswith("_nopad_bin"):
            same = "spaces at the end" if str(collation).endswith("_bin") else "case, accents or spaces at the end"
            yield warning("collation", f"{'.'.join(place)}.{column} is part of a key, and {collation} takes texts for"
                          f" equal that differ in {same}: the second such row is refused",
                          f"ALTER TABLE {sql_name(*place)} MODIFY {sql_name(column)} {kind} … COLLATE {COLLATION}"
                          )  # fmt: skip


def _foreign_keys(catalogue: Catalogue, places: Collection[TableName]) -> Iterator[CheckFinding]:
    """Yields whether foreign keys leave an order for changes; rows are copied without one."""
    try:
        precedence_map(catalogue)
    except CatalogueError as error:
        yield wrong("foreign keys", str(error), "see there")
    else:
        yield fine("foreign keys", "are not checked while rows are copied, and looked at behind them")
    names = {(table.schema or catalogue.default_schema or "", table.bare_name): table
             for table in catalogue.tables.values()}  # fmt: skip
    loaded = {names[place].name for place in places if place in names}
    for name in sorted(loaded):
        for key in catalogue.tables[name].foreign_keys:
            if key.parent not in loaded:
                yield warning("foreign keys", f"{key.name} of {name} names {key.parent}, which is not loaded: rows"
                              " without a parent there end the load", f"ALTER TABLE … DROP FOREIGN KEY {key.name}"
                              )  # fmt: skip


def _emptiness(
    target: pymysql.connections.Connection,
    places: Sequence[TableName],
    size: int,
    load: FoundLoad | None,
    log_partition: str,
    folder: str,
) -> CheckFinding:
    if load is not None:
        told = {
            LoadState.LIVE: "is live",
            LoadState.CUT_OVER: "the target was cut over: nothing is loaded or applied any more",
        }
        return fine("rows", told.get(load.state, "a load was begun; it goes on, or begins anew"))
    known = {(schema, name) for schema, name, _ in rows_if_there(target, ledger.POSITIONS, log_partition)}
    full = mariadb_tables_with_rows(target, [place for place in places if place not in known])
    if full:
        names = some_names([".".join(name) for name in full])
        return wrong("rows", f"the target is not empty: {names}",
                     "; ".join(f"TRUNCATE TABLE {sql_name(*name)}" for name in full))  # fmt: skip
    return fine("rows", f"the target is empty; it needs about {size / 2**30:.2f} GiB of disk in {folder}, indexes on"
                " top, and as much again where it writes a binlog. It cannot be asked how much there is")  # fmt: skip
