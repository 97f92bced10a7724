"""How a comparison makes the apply job stop at one place of the log for an instant: one row of the target. Pure.

The statements are PostgreSQL's; :mod:`kainite.replicate.mariadb_stop_ledger` has those of MariaDB.

The comparison (``kainite verify``) needs a snapshot of the target that has the units which committed in the source
before one place (:mod:`kainite.capture.places`), the *point*, and no other. The apply job alone knows when that is so.
Both talk through one row of the table ``kainite_verify`` in the target, of which each writes its own part, by
conditional updates.

=========  =========================  ==================================================================================
state      set by                     means
=========  =========================  ==================================================================================
asked      the comparison             a stop is wanted, under the next *request* number; there is no point yet. Where an
                                      earlier try came too late there is a *floor*, which is before the point
attended   the apply job              its *generation* notes from now on which units it begins, and begins none from the
                                      floor on. Then the comparison makes the source's snapshot, and writes the
                                      *position*: the point
stopped    the apply job              all units in front of the first one behind the point are resolved, or are listed
                                      in *units*; the fence is closed with the number *micro_batch*
passed     the apply job              it had begun a unit behind the point before it read the point: ask again
over       either of both             the apply job goes on; or the comparison does not need it any more
=========  =========================  ==================================================================================

::

    asked ─► attended ─► (position) ─► stopped ─► over
                │                        the comparison takes its snapshot while the row says "stopped"
                └───────► passed

Invariants:

1. What the apply job began before it attended had committed in the source before the point was made, so lies before it.
   What it begins afterwards it notes, and compares with the point when it reads it. So in *stopped* no unit from the
   point on was ever begun under this generation.
2. A snapshot is taken as one of the point if and only if one look of it at the target shows ``kainite_fence`` with
   the generation and the number of the *stopped* row. Whatever commits a unit advances the fence first, so no unit has
   committed between the closing and the snapshot, whoever lives, is frozen, or has taken over. Where no session can
   take over the snapshot of another one (MariaDB), each session looks at the row and the fence in its own snapshot.
3. The apply job is never held for longer than it allows itself (``HOLD_S`` of :mod:`kainite_spark.driver.stop_point`),
   nor by a comparison whose counter (*beat*) stands still. To hold it needs nobody's leave to go on: a comparison that
   comes too late finds another fence, and asks again.

What a crash leaves:

===================================  ===================================================================================
killed, frozen or cut off            then
===================================  ===================================================================================
the comparison, before the point     the apply job drops the request when *beat* stands still; it has not stopped
the comparison, behind the point     the apply job stops at the point or drops the request before; if it stops, then for
                                     ``HOLD_S`` at most
the comparison, with its snapshots   both end with its sessions; the apply job went on long before
the apply job, in any state          the next one has another generation, and answers *asked* alone; the comparison sees
                                     the other generation in the fence, and asks again with a new point
the apply job, while it is stopped   the same; the fence that the snapshot shows decides
the apply job is frozen, another     the other one raises the fence's generation before it commits anything, so that a
one takes over, the first wakes up   *stopped* that the first one writes is not taken
the target, or a connection          the row is as one of the states above; the one without an answer asks again, or
                                     drops the request
===================================  ===================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec


class StopState(StrEnum):
    """The state of a request; the module says what each means."""

    ASKED = "asked"
    ATTENDED = "attended"
    STOPPED = "stopped"
    PASSED = "passed"
    OVER = "over"


class UnresolvedUnit(msgspec.Struct, frozen=True, array_like=True):
    """A unit in front of the point that is not in the target when the apply job stops.

    Attributes:
        tid: its transaction id.
        uow: its name.
        status: its status, as the log shows it.
        cause: why it is not applied; None where that is not known.
        tables: the tables that it touches.
        unsigned: those of them of which the unit's rows are not known.
        written: the signatures that it writes.
        scheme: the id of their scheme.
        partly: whether parts of the unit are missing or unreadable, so that it may touch any row.
    """

    tid: int
    uow: str
    status: str
    cause: str | None
    tables: tuple[str, ...]
    unsigned: tuple[str, ...]
    written: frozenset[int]
    scheme: str | None
    partly: bool


@dataclass(frozen=True, slots=True)
class StopStatements:
    """The statements of one kind of target. Places and numbers are integers in all of them.

    Attributes:
        create: makes the table where it is missing.
        is_there: whether there is the table.
        one_at_a_time: takes the lock of a log's comparisons, which ends with the session; whether it was to be had.
        ask: makes a new request, given the log's name and the floor.
        asked: its number.
        beat: a sign of life of the comparison, given the log's name and the request's number, as the next ones are.
        end: the comparison needs the request no more.
        held: for how many milliseconds the apply job stood still.
        await_: the state, and whether the apply job that attends is the latest one, as the fence tells.
        see: the one look of invariant 2: the units and, where other sessions can import it, the snapshot's name.
        set_position: tells the point, given before the log's name and the request's number.
        note_result: keeps a result, given before the log's name.
        result: the latest result, given the log's name.
        look: the request that is asked, attended or stopped, for the apply job, given the log's name.
        attend: given the generation, the log's name, and the request's number.
        stopped: given the micro-batch's number and the units before the log's name, the request and the generation.
        passed: given the log's name, the request's number and the generation.
        go_on: the same behind the milliseconds.
    """

    create: str
    is_there: str
    one_at_a_time: str
    ask: str
    beat: str
    end: str
    await_: str
    see: str
    set_position: str
    note_result: str
    look: str
    asked: str = "SELECT request FROM kainite_verify WHERE log_partition = %s"
    held: str = "SELECT held_ms FROM kainite_verify WHERE log_partition = %s AND request = %s"
    result: str = "SELECT result FROM kainite_verify WHERE log_partition = %s"
    attend: str = """
    UPDATE kainite_verify SET state = 'attended', generation = %s
    WHERE log_partition = %s AND request = %s AND state = 'asked'"""
    stopped: str = """
    UPDATE kainite_verify SET state = 'stopped', micro_batch = %s, units = %s
    WHERE log_partition = %s AND request = %s AND generation = %s AND state = 'attended'"""
    passed: str = """
    UPDATE kainite_verify SET state = 'passed'
    WHERE log_partition = %s AND request = %s AND generation = %s AND state = 'attended'"""
    go_on: str = """
    UPDATE kainite_verify SET state = 'over', units = NULL, held_ms = %s
    WHERE log_partition = %s AND request = %s AND generation = %s"""


BEAT: Final = """
    UPDATE kainite_verify SET beat = beat + 1 WHERE log_partition = %s AND request = %s
      AND state IN ('asked', 'attended', 'stopped')"""

END: Final = "UPDATE kainite_verify SET state = 'over', units = NULL WHERE log_partition = %s AND request = %s"

POSTGRESQL: Final = StopStatements(
    create="""
    CREATE TABLE IF NOT EXISTS kainite_verify (
        log_partition text NOT NULL PRIMARY KEY,
        request bigint NOT NULL,
        state text NOT NULL,
        floor pg_lsn,
        position pg_lsn,
        generation bigint,
        micro_batch bigint,
        units bytea,
        beat bigint NOT NULL DEFAULT 0,
        held_ms bigint,
        result text
    )""",
    is_there="SELECT to_regclass('kainite_verify') IS NOT NULL",
    one_at_a_time="SELECT pg_try_advisory_lock(hashtextextended('kainite verify ' || %s, 0))",
    ask="""
    INSERT INTO kainite_verify (log_partition, request, state, floor)
    VALUES (%s, 1, 'asked', '0/0'::pg_lsn + %s::numeric)
    ON CONFLICT (log_partition) DO UPDATE SET
        request = kainite_verify.request + 1, state = 'asked', floor = excluded.floor, position = NULL,
        generation = NULL, micro_batch = NULL, units = NULL, beat = 0, held_ms = NULL""",
    beat=BEAT,
    end=END,
    await_="""
    SELECT v.state, v.generation IS NOT DISTINCT FROM f.generation AS attends
    FROM kainite_verify v LEFT JOIN kainite_fence f ON f.log_partition = v.log_partition
    WHERE v.log_partition = %s AND v.request = %s""",
    see="""
    SELECT v.units, pg_export_snapshot() AS snapshot FROM kainite_verify v JOIN kainite_fence f
      ON f.log_partition = v.log_partition AND f.generation = v.generation AND f.micro_batch = v.micro_batch
    WHERE v.log_partition = %s AND v.request = %s AND v.state = 'stopped'""",
    set_position="""
    UPDATE kainite_verify SET position = '0/0'::pg_lsn + %s::numeric
    WHERE log_partition = %s AND request = %s AND state = 'attended'""",
    note_result="""
    INSERT INTO kainite_verify (result, log_partition, request, state) VALUES (%s, %s, 0, 'over')
    ON CONFLICT (log_partition) DO UPDATE SET result = excluded.result""",
    look="""
    SELECT request, state, (floor - '0/0')::bigint, (position - '0/0')::bigint, generation, beat
    FROM kainite_verify WHERE log_partition = %s AND state IN ('asked', 'attended', 'stopped')""",
)

_UNITS: Final = msgspec.msgpack.Decoder(tuple[UnresolvedUnit, ...])


def encoded(units: tuple[UnresolvedUnit, ...]) -> bytes:
    """Returns the column ``units``."""
    return msgspec.msgpack.encode(units)


def decoded(data: bytes) -> tuple[UnresolvedUnit, ...]:
    """Returns the units of the column; the inverse of :func:`encoded`."""
    return _UNITS.decode(data)
