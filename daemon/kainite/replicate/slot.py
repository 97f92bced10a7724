"""Looks at the source's main slot: it must be there before a load's point, and until the load is live.

A slot that was dropped and made again meanwhile is the extractor's to notice: it is ahead of the offset file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.rows import namedtuple_row

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import source_session

# What a restart needs is the older of both places; safe_wal_size is unknown where no limit is set.
_SLOT: Final = """
    SELECT plugin, database = current_database() AS here, active, wal_status,
           (confirmed_flush_lsn - '0/0')::bigint AS lsn,
           pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint AS held, safe_wal_size AS left,
           (to_jsonb(s) ->> 'failover')::boolean AS failover
    FROM pg_replication_slots s WHERE slot_name = %s"""


@dataclass(frozen=True, slots=True)
class FoundSlot:
    """A logical slot.

    Attributes:
        plugin: its output plugin.
        here: whether it is the source database's.
        active: whether somebody reads it.
        lost: whether the server has removed WAL that it needs.
        lsn: the place up to which its reader has all; None where it is unknown.
        held: bytes of WAL that it holds back.
        left: bytes of WAL that may be written before it is lost; None without a limit.
        failover: whether standbys may keep copies of it; None where the server knows no such thing.
    """

    plugin: str
    here: bool
    active: bool
    lost: bool
    lsn: int | None
    held: int
    left: int | None
    failover: bool | None = None


def found_slot(connection: psycopg.Connection, name: str) -> FoundSlot | None:
    """Returns a slot of the server; None where there is none of this name."""
    row: Any = connection.cursor(row_factory=namedtuple_row).execute(_SLOT, (name,)).fetchone()
    if row is None:
        return None
    lsn = None if row.lsn is None else int(row.lsn)
    lost = row.wal_status == "lost"
    return FoundSlot(row.plugin, bool(row.here), row.active, lost, lsn, row.held or 0, row.left, row.failover)


def problem_of(slot: FoundSlot | None, name: str) -> str | None:
    """Returns why a slot cannot serve the replica; None where it can."""
    if slot is None:
        return f"replication slot {name} does not exist"
    if slot.plugin != "pgoutput" or not slot.here:
        return f"replication slot {name} is of another database, or has the plugin {slot.plugin}, not pgoutput"
    if slot.lost:
        return f"replication slot {name} was invalidated: the server has removed WAL that it had not sent"
    return None


def mend_of(slot: FoundSlot | None, name: str) -> str:
    """Returns what to do about a slot that cannot serve the replica (:func:`problem_of`)."""
    if slot is None:
        return f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput'), or kainite replicate init --write"
    if slot.lost and slot.here:  # a slot that is only made anew would lose what committed since
        return "docs/replicate.md, *A lost slot*, before anything else"
    return "another name for --slot in extractorName: this slot is somebody else's"


def check_slot(source: SourceSlot) -> None:
    """Checks that what commits from now on reaches the log.

    Raises:
        SourceError: the slot is missing, or was invalidated.
    """
    with source_session(source.url) as connection:
        problem = problem_of(found_slot(connection, source.slot), source.slot)
    if problem:
        raise SourceError(f"{problem}: kainite replicate init says how to make it; a load that has begun begins anew")
