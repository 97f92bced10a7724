"""Looks at a source: settings of the server, rights, slot, publication, and the tables that are published."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import psycopg

from kainite.base.words import counted
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.findings import CheckFinding, fine, some_names, warning, wrong
from kainite.replicate.slot import FoundSlot, found_slot, mend_of, problem_of
from kainite.replicate.standby_checks import look_at_promotion
from kainite.replicate.tables import ReplicaTable

_SLOTS_NEEDED: Final = 1
_GIB: Final = 2**30
_RESTART: Final = "and restart the server"

_SERVER: Final = """
    SELECT current_setting('server_version_num')::int, current_setting('wal_level'),
           current_setting('max_replication_slots')::int, (SELECT count(*) FROM pg_replication_slots),
           current_setting('max_wal_senders')::int, (SELECT count(*) FROM pg_stat_replication),
           current_setting('max_slot_wal_keep_size'), current_user::text,
           (SELECT rolreplication OR rolsuper OR EXISTS (
                SELECT FROM pg_roles r WHERE r.rolname IN ('rds_replication', 'alloydbreplica')
                  AND pg_has_role(current_user, r.oid, 'member'))
            FROM pg_roles WHERE rolname = current_user)"""
_PUBLICATION: Final = """
    SELECT pubinsert AND pubupdate AND pubdelete FROM pg_publication WHERE pubname = %s"""
_RIGHTS: Final = """
    SELECT t.sql, has_table_privilege(t.sql::regclass, 'SELECT'), row_security_active(t.sql::regclass)
    FROM unnest(%s::text[]) AS t (sql)"""
_SILENT: Final = """
    SELECT t.sql, c.relreplident::text FROM unnest(%s::text[]) AS t (sql) JOIN pg_class c ON c.oid = t.sql::regclass
    WHERE c.relreplident = 'n' OR c.relreplident = 'i' AND NOT EXISTS (
        SELECT FROM pg_index i, pg_index p
        WHERE i.indrelid = c.oid AND i.indisreplident AND p.indrelid = c.oid AND p.indisprimary
          AND p.indkey::int2[] <@ i.indkey::int2[])"""


def look_at_source(
    connection: psycopg.Connection, source: SourceSlot, tables: Sequence[ReplicaTable], required: Collection[str]
) -> Iterator[CheckFinding]:
    """Yields what a source lacks, and what it has.

    Args:
        connection: a session with the source.
        source: its slot and publication.
        tables: the tables that are published.
        required: tables, as ``schema.table``, that must be.
    """
    yield from _server(connection)
    slot = found_slot(connection, source.slot)
    yield _slot(slot, source)
    yield from look_at_promotion(connection, source, slot)
    yield _publication(connection, source, tables, required)
    yield from _rights(connection, tables)
    yield from _identities(connection, tables)
    yield from _wholes(tables)


def _server(connection: psycopg.Connection) -> Iterator[CheckFinding]:
    version, level, slots, used, senders, sending, keep, role, may = _row(connection, _SERVER)
    if version < 140000:
        yield warning("source version", f"PostgreSQL {version // 10000}: each range of a load reads the whole table")
    if level != "logical":
        yield wrong("wal_level", f"is {level}", f"ALTER SYSTEM SET wal_level = logical, {_RESTART}")
    else:
        yield fine("wal_level", level)
    if not may:
        yield wrong("role", f"{role} may not replicate", f'ALTER ROLE "{role}" REPLICATION')
    if slots - used < _SLOTS_NEEDED:
        yield wrong("slots", f"{used} of {slots} are in use, and a load needs one more for an instant",
                    f"ALTER SYSTEM SET max_replication_slots = {slots + 4}, {_RESTART}")  # fmt: skip
    if senders - sending < _SLOTS_NEEDED + 1:
        yield wrong("wal senders", f"{sending} of {senders} are in use; a load needs one, the extractor another",
                    f"ALTER SYSTEM SET max_wal_senders = {senders + 4}, {_RESTART}")  # fmt: skip
    if keep == "-1":
        yield warning("WAL", "the slot may hold back WAL without a limit: a source whose extractor stands still"
                      " fills its disk",
                      "watch pg_replication_slots, or ALTER SYSTEM SET max_slot_wal_keep_size")  # fmt: skip
    else:
        yield fine("WAL", f"the slot may hold back {keep}")


def _slot(slot: FoundSlot | None, source: SourceSlot) -> CheckFinding:
    problem = problem_of(slot, source.slot)
    if slot is None or problem is not None:
        return wrong("slot", problem or "", mend_of(slot, source.slot))
    left = "" if slot.left is None else f"; {slot.left / _GIB:.1f} GiB more may be written before it is lost"
    return fine("slot", f"{source.slot} holds back {slot.held / _GIB:.1f} GiB{left}")


def _publication(
    connection: psycopg.Connection, source: SourceSlot, tables: Sequence[ReplicaTable], required: Collection[str]
) -> CheckFinding:
    name = source.publication
    found = connection.execute(_PUBLICATION, (name,)).fetchone()
    if found is None:
        return wrong("publication", f"{name} does not exist", f"CREATE PUBLICATION {name} FOR ALL TABLES")
    if not found[0]:
        mend = f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')"
        return wrong("publication", f"{name} does not publish all changes of rows", mend)
    lacking = sorted(set(required) - {table.full_name for table in tables})
    if lacking or not tables:
        names = ", ".join(lacking) or "…"
        return wrong("publication", f"{name} lacks {names}", f"ALTER PUBLICATION {name} ADD TABLE {names}")
    size = sum(table.bytes for table in tables)
    return fine("publication", f"{name}: {counted(len(tables), 'table')}, {size / _GIB:.2f} GiB")


def _rights(connection: psycopg.Connection, tables: Sequence[ReplicaTable]) -> Iterator[CheckFinding]:
    for sql, may, secured in connection.execute(_RIGHTS, ([table.sql for table in tables],)):
        if not may:
            yield wrong("rights", f"the role may not read {sql}", f"GRANT SELECT ON {sql} TO the role of --source")
        if secured:
            yield wrong("row security", f"{sql} hides rows from the role", "ALTER ROLE … BYPASSRLS")


def _identities(connection: psycopg.Connection, tables: Sequence[ReplicaTable]) -> Iterator[CheckFinding]:
    """Yields which tables cannot say, or not shortly, which row a change means."""
    for table in tables:
        add = f"ALTER TABLE {table.sql} ADD PRIMARY KEY (…)"
        if not table.key and table.identity == "f":
            yield warning("keys", f"{table.full_name} has no primary key: its inserts alone can be applied, an"
                          " update or delete fails its unit", add)  # fmt: skip
        elif not table.key:
            yield warning("keys", f"{table.full_name} has no primary key: it takes inserts alone, and the source"
                          " refuses its own updates and deletes while it is published", add)  # fmt: skip
    # A change that is sent under a whole's name has the old values that its partition's identity tells.
    keyed = sorted({sql for table in tables if table.key for sql in (table.sql, *(part.sql for part in table.parts))})
    for sql, identity in connection.execute(_SILENT, (keyed,)):
        found = (
            f"{sql} has NOTHING" if identity == "n" else f"the index that {sql} uses does not contain the primary key"
        )
        yield wrong("replica identity", found, f"ALTER TABLE {sql} REPLICA IDENTITY DEFAULT")


def _wholes(tables: Sequence[ReplicaTable]) -> Iterator[CheckFinding]:
    """Yields of which tables' partitions PostgreSQL sends no TRUNCATE."""
    wholes = [table.full_name for table in tables if table.sql not in {part.sql for part in table.parts}]
    if wholes:
        yield warning("partitions", f"{some_names(wholes)}: TRUNCATE of a partition by itself is not sent under the"
                      " whole's name (publish_via_partition_root)",
                      "DELETE its rows instead; kainite verify finds what differs")  # fmt: skip


def _row(connection: psycopg.Connection, query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None, "a SELECT without FROM has a row"
    return row
