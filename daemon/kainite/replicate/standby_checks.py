"""Asks the standbys of a source whether they have the slot, and how far: before a planned switch, and at any time.

A standby is asked where the source's address names it, as ``host=a,b`` does. What it has of the slot decides what a
promotion leaves (PostgreSQL manual, *Logical Replication Failover*):

==========================================  ===========================================================================
the standby's copy of the slot              after its promotion
==========================================  ===========================================================================
is not there, or not synchronised yet       there is no slot, and the extractor ends: a copy that is not synchronised
(``temporary``)                             is dropped by the promotion
is invalidated                              the slot cannot be read, and the extractor ends
is synchronised, and the standby lacks WAL  the extractor refuses the server: transactions that it has given are not
that the primary's slot has confirmed       there (:mod:`kainite.capture.postgresql.source_identity`)
is synchronised, and the standby has that   the extractor goes on with the next number; a copy that is behind has what
WAL                                         was extracted once more, which the offset leaves out
==========================================  ===========================================================================

The extractor's offset is ahead of what its slot has confirmed by some seconds. So a planned switch waits until the
standby lacks none of the primary's WAL, with writers and extractor stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import namedtuple_row

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.replicate.ends import source_session
from kainite.replicate.failover_checks import look_at_failover
from kainite.replicate.findings import CheckFinding, fine, warning
from kainite.replicate.slot import FoundSlot, found_slot

ABOUT: Final = "standby"

_WRITTEN: Final = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN (pg_current_wal_lsn() - '0/0')::bigint END"
_COPY: Final = """
    SELECT pg_is_in_recovery() AS is_standby,
           (greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0')::bigint AS wal,
           s.slot_name IS NOT NULL AS is_there, (s.confirmed_flush_lsn - '0/0')::bigint AS lsn,
           coalesce((to_jsonb(s) ->> 'synced')::boolean AND NOT s.temporary, false) AS ready,
           coalesce(to_jsonb(s) ->> 'invalidation_reason', '') AS invalid
    FROM (SELECT %s::text AS name) AS asked LEFT JOIN pg_replication_slots s ON s.slot_name = asked.name"""


@dataclass(frozen=True, slots=True)
class StandbyCopy:
    """What a standby has of a slot.

    Attributes:
        is_there: whether it has the slot, ready or not.
        ready: whether a promotion keeps it.
        invalid: why it cannot be read; empty where it can.
        lsn: the place up to which its reader has all, as far as the standby knows; None where it is unknown.
        wal: the LSN up to which the standby has the primary's WAL.
    """

    is_there: bool
    ready: bool
    invalid: str
    lsn: int | None
    wal: int


def standbys_of(source: SourceSlot) -> tuple[CheckFinding, ...]:
    """Returns what a promotion of each standby of a source would do now; a source that does not answer is told, too."""
    try:
        with source_session(source.url) as connection:
            return tuple(look_at_promotion(connection, source, found_slot(connection, source.slot)))
    except SourceError as error:
        return (warning(ABOUT, f"nobody knows what standbys of the source have: {error}"),)


def look_at_promotion(
    connection: psycopg.Connection, source: SourceSlot, slot: FoundSlot | None
) -> Iterator[CheckFinding]:
    """Yields what a promotion of a standby would do; nothing where there is none, or no slot.

    Args:
        connection: a session with the primary.
        source: its address and its slot's name.
        slot: the primary's slot; None where it is not there.
    """
    yield from look_at_failover(connection, slot, source.slot)
    yield from look_at_standbys(connection, source.url, slot, source.slot)


def look_at_standbys(
    connection: psycopg.Connection, url: str, slot: FoundSlot | None, name: str
) -> Iterator[CheckFinding]:
    """Yields what each standby that the source's address names would make of its promotion.

    Args:
        connection: a session with the primary.
        url: the source's address; one that names a single server has no standby to be asked.
        slot: the primary's slot; None where it is not there.
        name: its name.
    """
    servers = tuple(each_server(url))
    written = written_lsn(connection)
    if slot is None or written is None or len(servers) < 2:
        return
    for host, own_url in servers:
        try:
            with source_session(own_url) as standby:
                copy = found_copy(standby, name)
        except SourceError as error:
            yield warning(ABOUT, f"{host} does not answer, so nobody knows whether it has slot {name}: {error}")
            continue
        if copy is not None:
            yield finding_of(host, copy, slot, name, written)


def written_lsn(connection: psycopg.Connection) -> int | None:
    """Returns the end of a primary's WAL; None for a standby."""
    row = connection.execute(_WRITTEN).fetchone()
    return None if row is None or row[0] is None else int(row[0])


def each_server(url: str) -> Iterator[tuple[str, str]]:
    """Yields the servers that an address names, each with an address of its own, whatever its state is."""
    given = conninfo_to_dict(url)
    hosts, ports = (str(given.get(key) or "").split(",") for key in ("host", "port"))
    addresses = str(given.get("hostaddr") or "").split(",")
    for place, host in enumerate(hosts):
        own = {"host": host, "port": ports[place if len(ports) > 1 else 0], "target_session_attrs": "any"}
        if len(addresses) == len(hosts):
            own["hostaddr"] = addresses[place]
        yield host, make_conninfo(url, **{key: value for key, value in own.items() if value})


def found_copy(connection: psycopg.Connection, name: str) -> StandbyCopy | None:
    """Returns what a server has of a slot; None where the server is no standby."""
    row: Any = connection.cursor(row_factory=namedtuple_row).execute(_COPY, (name,)).fetchone()
    if not row.is_standby:
        return None
    return StandbyCopy(row.is_there, row.ready, row.invalid, row.lsn, row.wal or 0)


def finding_of(host: str, copy: StandbyCopy, slot: FoundSlot, name: str, written: int) -> CheckFinding:
    """Returns what a standby's promotion would do to the extraction.

    Args:
        host: the standby.
        copy: what it has of the slot.
        slot: the primary's.
        name: the slot's name.
        written: the end of the primary's WAL, before the standby was asked.
    """
    if not copy.is_there:
        return warning(ABOUT, f"{host} has no copy of slot {name}: do not promote it, or everything is to be copied"
                       " again", "on the standby: sync_replication_slots = on, hot_standby_feedback = on,"
                       " primary_slot_name, and a dbname in primary_conninfo")  # fmt: skip
    if copy.invalid:
        return warning(ABOUT, f"{host} has invalidated its copy of slot {name} ({copy.invalid}): do not promote it",
                       "on the standby: hot_standby_feedback = on, and a primary_slot_name")  # fmt: skip
    if not copy.ready:
        return warning(ABOUT, f"{host} is still synchronising its copy of slot {name}, which a promotion would drop",
                       "on the primary: SELECT pg_log_standby_snapshot(), with the extractor at work; then look"
                       " again")  # fmt: skip
    confirmed = slot.lsn or 0
    if copy.wal < confirmed:
        return warning(ABOUT, f"{host} lacks {confirmed - copy.wal:,} bytes of WAL that were extracted, and would be"
                       " refused", "wait, and look again; synchronized_standby_slots on the primary lets nobody get"
                       " ahead of it")  # fmt: skip
    behind, lacking = max(confirmed - (copy.lsn or 0), 0), max(written - copy.wal, 0)
    lacks = f"lacks {lacking:,} bytes of the latest WAL: before a planned switch wait until it lacks none"
    return fine(ABOUT, f"{host} has slot {name} as of {format_lsn(copy.lsn or 0)}, {behind:,} bytes behind, and"
                f" {lacks if lacking else 'all WAL of the primary'}")  # fmt: skip
