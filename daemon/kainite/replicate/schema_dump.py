"""Takes a source's schema by ``pg_dump``: what makes the tables, and what follows behind the rows.

Tables, types and functions come first (``pre-data``). Keys, indexes, foreign keys, triggers and the like
(``post-data``) are cheaper, and free of order, when the rows are there: each becomes a step of the load. Stages keep
the order in which they need each other:

======  ============================================================
stage   statements
======  ============================================================
+0      primary and unique keys, exclusion constraints, indexes
+1      indexes of partitions are attached to those of the whole
+2      foreign keys: all rows and all keys are there
+3      everything else: triggers, rules, statistics, policies
======  ============================================================

A foreign key needs no NOT VALID: nobody else writes to a target that is not live, so the lock of the check keeps nobody
waiting. Left out are tables that are not published, foreign keys to them, views, publications and subscriptions.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kainite.base.errors import SettingsError, SourceError
from kainite.base.redaction import redacted
from kainite.replicate.ledger import FIRST_STATEMENT, STATEMENT_STAGE, LoadStep, StatementStep

_HEADER: Final = re.compile(
    r"^--\n-- Name: (?P<name>.*?); Type: (?P<type>[^;]*); Schema: (?P<schema>[^;]*); Owner: [^\n]*\n--\n", re.MULTILINE
)
# psql's own commands, and settings that another version may not know.
_NOT_SQL: Final = re.compile(
    r"^(?:\\.*|SET (?:statement|lock|idle_in_transaction_session|transaction)_timeout = .*|SET row_security = .*)$",
    re.MULTILINE,
)
_STAGES: Final = {"CONSTRAINT": 0, "INDEX": 0, "INDEX ATTACH": 1, "FK CONSTRAINT": 2}
_FOREIGN_KEYS: Final = 2
_REST: Final = 3
_KEYS: Final = ("INDEX", "INDEX ATTACH")

# A published leaf needs the tables that it is a part of.
_LEFT_OUT: Final = """
    WITH RECURSIVE pairs (one, other) AS (
        SELECT inhrelid, inhparent FROM pg_inherits
        UNION ALL SELECT inhparent, inhrelid FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE c.relispartition
    ), wanted (oid) AS (
        SELECT sql::regclass::oid FROM unnest(%s::text[]) AS t (sql)
        UNION SELECT pairs.other FROM wanted JOIN pairs ON pairs.one = wanted.oid
    )
    SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't' AND n.nspname <> 'information_schema'
      AND n.nspname NOT LIKE 'pg\\_%%' AND c.oid NOT IN (SELECT oid FROM wanted)"""
_FOREIGN_KEYS_OUT: Final = """
    SELECT n.nspname, c.relname || ' ' || k.conname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE k.contype = 'f' AND k.confrelid = ANY(%s::text[]::regclass[])"""


@dataclass(frozen=True, slots=True)
class SchemaDump:
    """A source's schema.

    Attributes:
        script: makes tables, types and functions.
        steps: what follows behind the rows.
        left_out: foreign keys to tables that are not published, as ``schema.table constraint``.
    """

    script: str
    steps: tuple[LoadStep, ...]
    left_out: tuple[str, ...]


def dump_schema(connection: psycopg.Connection, url: str, tables: Collection[str]) -> SchemaDump:
    """Returns the schema of the published tables.

    Args:
        connection: a session with the source.
        url: the source.
        tables: the published tables, quoted and with their schemas.

    Raises:
        SettingsError: pg_dump is not installed.
        SourceError: pg_dump refused, for example because it is older than the server.
    """
    out = [name for (name,) in connection.execute(_LEFT_OUT, (list(tables),))]
    others = [f"--exclude-table={name}" for name in out]
    orphans = {(schema, tag) for schema, tag in connection.execute(_FOREIGN_KEYS_OUT, (out,))}
    with ThreadPoolExecutor(2) as pool:
        before, behind = pool.map(lambda section: _pg_dump(url, section, others), ("pre-data", "post-data"))
    entries = list(entries_of(behind))
    steps = (entry for entry in entries if (entry.schema, entry.name) not in orphans)
    left_out = tuple(f"{entry.schema}.{entry.name}" for entry in entries if (entry.schema, entry.name) in orphans)
    return SchemaDump(plain_sql(before), tuple(_steps(steps)), left_out)


def dump_table(url: str, table: str) -> tuple[str, tuple[str, ...]]:
    """Returns what makes one table with its keys, indexes and triggers, and beside it its foreign keys.

    Args:
        url: the source.
        table: the table, quoted and with its schema.

    Raises:
        SettingsError, SourceError: as :func:`dump_schema`.
    """
    only = (f"--table={table}",)
    entries = list(entries_of(_pg_dump(url, "post-data", only)))
    foreign_keys = tuple(entry.sql for entry in entries if _STAGES.get(entry.kind, _REST) == _FOREIGN_KEYS)
    others = sorted((_STAGES.get(entry.kind, _REST), entry.sql) for entry in entries if entry.sql not in foreign_keys)
    return "\n".join((plain_sql(_pg_dump(url, "pre-data", only)), *(sql for _, sql in others))), foreign_keys


@dataclass(frozen=True, slots=True)
class DumpEntry:
    """An object of a dump: its name, kind and schema as the dump's comment has them, and its statements."""

    name: str
    kind: str
    schema: str
    sql: str


def entries_of(dump: str) -> Iterator[DumpEntry]:
    """Yields the objects of a dump; each begins with a comment of its own."""
    headers = list(_HEADER.finditer(dump))
    ends = itertools.chain((header.start() for header in headers[1:]), (len(dump),))
    for header, end in zip(headers, ends, strict=False):
        sql = plain_sql(dump[header.end() : end]).partition("\n--\n-- PostgreSQL database dump complete")[0].strip()
        if sql:
            yield DumpEntry(header["name"], header["type"], header["schema"], sql)


def plain_sql(dump: str) -> str:
    """Returns a dump without what only psql, or only one version of the server, understands."""
    return _NOT_SQL.sub("", dump)


def _steps(entries: Iterator[DumpEntry]) -> Iterator[LoadStep]:
    for number, entry in zip(itertools.count(FIRST_STATEMENT), entries, strict=False):
        stage = STATEMENT_STAGE + _STAGES.get(entry.kind, _REST)
        # An index is named by itself, everything else behind its table.
        table = entry.name if entry.kind in _KEYS else entry.name.partition(" ")[0]
        yield LoadStep(number, stage, entry.schema, table, StatementStep(entry.sql))


def _pg_dump(url: str, section: str, which: Collection[str]) -> str:
    program = shutil.which("pg_dump")
    if program is None:
        raise SettingsError(
            "pg_dump is not installed here: install PostgreSQL's client programs of the source's version or a later one"
            " (Debian: postgresql-client), or make the tables in the target yourself, with all keys"
        )
    given: dict[str, Any] = dict(conninfo_to_dict(url))
    password = given.pop("password", None)
    options = ["--schema-only", "--no-owner", "--no-privileges", "--no-comments", "--no-publications",
               "--no-subscriptions", "--no-security-labels", f"--section={section}"]  # fmt: skip
    done = subprocess.run(
        [program, *options, *which, "--dbname", make_conninfo(**given)],
        env=os.environ | ({} if password is None else {"PGPASSWORD": str(password)}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SourceError(f"pg_dump: {redacted(' '.join(done.stderr.split()))}")
    return str(done.stdout)
