"""Looks whether a standby of the source that is promoted will have the slot, and all that was extracted.

======================================  ==============================================================================
the slot                                after a promotion
======================================  ==============================================================================
has no property FAILOVER                is not there: everything is to be copied again
has it, and the primary waits for the   goes on where it was: nothing is extracted that the standby has not
standby (synchronized_standby_slots)
has it, and the primary does not wait   goes on, or the extractor refuses, if transactions that it has given are not
                                        there (:mod:`kainite.capture.postgresql.source_identity`)
======================================  ==============================================================================

What a standby itself needs is seen there alone: ``sync_replication_slots``, ``hot_standby_feedback``, ``wal_level``,
and a database name in ``primary_conninfo``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
from psycopg.rows import namedtuple_row

from kainite.replicate.findings import CheckFinding, fine, some_names, warning
from kainite.replicate.slot import FoundSlot

ABOUT: Final = "failover"

# Who reads WAL without a logical slot is a standby, or something that archives. Its state is hidden from other roles.
_STANDBYS: Final = """
    SELECT ARRAY(SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'physical' ORDER BY 1) AS slots,
           ARRAY(SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'physical' AND active) AS active,
           (SELECT count(*) FROM pg_stat_replication r WHERE coalesce(r.state, 'streaming') <> 'backup' AND NOT EXISTS (
                SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')) AS readers,
           coalesce(current_setting('synchronized_standby_slots', true), '') AS waits_for,
           pg_is_in_recovery() AS is_standby"""


def look_at_failover(connection: psycopg.Connection, slot: FoundSlot | None, name: str) -> Iterator[CheckFinding]:
    """Yields what a promotion of a standby would do to the extraction; nothing where there is no standby.

    Args:
        connection: a session with the source.
        slot: the slot that is read; None where it is not there.
        name: its name.
    """
    found: Any = connection.cursor(row_factory=namedtuple_row).execute(_STANDBYS).fetchone()
    if slot is None or found.is_standby or not (found.slots or found.readers):
        return
    if slot.failover is None:
        yield warning(ABOUT, "before PostgreSQL 17 no standby has the slot: when one is promoted, everything is to be"
                      " copied again")  # fmt: skip
    elif not slot.failover:
        yield warning(ABOUT, f"no standby has slot {name}: when one is promoted, everything is to be copied again",
                      "with the extractor stopped: psql 'dbname=… replication=database' -c"
                      f" 'ALTER_REPLICATION_SLOT {name} (FAILOVER true)'")  # fmt: skip
    else:
        yield _waited_for(found)


def _waited_for(found: Any) -> CheckFinding:
    waits_for = [name.strip(' "') for name in found.waits_for.split(",") if name.strip()]
    if not waits_for:
        names = ", ".join(found.slots) or "…"
        return warning(ABOUT, "a standby that is promoted may lack what is extracted already, and is refused then",
                       f"ALTER SYSTEM SET synchronized_standby_slots = '{names}', with the standbys' own slots, and"
                       " SELECT pg_reload_conf()")  # fmt: skip
    if away := sorted(set(waits_for) - set(found.active)):
        return warning(ABOUT, f"the extraction waits for standbys that are away: {some_names(away)}",
                       "start them, or take them out of synchronized_standby_slots")  # fmt: skip
    return fine(ABOUT, f"nothing is extracted before {some_names(waits_for)} has it")
