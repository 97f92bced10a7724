"""Looks whether a load may begin, and prepares what can be prepared: ``kainite replicate init``.

:func:`look` changes nothing. :func:`write` makes what is missing, in an order in which a crash between two steps loses
nothing, and leaves alone what is there:

1. the publication: what commits without it is never sent;
2. the slot, then the offset file with the slot's place: a slot without an offset file is as good as new as long as
   nobody has loaded the target;
3. the target's tables, where it has none of them, in one transaction with the steps that make their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

import psycopg
from psycopg import sql

from kainite.base.errors import SettingsError, SourceError
from kainite.base.words import counted
from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import create_slot
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.extract.offsets.offset_file import OffsetFile, offset_file_of
from kainite.extract.offsets.place import Place
from kainite.replicate.configured_ends import ends_of
from kainite.replicate.ends import LoadEnds, ReplicaEnds, both_sessions, is_mariadb
from kainite.replicate.findings import CheckFinding, is_ready
from kainite.replicate.found_load import FoundLoad
from kainite.replicate.ledger import CREATE
from kainite.replicate.load_ledger import LoadLedger, found_load
from kainite.replicate.schema_dump import dump_schema
from kainite.replicate.session_checks import look_at_sessions
from kainite.replicate.settings_checks import look_at_settings
from kainite.replicate.slot import found_slot
from kainite.replicate.source_checks import look_at_source
from kainite.replicate.tables import ReplicaTable, described, published
from kainite.replicate.target_checks import look_at_target
from kainite.settings import Settings
from kainite.settings.kinds.target_kinds import kind_of
from kainite.targets.postgresql.catalogue import reading_unfinished
from kainite.uow.catalogue.introspection import CatalogueReader, Reading
from kainite.uow.catalogue.reflection import catalogue_of
from kainite.uow.catalogue.tables import Catalogue


def target_catalogue(configured: Settings, ends: LoadEnds) -> Catalogue:
    """Returns the target's tables as they are now, keys or not; empty where there are none.

    Raises:
        TargetUnavailableError: the target does not answer.
        CatalogueError: a schema does not exist.
    """
    with _reading(ends.target) as reader:
        schemas = configured.apply.schemas or (reader.default_schema() or "",)
        if not any(reader.table_names(schema) for schema in schemas):
            return Catalogue({}, reader.default_schema())
        return catalogue_of(reader, configured.apply.schemas)


def _reading(url: str) -> AbstractContextManager[CatalogueReader]:
    """Gives a reader of a target's catalogue as it is, also while a load has still to make keys."""
    if not is_mariadb(url):
        return reading_unfinished(url)
    kind = kind_of(url)
    reading: Reading = kind.part(kind.catalogue)
    return reading(url)


def look(configured: Settings) -> list[CheckFinding]:
    """Returns the list of what was found.

    Raises:
        SettingsError: the settings name no two PostgreSQL databases.
        SourceError: one of them does not answer.
    """
    ends = ends_of(configured)
    catalogue = target_catalogue(configured, ends)
    with both_sessions(ends) as (source, target):
        tables = published(source, ends.source.publication)
        slot = found_slot(source, ends.source.slot)
        return [
            *look_at_sessions(ends),
            *look_at_source(source, ends.source, tables, ends.required),
            *look_at_target(source, target, tables, catalogue, ends.log_partition),
            *look_at_settings(configured, tables, None if slot is None else slot.lsn),
        ]


def check_ready(findings: Sequence[CheckFinding]) -> None:
    """Raises SettingsError where something must be mended before a load may begin."""
    if not is_ready(findings):
        causes = "; ".join(f"{f.about}: {f.found} ({f.mend})" for f in findings if f.verdict == "wrong")
        raise SettingsError(f"the load cannot begin: {causes}. kainite replicate init shows all")


def write(configured: Settings) -> Iterator[str]:
    """Makes what is missing; yields what was done.

    Raises:
        SettingsError: as :func:`look`; or pg_dump is missing.
        SourceError: the source or the target refused, or does not answer.
    """
    ends = ends_of(configured)
    with both_sessions(ends) as (source, target):
        yield from made_publication(source, ends)
        load = partial(found_load, target, ends.log_partition)
        yield from made_slot(source, load, ends, offset_file_of(configured))
        yield from _tables(source, target, ends, published(source, ends.source.publication))


def write_tables(configured: Settings) -> Iterator[str]:
    """Makes the publication and the target's tables, where they are missing, and no slot; as :func:`write`."""
    ends = ends_of(configured)
    with both_sessions(ends) as (source, target):
        yield from made_publication(source, ends)
        yield from _tables(source, target, ends, published(source, ends.source.publication))


def made_publication(source: psycopg.Connection, ends: ReplicaEnds) -> Iterator[str]:
    """Makes the publication where it is missing; yields what was done."""
    name = ends.source.publication
    if source.execute("SELECT FROM pg_publication WHERE pubname = %s", (name,)).rowcount:
        return
    tables = sql.SQL(", ").join(sql.Identifier(*table.split(".", 1)) for table in ends.required)
    which = sql.SQL("FOR TABLE {}").format(tables) if ends.required else sql.SQL("FOR ALL TABLES")
    source.execute(sql.SQL("CREATE PUBLICATION {} {}").format(sql.Identifier(name), which))
    yield f"made publication {name}"


def made_slot(
    source: psycopg.Connection, load: Callable[[], FoundLoad | None], ends: ReplicaEnds, file: OffsetFile | None
) -> Iterator[str]:
    """Makes the slot and the offset file where they are missing; yields what was done.

    Args:
        source: a session with the source.
        load: returns the target's load.
        ends: source and target.
        file: where the offset is kept.

    Raises:
        SourceError: the target has been loaded, and the offset file is missing.
    """
    assert file is not None, "ends_of has looked at extractorOffsets"
    name, slot = ends.source.slot, found_slot(source, ends.source.slot)
    if file.path.exists():
        return  # an offset without its slot is a loss, which the extractor tells of
    if slot is None:
        with create_slot(ends.source):
            pass
        slot = found_slot(source, name)
        yield f"made replication slot {name}"
    elif (found := load()) is not None and found.position is not None:
        raise SourceError(f"offset file {file.path} is missing, and the target has been loaded: put a copy back")
    assert slot is not None
    assert slot.lsn is not None, "a logical slot has a place"
    with file.locked():
        file.create(Place(Offset(slot.lsn, 0).as_json()))
    yield f"made offset file {file.path}, which begins at {format_lsn(slot.lsn)}"


def _tables(
    source: psycopg.Connection, target: psycopg.Connection, ends: ReplicaEnds, tables: Sequence[ReplicaTable]
) -> Iterator[str]:
    if not tables or described(target, [table.place for table in tables]):
        return
    dump = dump_schema(source, ends.source.url, [table.sql for table in tables])
    for statement in CREATE:
        target.execute(statement)
    LoadLedger(target, ends.log_partition).prepare(dump.script, dump.steps)
    yield f"made {counted(len(tables), 'table')}; {len(dump.steps)} keys, indexes and the like follow behind the rows"
    for name in dump.left_out:
        yield f"left out foreign key {name}: its parent is not published"
