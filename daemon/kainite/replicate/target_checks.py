"""Looks at a target beside its source: tables, columns, rights, foreign keys, and whether it is empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import psycopg

from kainite.base.errors import CatalogueError
from kainite.replicate import ledger
from kainite.replicate.findings import CheckFinding, fine, some_names, warning, wrong
from kainite.replicate.found_load import FoundLoad
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_ledger import found_load, with_rows
from kainite.replicate.plan import stages_of
from kainite.replicate.tables import ReplicaColumn, ReplicaTable, TableName, described
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.precedence.levels import precedence_map

_INIT: Final = "kainite replicate init --write makes the tables, where the target has none of them"

_RIGHTS: Final = """
    SELECT t.sql, row_security_active(t.sql::regclass),
           ARRAY(SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) AS p
                 WHERE NOT has_table_privilege(t.sql::regclass, p))
    FROM unnest(%s::text[]) AS t (sql)"""
_SCHEMA: Final = "SELECT current_schema(), has_schema_privilege(current_schema(), 'CREATE'), current_user::text"
_EXTENSIONS: Final = "SELECT extname FROM pg_extension"
_ENCODING: Final = "SELECT current_setting('server_encoding')"
_EXCLUSIONS: Final = """
    SELECT conrelid::regclass::text || ' (' || conname || ')' FROM pg_constraint
    WHERE contype = 'x' AND conrelid = ANY(%s::text[]::regclass[])"""


def look_at_target(
    source: psycopg.Connection,
    target: psycopg.Connection,
    tables: Sequence[ReplicaTable],
    catalogue: Catalogue,
    log_partition: str,
) -> Iterator[CheckFinding]:
    """Yields what a target lacks, and what it has.

    Args:
        source, target: sessions with both.
        tables: the tables that the source publishes.
        catalogue: the target's tables.
        log_partition: the log's name in the target.
    """
    there = described(target, [table.place for table in tables])
    yield from _presence(tables, there, catalogue)
    for table in tables:
        if table.place in there:
            yield from _columns(table, there[table.place])
    yield from _environment(source, target)
    places, size = [table.place for table in tables], sum(table.bytes for table in tables)
    yield from look_at_target_alone(target, places, size, catalogue, log_partition)


def look_at_target_alone(
    target: psycopg.Connection, places: Sequence[TableName], size: int, catalogue: Catalogue, log_partition: str
) -> Iterator[CheckFinding]:
    """Yields what a target lacks, and what it has, whatever its source is.

    Args:
        target: a session with it.
        places: its tables that are to be loaded, also those that are missing.
        size: the bytes of the source's tables.
        catalogue: all its tables.
        log_partition: the log's name in the target.
    """
    load = found_load(target, log_partition)
    names = [table.sql for table in described(target, places).values()]
    yield from _role(target)
    yield from _rights(target, names)
    yield from _foreign_keys(catalogue, load)
    for (name,) in target.execute(_EXCLUSIONS, (names,)):
        yield warning("exclusion", f"{name}: any two changes of the table wait for each other")
    yield _emptiness(target, places, size, load, log_partition)


def _role(target: psycopg.Connection) -> Iterator[CheckFinding]:
    row = target.execute(_SCHEMA).fetchone()
    assert row is not None, "a SELECT without FROM has a row"
    schema, may, role = row
    if not may:
        yield wrong("role", f"{role} may not make Kainite's own tables in schema {schema}",
                    f'GRANT CREATE ON SCHEMA {schema or "…"} TO "{role}"')  # fmt: skip


def _presence(
    tables: Sequence[ReplicaTable], there: Mapping[TableName, ReplicaTable], catalogue: Catalogue
) -> Iterator[CheckFinding]:
    missing = [table.full_name for table in tables if table.place not in there]
    if missing:
        yield wrong("tables", f"the target lacks {some_names(missing)}", _INIT)
    elif tables:
        yield fine("tables", f"the target has all {len(tables)}")
    if outside := [name for name, _ in (table.place for table in there.values()) if name not in _schemas(catalogue)]:
        yield wrong("settings", f"targetSchemas leaves out {some_names(sorted(set(outside)))}",
                    f"targetSchemas = {', '.join(sorted({*_schemas(catalogue), *outside}))}")  # fmt: skip


def _schemas(catalogue: Catalogue) -> set[str]:
    return {table.schema or catalogue.default_schema or "" for table in catalogue.tables.values()}


def _columns(source: ReplicaTable, target: ReplicaTable) -> Iterator[CheckFinding]:
    """Yields where the columns of a table differ in what matters to a copy."""
    name, there = source.full_name, {column.name: column for column in target.columns}
    for column in source.copied:
        yield from _column(name, target.sql, column, there.get(column.name))
    copied = {column.name for column in source.copied}
    for column in target.columns:
        if column.name not in copied and column.not_null and not column.generated and not column.identity:
            yield warning("columns", f"{name}.{column.name} is NOT NULL in the target, and nothing comes for it",
                          f'ALTER TABLE {target.sql} ALTER COLUMN "{column.name}" SET DEFAULT …')  # fmt: skip


def _column(table: str, sql: str, source: ReplicaColumn, target: ReplicaColumn | None) -> Iterator[CheckFinding]:
    name = f"{table}.{source.name}"
    if target is None:
        yield wrong(
            "columns", f"the target lacks {name}", f'ALTER TABLE {sql} ADD COLUMN "{source.name}" {source.type}'
        )
    elif target.generated and source.generated:
        yield wrong("columns", f"{name} is published, and computed by the target: such changes fail",
                    "ALTER PUBLICATION … SET (publish_generated_columns = none); none in a column list")  # fmt: skip
    elif target.generated:
        yield wrong("columns", f"{name} is generated in the target alone: its values cannot be written",
                    f'ALTER TABLE {sql} ALTER COLUMN "{source.name}" DROP EXPRESSION')  # fmt: skip
    elif target.type != source.type:
        yield warning("columns", f"{name} is {source.type} in the source and {target.type} in the target: values that"
                      " do not fit are refused, others may be rounded or cut",
                      f'ALTER TABLE {sql} ALTER COLUMN "{source.name}" TYPE {source.type}')  # fmt: skip
    elif target.not_null and not source.not_null:
        yield warning("columns", f"{name} takes NULL in the source alone: a row with one is refused",
                      f'ALTER TABLE {sql} ALTER COLUMN "{source.name}" DROP NOT NULL')  # fmt: skip


def _rights(target: psycopg.Connection, names: Sequence[str]) -> Iterator[CheckFinding]:
    for sql, secured, lacking in target.execute(_RIGHTS, (list(names),)):
        if lacking:
            yield wrong("rights", f"the target's role may not {', '.join(lacking)} on {sql}",
                        f"GRANT {', '.join(lacking)} ON {sql} TO the role of target")  # fmt: skip
        if secured:
            yield wrong("row security", f"{sql} is under row security, where COPY is not possible",
                        "ALTER ROLE … BYPASSRLS")  # fmt: skip


def _environment(source: psycopg.Connection, target: psycopg.Connection) -> Iterator[CheckFinding]:
    here, there = ({row[0] for row in one.execute(_EXTENSIONS)} for one in (source, target))
    for name in sorted(here - there):
        yield warning("extensions", f"the target lacks {name}", f'CREATE EXTENSION "{name}"')
    codes = [row[0] for one in (source, target) for row in one.execute(_ENCODING)]
    if codes[0] != codes[1] and codes[1] != "UTF8":
        yield warning("encoding", f"the source has {codes[0]}, the target {codes[1]}: a text that it lacks is refused",
                      "make the target with ENCODING 'UTF8'")  # fmt: skip


def _foreign_keys(catalogue: Catalogue, load: FoundLoad | None) -> Iterator[CheckFinding]:
    """Yields whether foreign keys leave an order for the rows of a load, and for the changes behind it."""
    if load is not None and load.state is LoadState.PREPARED:
        yield fine("foreign keys", "are made after the rows")
        return
    try:
        stages_of(catalogue)
        precedence_map(catalogue)
    except CatalogueError as error:
        yield wrong("foreign keys", str(error), "see there")
    else:
        yield fine("foreign keys", "parents are loaded before children")


def _emptiness(
    target: psycopg.Connection, places: Sequence[TableName], size: int, load: FoundLoad | None, log_partition: str
) -> CheckFinding:
    if load is not None and load.state is not LoadState.PREPARED:
        told = {
            LoadState.LOADING: "a load was begun; it goes on, or begins anew",
            LoadState.LIVE: "is live",
            LoadState.CUT_OVER: "the target was cut over: nothing is loaded or applied any more",
        }
        return fine("rows", told[load.state])
    known = set()
    if load is not None:
        known = {(schema, name) for schema, name, *_ in target.execute(ledger.POSITIONS, (log_partition,))}
    full = [".".join(name) for name in with_rows(target, [place for place in places if place not in known])]
    if full:
        return wrong("rows", f"the target is not empty: {some_names(full)}", f"TRUNCATE {', '.join(full)}")
    return fine("rows", f"the target is empty; it needs about {size / 2**30:.2f} GiB of disk, indexes on top, and as"
                " much WAL meanwhile")  # fmt: skip
