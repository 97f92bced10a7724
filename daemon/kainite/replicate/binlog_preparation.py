"""Looks whether a load from MariaDB may begin, and makes what can be made: ``kainite replicate init``.

:func:`look_at_binlog` changes nothing. :func:`write_offset` makes the offset file, which begins at the end of the
binlog, where there is none and the target has no load: what commits from then on is extracted. A PostgreSQL target's
tables are made by hand: their types are a choice. Those of MariaDB are made as the source has them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final

import psycopg

from kainite.base.errors import KainiteError, SourceError
from kainite.capture.mysql.silent_actions import silent_actions
from kainite.capture.mysql.snapshot_tables import INNODB, SnapshotTable, of_other_engines, snapshot_tables
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.source_checks import WANTED, check_filters, wrong_settings
from kainite.extract.offsets.place import Place
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_plan import PairedTable, paired_tables
from kainite.replicate.binlog_types import dates_of, doubts_of
from kainite.replicate.findings import CheckFinding, fine, some_names, warning, wrong
from kainite.replicate.load_target import load_in, load_session
from kainite.replicate.mariadb_checks import look_at_mariadb_target
from kainite.replicate.mariadb_preparation import doubts_of_mariadb, make_tables, source_statements, sql_names
from kainite.replicate.mariadb_target_session import mariadb_session, sql_name
from kainite.replicate.preparation import target_catalogue
from kainite.replicate.settings_checks import BYTES_A_SECOND, look_between
from kainite.replicate.target_checks import look_at_target_alone
from kainite.settings import Settings
from kainite.targets.mariadb.grants import grants_of, lacking
from kainite.uow.catalogue.tables import Catalogue

_NAME: Final = "kainite replicate"
_PAGE: Final = "docs/replicate.md, *From MariaDB*"
_RETENTION: Final = ("binlog_expire_logs_seconds", "expire_logs_days")
_MARGIN: Final = 4


def look_at_binlog(configured: Settings, ends: BinlogEnds) -> list[CheckFinding]:
    """Returns the list of what was found at both sides, and between them.

    Raises:
        SourceError: the source does not answer.
        TargetUnavailableError: the target does not answer.
    """
    catalogue = target_catalogue(configured, ends)
    with closing(MysqlSourceCatalogue(ends.source.url)) as source, load_session(ends.target, _NAME) as target:
        database = str(source.value("SELECT database()"))
        tables = snapshot_tables(source, database, ends.source.tables)
        size = sum(table.bytes for table in tables)
        pairs, missing = paired_tables(tables, catalogue)
        places = [pair.place for pair in pairs]
        found = [
            *_server(source, database),
            *_tables(source, database, ends.source.tables, tables),
            *_rights(source, database),
            _retention(source, size),
            *_cascades(source, database, pairs),
        ]
        if isinstance(target, psycopg.Connection):
            found += _pairs(pairs, missing, catalogue)
            found += look_at_target_alone(target, places, size, catalogue, ends.log_partition)
        else:
            lacking = [table for table in tables if table.name in missing]
            found += _pairs_in_mariadb(pairs, source_statements(source, lacking), catalogue)
            found += look_at_mariadb_target(target, places, size, catalogue, ends.log_partition)
        return [*found, *look_between(configured, size, _begin(source))]


def write_offset(ends: BinlogEnds) -> Iterator[str]:
    """Makes the offset file where it is missing; yields what was done.

    Raises:
        SourceError: the source does not answer or has no binlog, or the target has been loaded.
        TargetUnavailableError: the target does not answer.
    """
    file = ends.offsets
    if file.path.exists():
        return
    with load_session(ends.target, _NAME) as target:
        load = load_in(target, ends.log_partition)
    if load is not None and load.position is not None:
        raise SourceError(f"offset file {file.path} is missing, and the target has been loaded: put a copy back")
    with closing(MysqlSourceCatalogue(ends.source.url)) as source:
        status = source.rows("SHOW MASTER STATUS")
    if not status:
        raise SourceError("the source's server has no binlog: start it with log_bin = binlog")
    name, position = str(status[0][0]), int(status[0][1])
    with file.locked():
        file.create(Place({"file": name, "position": position, "number": 0}))
    yield f"made offset file {file.path}, which begins at {name}:{position}"


def write_tables_of_mariadb(configured: Settings, ends: BinlogEnds) -> Iterator[str]:
    """Makes the tables that a MariaDB target lacks, as the source has them; yields what was done.

    Raises:
        SourceError: the source does not answer.
        TargetUnavailableError: the target does not answer.
        CatalogueError: the target refused a table.
    """
    catalogue = target_catalogue(configured, ends)
    with closing(MysqlSourceCatalogue(ends.source.url)) as source, mariadb_session(ends.target) as target:
        tables = snapshot_tables(source, str(source.value("SELECT database()")), ends.source.tables)
        missing = paired_tables(tables, catalogue)[1]
        yield from make_tables(target, source_statements(source, [one for one in tables if one.name in missing]))


def _server(source: MysqlSourceCatalogue, database: str) -> Iterator[CheckFinding]:
    if not source.is_mariadb:
        yield wrong("server", "the source is no MariaDB: MySQL does not say where a snapshot stands in its binlog",
                    "docs/extract.md, *MariaDB and MySQL*, tells how to begin with a copy made by hand")  # fmt: skip
    causes = list(wrong_settings(source.variables(*WANTED)))
    for cause, mend in causes:
        yield wrong("binlog", cause, mend)
    status = source.rows("SHOW MASTER STATUS")
    try:
        if status:
            check_filters(database, str(status[0][2] or ""), str(status[0][3] or ""))
    except SourceError as error:
        yield wrong("binlog", str(error), "binlog_do_db and binlog_ignore_db in the server's settings file")
        return
    if not causes:
        yield fine("binlog", "has whole rows, with the names of columns")


def _tables(
    source: MysqlSourceCatalogue, database: str, only: Collection[str], tables: Sequence[SnapshotTable]
) -> Iterator[CheckFinding]:
    there = {table.name for table in tables}
    if missing := sorted(set(only) - there):
        yield wrong("tables", f"the source has no table {some_names(missing)}", "--table in extractorName")
    if not tables:
        yield wrong("tables", f"database {database} has no table", "another database in --source")
    problems = {
        name: problem
        for name, table in sorted(source.tables(database, only).items())
        if name in there and (problem := table.problem())
    }
    for name, problem in problems.items():
        yield wrong("tables", f"{name}: {problem}", "or name the tables that are read with --table in extractorName")
    for name in of_other_engines(source, database, only):
        if name not in problems:
            yield wrong("tables", f"{name} is not InnoDB's: a snapshot of it has no place in the binlog", INNODB)
    if tables and not problems and not missing:
        yield fine("tables", f"the source has {len(tables)}, each with a primary key and transactions")


def _rights(source: MysqlSourceCatalogue, database: str) -> Iterator[CheckFinding]:
    grants = grants_of(str(line) for (line,) in source.rows("SHOW GRANTS"))
    if lacking(grants, ["REPLICATION SLAVE"], "", ""):
        yield wrong("rights", "the source's user may not read the binlog",
                    "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO the user")  # fmt: skip
    if lacking(grants, ["SELECT"], database, ""):
        yield warning("rights", f"the source's user has no SELECT on all of {database}",
                      f"GRANT SELECT ON {database}.* TO the user")  # fmt: skip
    if lacking(grants, ["RELOAD"], "", ""):
        yield warning("rights", "the source's user may not keep commits out for an instant: where very much commits,"
                      " several sessions may find no common point",
                      "GRANT RELOAD ON *.* TO the user")  # fmt: skip


def _retention(source: MysqlSourceCatalogue, size: int) -> CheckFinding:
    found = source.variables(*_RETENTION)
    seconds = float(found.get(_RETENTION[0], 0) or 0) or 86400 * float(found.get(_RETENTION[1], 0) or 0)
    if not seconds:
        return fine("retention", "the source keeps its binlog until somebody removes it")
    told = f"the source keeps its binlog for {seconds / 3600:.1f} h, read or not"
    if seconds < _MARGIN * size / BYTES_A_SECOND:
        return wrong("retention", f"{told}, and the load takes about {size / BYTES_A_SECOND / 3600:.1f} h",
                     f"SET GLOBAL {_RETENTION[0]} = {int(2 * _MARGIN * size / BYTES_A_SECOND)}")  # fmt: skip
    return fine("retention", f"{told}: an extraction that stands still for longer loses changes, and is told")


def _pairs(pairs: Sequence[PairedTable], missing: Sequence[str], target: Catalogue) -> Iterator[CheckFinding]:
    if missing:
        yield wrong("tables", f"the target lacks {some_names(missing)}", f"make them by hand: {_PAGE}, has the types")
    elif pairs:
        yield fine("tables", f"the target has all {len(pairs)}")
    for pair in pairs:
        for problem in pair.problems:
            yield wrong("columns", problem, f"ALTER TABLE {'.'.join(pair.place)} …")
        for doubt in doubts_of(pair):
            yield warning("columns", doubt, f"ALTER TABLE {'.'.join(pair.place)} …; {_PAGE}, has the types")
    if dates := [name for pair in pairs for name in dates_of(pair)]:
        yield warning("dates", f"a row with 0000-00-00, or a date without a day, is refused: {some_names(dates)}",
                      "UPDATE such rows of the source first, where it has some")  # fmt: skip
    taken = {pair.target.name for pair in pairs}
    if pairs and (keyless := sorted(name for name in taken if not target.tables[name].primary_key)):
        yield wrong("tables", f"the target's {some_names(keyless)} has no primary key", "ALTER TABLE … ADD PRIMARY KEY")


def _pairs_in_mariadb(
    pairs: Sequence[PairedTable], missing: Mapping[str, str], target: Catalogue
) -> Iterator[CheckFinding]:
    for name, sql in missing.items():
        yield wrong(
            "tables", f"the target lacks {name}", f"kainite replicate init --write, or: {' '.join(sql.split())}"
        )
    if pairs and not missing:
        yield fine("tables", f"the target has all {len(pairs)}")
    for pair in pairs:
        table = sql_name(*pair.place)
        for problem in pair.problems:
            yield wrong("columns", problem, f"ALTER TABLE {table} …")
        for doubt in doubts_of_mariadb(pair):
            yield warning("columns", doubt, f"ALTER TABLE {table} MODIFY …")
        if not pair.target.primary_key:
            yield wrong("tables", f"the target's {'.'.join(pair.place)} has no primary key",
                        f"ALTER TABLE {table} ADD PRIMARY KEY ({sql_names(pair.source.key)})")  # fmt: skip


def _cascades(source: MysqlSourceCatalogue, database: str, pairs: Sequence[PairedTable]) -> Iterator[CheckFinding]:
    """Yields foreign keys that change rows of which the binlog says nothing, where the target's table has none."""
    targets: Mapping[str, PairedTable] = {pair.source.name: pair for pair in pairs}
    for one in silent_actions(source, database):
        if one.child in targets and not targets[one.child].target.foreign_keys:
            yield warning("foreign keys", f"{one} changes rows in the source of which its binlog says nothing",
                          "ALTER TABLE … ADD FOREIGN KEY with the same actions in the target")  # fmt: skip


def _begin(source: MysqlSourceCatalogue) -> str:
    try:
        status = source.rows("SHOW MASTER STATUS")
    except KainiteError:
        status = []
    file, position = (str(status[0][0]), int(status[0][1])) if status else ("…", 4)
    return f'{{"file":"{file}","position":{position},"number":0}}'
