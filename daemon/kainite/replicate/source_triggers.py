"""Tells which triggers of a source its MariaDB target lacks, at a cut-over.

MariaDB has no way to switch a trigger off: those of a replica were dropped before its load, or never made. Whoever
writes in the target after the cut-over may need them. Triggers are compared by their tables and names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import psycopg
import pymysql

from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_point import source_catalogue
from kainite.replicate.findings import CheckFinding, some_names, warning
from kainite.targets.mariadb.rows import rows_of
from kainite.uow.catalogue.tables import Catalogue

_OF_POSTGRESQL: Final = """
    SELECT DISTINCT n.nspname || '.' || c.relname, t.tgname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_publication_tables p ON p.pubname = %s AND p.schemaname = n.nspname AND p.tablename = c.relname
    WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' ORDER BY 1, 2"""
_OF_MARIADB: Final = """
    SELECT event_object_table, trigger_name FROM information_schema.triggers WHERE event_object_schema = %s
    ORDER BY 1, 2"""


def triggers_of_postgresql(source: psycopg.Connection, publication: str) -> list[tuple[str, str]]:
    """Returns the triggers of published tables: the table, as changes name it, and the trigger's name."""
    return source.execute(_OF_POSTGRESQL, (publication,)).fetchall()


def triggers_of_binlog(ends: BinlogEnds) -> list[tuple[str, str]]:
    """Returns the triggers of the tables that are read, as :func:`triggers_of_postgresql`; raises SourceError.

    The source's user sees those of tables for which it has the right TRIGGER.
    """
    with source_catalogue(ends) as (source, database):
        found = [(str(table), str(name)) for table, name in source.rows(_OF_MARIADB, [database])]
    return [one for one in found if not ends.source.tables or one[0] in ends.source.tables]


def lacking_triggers(
    target: pymysql.connections.Connection, catalogue: Catalogue, triggers: Sequence[tuple[str, str]]
) -> list[str]:
    """Returns which of a source's triggers a target lacks, as ``table: trigger``.

    Args:
        target: a session with the target.
        catalogue: its tables; triggers of others do not matter.
        triggers: the source's.

    Raises:
        pymysql.Error: the target does not answer.
    """
    lacking = []
    for name, trigger in triggers:
        table = catalogue.find(name)
        if table is None:
            continue
        schema = table.schema or catalogue.default_schema or ""
        there = {(str(one), str(other)) for one, other in rows_of(target, _OF_MARIADB, schema)}
        if (table.bare_name, trigger) not in there:
            lacking.append(f"{name}: {trigger}")
    return lacking


def look_at_triggers(lacking: Sequence[str]) -> Iterator[CheckFinding]:
    """Yields that a target lacks triggers of its source."""
    if lacking:
        yield warning("triggers", f"the target lacks triggers of the source: {some_names(lacking)}",
                      "CREATE TRIGGER behind the cut-over, before anybody writes there, if they are needed"
                      )  # fmt: skip
