"""Asks a PostgreSQL source what ``kainite-extract-postgresql`` will need: WAL, role, slot, publication, identities.

This module imports a database driver, so it is itself imported by its name (:mod:`kainite.doctor.asking`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
import psycopg
from psycopg.rows import namedtuple_row

from kainite.base.errors import SettingsError, SourceError
from kainite.base.redaction import redacted
from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.command import main as extractor_command
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.postgresql.source_catalogue import SourceCatalogue
from kainite.doctor.catalogue import some
from kainite.doctor.clocks import clock_finding, timed
from kainite.doctor.finding import DoctorFinding, warned, well, wrong
from kainite.extract.offsets.offset_file import offset_file_of
from kainite.settings import Settings
from kainite.targets.postgresql.connection import connect

_AREA: Final = "source"
_NAMES: Final = (PROGRAM, "kainite.capture.postgresql.command")

_BEGIN: Final = '{"lsn":"…","number":0}'

_SERVER: Final = """
    SELECT current_setting('wal_level') AS level, current_user::text AS role, extract(epoch FROM now())::float8 AS now,
           current_setting('max_slot_wal_keep_size') AS keep,
           (SELECT rolreplication OR rolsuper OR EXISTS (
                SELECT FROM pg_roles r
                WHERE r.rolname = 'rds_replication' AND pg_has_role(current_user, r.oid, 'member'))
            FROM pg_roles WHERE rolname = current_user) AS replicates"""
_SLOT: Final = """
    SELECT plugin, database = current_database() AS here, wal_status = 'lost' AS lost
    FROM pg_replication_slots WHERE slot_name = %s"""
# A table with a key that is deferrable, or without one, has no identity by default.
_IDENTITIES: Final = """
    SELECT format('%%I.%%I', n.nspname, c.relname) AS name, c.relreplident = 'f' AS whole
    FROM pg_publication_tables p JOIN pg_namespace n ON n.nspname = p.schemaname
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
    WHERE p.pubname = %s AND (c.relreplident IN ('n', 'f') OR NOT EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'i' THEN i.indisreplident
                                                             ELSE i.indisprimary AND i.indimmediate END))
    ORDER BY 1"""


def look_at_source(settings: Settings) -> Iterator[DoctorFinding]:
    """Yields what is found of the source that ``extractorName`` reads; nothing for another extractor.

    Raises:
        SettingsError: the command line lacks an option.
        SourceError: the source does not answer, or its publication does not have what it must have.
    """
    named = source_named(settings.extract.command)
    if named is None:
        return
    source, tables = named
    try:
        with closing(connect(source.url, "kainite doctor")) as connection:
            yield from _server(connection)
            yield _slot(connection, source)
            yield from _identities(connection, source)
    except psycopg.Error as error:
        raise SourceError(redacted(" ".join(str(error).split()))) from None
    yield _publication(source, tables)
    yield from _offset(settings)


def source_named(command: Sequence[str]) -> tuple[SourceSlot, tuple[str, ...]] | None:
    """Returns the source of an extractor's command line, and the tables that it demands; None for another program.

    Raises:
        SettingsError: the command line lacks an option, or has one that is unknown.
    """
    place = next((place for place, word in enumerate(command) if Path(word).name in _NAMES), None)
    if place is None:
        return None
    try:
        given = extractor_command.make_context(PROGRAM, list(command[place + 1 :])).params
    except click.exceptions.Exit:
        raise SettingsError("extractorName only shows a help text") from None
    except click.ClickException as error:
        raise SettingsError(f"extractorName: {error.format_message()}; {PROGRAM} --help says more") from error
    return SourceSlot(given["source"], given["slot"], given["publication"]), tuple(given["tables"])


def _server(connection: psycopg.Connection) -> Iterator[DoctorFinding]:
    [server], ours = timed(lambda: _rows(connection, _SERVER))
    if server.level == "logical":
        yield well(_AREA, "wal_level is logical")
    else:
        yield wrong(_AREA, f"wal_level is {server.level}",
                    "ALTER SYSTEM SET wal_level = logical, and restart the server")  # fmt: skip
    if not server.replicates:
        yield wrong(_AREA, f"role {server.role} may not replicate", f'ALTER ROLE "{server.role}" REPLICATION')
    if server.keep == "-1":
        yield warned(_AREA, "a slot holds back WAL without a limit: if the extractor stands still, the disk fills",
                     "ALTER SYSTEM SET max_slot_wal_keep_size = '…GB', and watch kainite status")  # fmt: skip
    yield clock_finding("the source", server.now, ours)


def _slot(connection: psycopg.Connection, source: SourceSlot) -> DoctorFinding:
    name = source.slot
    create = f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"
    found = _rows(connection, _SLOT, (name,))
    if not found:
        return wrong(_AREA, f"replication slot {name} does not exist", create)
    [slot] = found
    if slot.plugin != "pgoutput" or not slot.here:
        return wrong(_AREA, f"slot {name} is of another database, or its plugin {slot.plugin} is not pgoutput",
                     "name another slot (--slot)")  # fmt: skip
    if slot.lost:
        return wrong(_AREA, f"slot {name} is lost: the server has removed WAL that was not read",
                     f"SELECT pg_drop_replication_slot('{name}'); {create}; and copy the tables again")  # fmt: skip
    return well(_AREA, f"slot {name} can be read")


def _publication(source: SourceSlot, tables: Sequence[str]) -> DoctorFinding:
    catalogue = SourceCatalogue(source.url, source.publication, tables)
    try:
        catalogue.look()
    except SourceError as error:
        return wrong(_AREA, str(error), f"CREATE or ALTER PUBLICATION {source.publication}, as said")
    finally:
        catalogue.close()
    return well(_AREA, f"publication {source.publication} has what it must have")


def _identities(connection: psycopg.Connection, source: SourceSlot) -> Iterator[DoctorFinding]:
    found = _rows(connection, _IDENTITIES, (source.publication,))
    if blocked := [row.name for row in found if not row.whole]:
        yield wrong(_AREA, f"no replica identity: the source refuses its own updates and deletes of {some(blocked)}",
                    f"ALTER TABLE {blocked[0]} ADD PRIMARY KEY (…), or REPLICA IDENTITY USING INDEX …")  # fmt: skip
    if whole := [row.name for row in found if row.whole]:
        yield well(_AREA, f"these have the replica identity FULL: {some(whole)}")
    if not found:
        yield well(_AREA, "all published tables have a replica identity")


def _offset(settings: Settings) -> Iterator[DoctorFinding]:
    file = offset_file_of(settings)
    if file is not None and not file.path.exists():
        yield warned(_AREA, f"offset file {file.path} does not exist: the first extraction needs a place",
                     f"kainite extract -p {settings.path} --begin '{_BEGIN}', with the slot's LSN")  # fmt: skip


def _rows(connection: psycopg.Connection, query: str, values: tuple[Any, ...] | None = None) -> list[Any]:
    return connection.cursor(row_factory=namedtuple_row).execute(query.encode(), values).fetchall()
