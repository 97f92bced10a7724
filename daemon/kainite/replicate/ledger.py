"""What a target knows of its load: which tables it got as of which point, and which steps of that are done. Pure.

The tables stand beside the apply job's own (:mod:`kainite_spark.targets.contract`), and the rules are the same: what a
step does and the entry that says so commit together, under a fence.

* ``kainite_load``: one row a log, with the *generation* of the load, its state, and the consistent point.
* ``kainite_load_table``: a row for each table that was loaded, with its position S: what committed in the source before
  S came with the copy, what committed from S on comes through the log. A table that is loaded by itself has a state of
  its own there (:mod:`kainite.replicate.table_ledger`).
* ``kainite_load_step``: a row for each step: a range of rows that is copied, or a statement. Steps have stages; those
  of a stage run side by side, a stage begins when the one before is done.

==========  ===========================================================================================================
state       means
==========  ===========================================================================================================
(no row)    Kainite has not loaded this target
prepared    ``init`` has made the tables; keys and indexes follow with the load
loading     rows are being copied, or keys and indexes made; the apply job waits
live        the target is the source as of S, and as of each later transaction that the apply job adds
cut over    the target is written by others: no unit is applied, and no load empties it
==========  ===========================================================================================================

Invariants:

1. No unit of the log commits in the target unless the state is *live*, or there is no row. ``begin`` closes the apply
   job's fence in the transaction that sets *loading*; ``raise_generation`` of a target reads the state under the lock
   of the fence's row. So whatever the log has as applied committed in the source before any later point S.
2. A step is done if and only if its rows, or its effect, are in the target: one transaction.
3. A step commits only under the generation of its load. Its transaction holds the row of ``kainite_load`` (``FOR KEY
   SHARE``); a load that begins, or goes on, takes that row ``FOR UPDATE`` first, and ends the sessions that hold it.
4. A table is emptied only if ``kainite_load_table`` has it, in the transaction that sets its new position.
5. In *live*, a delta is left out of its unit if the unit's commit LSN is before its table's position, and never else.
6. *cut over* follows on *live* alone, and *live* on *cut over* where a person takes the cut-over back. ``begin`` lets
   no load into a target that others may have written.

From 1, 2 and 5: the rows at the first *live* are the source's as of S; of each unit, the target takes on exactly what
it has not. So each state of the target from the first *live* on, with units applied in their order, is one that the
source had.

What a crash leaves:

=====================================  =================================================================================
the load's driver is killed            its next start
=====================================  =================================================================================
before ``begin``                       nothing has happened
between ``begin`` and ``plan``         *loading* without a point: begins anew; the apply job waits
between ``plan`` and the last range    goes on with the steps that are left, if the snapshot lives; else begins anew
behind the last range                  goes on with the statements that are left; no snapshot is needed
before ``finish``                      ``finish``
=====================================  =================================================================================

A step's transaction commits without waiting for the disk, or for a synchronous standby; everything else that writes
here waits. The target's WAL has one order, so a crash of the target takes back the latest transactions and no others,
and a transaction that waited has all earlier ones on disk:

=====================================  =================================================================================
the target crashes, or its standby     the next start
takes over
=====================================  =================================================================================
behind some steps                      those that were taken back are left again: their entries went with their rows
behind the last range                  as well; begins anew where the snapshot was given back meanwhile
behind ``finish``                      all steps are on disk: *live* came behind them
=====================================  =================================================================================

Nobody outside the target acts upon a step but the process that keeps the snapshot, in the second line.

A task that is killed, or loses a connection, leaves nothing: its step is run again. A task that is frozen holds its
step's row; whoever runs the step again ends its session first, so that it commits nothing when it wakes up.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from kainite.capture.mysql.text_forms import TextSpelling


class LoadState(StrEnum):
    """The state of a target's load; the module says what each means."""

    PREPARED = "prepared"
    LOADING = "loading"
    LIVE = "live"
    CUT_OVER = "cut over"


HANDED_OVER: Final = (
    "the target was cut over (kainite replicate cutover): others write in it, and no unit is applied any more"
)
"""What an apply job is told that begins in a target in *cut over*."""


class CopyStep(msgspec.Struct, frozen=True, tag="copy"):
    """Copies rows.

    Attributes:
        queries: what is read from the source: ``COPY (…) TO STDOUT`` of PostgreSQL, a ``SELECT`` of MariaDB.
        into: where it is written, as ``COPY … FROM STDIN``; one statement, whatever the number of queries. Empty for a
            MariaDB target, which gets multi-row inserts.
        spellings: what becomes of the text of each column of MariaDB; empty for PostgreSQL.
        types: the columns in their order, each with the OID of its type as the source's change records have it
            (:mod:`kainite.capture.postgresql.records`); empty for a PostgreSQL target, which reads any text.
    """

    queries: tuple[str, ...]
    into: str
    spellings: tuple[TextSpelling, ...] = ()
    types: dict[str, int] = {}


class StatementStep(msgspec.Struct, frozen=True, tag="statement"):
    """Executes a statement in the target.

    Attributes:
        sql: the statement.
    """

    sql: str


class CheckStep(msgspec.Struct, frozen=True, tag="check"):
    """Looks for rows of a MariaDB target that lack their parent: it checks no foreign key while rows are copied."""


StepWork: TypeAlias = CopyStep | StatementStep | CheckStep


@dataclass(frozen=True, slots=True)
class LoadStep:
    """A step.

    Attributes:
        number: unique among the load's steps.
        stage: it begins when all steps of lower stages are done.
        schema, table: the table that it belongs to.
        work: what is done.
    """

    number: int
    stage: int
    schema: str
    table: str
    work: StepWork


FIRST_STATEMENT: Final = 1_000_000_000
"""The number of the first step that is a statement of ``init``; ranges have lower ones."""

STATEMENT_STAGE: Final = 1_000_000
"""The first stage of ``init``'s statements; those of ranges are below."""

CREATE: Final = (
    """
    CREATE TABLE IF NOT EXISTS kainite_load (
        log_partition text NOT NULL PRIMARY KEY,
        generation bigint NOT NULL,
        state text NOT NULL,
        position pg_lsn,
        snapshot text,
        source text,
        began_at timestamp with time zone NOT NULL DEFAULT CURRENT_TIMESTAMP,
        seen_at timestamp with time zone NOT NULL DEFAULT CURRENT_TIMESTAMP,
        live_at timestamp with time zone,
        cut_over_in xid8
    )""",
    """
    CREATE TABLE IF NOT EXISTS kainite_load_table (
        log_partition text NOT NULL,
        table_schema text NOT NULL,
        table_name text NOT NULL,
        position pg_lsn,
        state text NOT NULL DEFAULT 'live',
        reached pg_lsn,
        cause text,
        PRIMARY KEY (log_partition, table_schema, table_name)
    )""",
    """
    CREATE TABLE IF NOT EXISTS kainite_load_step (
        log_partition text NOT NULL,
        step bigint NOT NULL,
        stage integer NOT NULL,
        table_schema text NOT NULL,
        table_name text NOT NULL,
        work text NOT NULL,
        rows bigint,
        bytes bigint,
        cause text,
        done_at timestamp with time zone,
        PRIMARY KEY (log_partition, step)
    )""",
)

IS_THERE: Final = "SELECT to_regclass('kainite_load') IS NOT NULL"

# Closes the apply job's fence for good: the job has to begin again, and is let in when the state is live.
CLOSE_FENCE: Final = """
    INSERT INTO kainite_fence (log_partition, generation, micro_batch) VALUES (%s, %s, 9223372036854775807)
    ON CONFLICT (log_partition) DO UPDATE SET
        micro_batch = excluded.micro_batch, generation = greatest(kainite_fence.generation, excluded.generation)"""

# KEY SHARE of tasks lets the driver note its signs of life, and keeps this out.
LOCK: Final = "SELECT generation FROM kainite_load WHERE log_partition = %s FOR UPDATE"

BEGIN: Final = """
    INSERT INTO kainite_load (log_partition, generation, state) VALUES (%s, 1, 'loading')
    ON CONFLICT (log_partition) DO UPDATE SET
        generation = kainite_load.generation + 1, state = 'loading', position = NULL, snapshot = NULL, source = NULL,
        began_at = CURRENT_TIMESTAMP, seen_at = CURRENT_TIMESTAMP, live_at = NULL
    WHERE kainite_load.state <> 'cut over'
    RETURNING generation"""

GO_ON: Final = """
    UPDATE kainite_load SET generation = generation + 1, seen_at = CURRENT_TIMESTAMP
    WHERE log_partition = %s AND state = 'loading' AND position IS NOT NULL RETURNING generation"""

PREPARE: Final = """
    INSERT INTO kainite_load (log_partition, generation, state) VALUES (%s, 0, 'prepared')
    ON CONFLICT (log_partition) DO NOTHING"""

SET_POINT: Final = """
    UPDATE kainite_load SET position = %s::pg_lsn, snapshot = %s, source = %s
    WHERE log_partition = %s AND generation = %s AND state = 'loading'"""

VOID: Final = """
    UPDATE kainite_load SET position = NULL, snapshot = NULL
    WHERE log_partition = %s AND generation = %s AND state = 'loading'"""

FINISH: Final = """
    UPDATE kainite_load l SET state = 'live', live_at = CURRENT_TIMESTAMP, snapshot = NULL
    WHERE log_partition = %s AND generation = %s AND state = 'loading' AND position IS NOT NULL
      AND NOT EXISTS (SELECT FROM kainite_load_step s WHERE s.log_partition = l.log_partition AND s.done_at IS NULL)"""

CUT_OVER: Final = """
    UPDATE kainite_load l SET state = 'cut over', cut_over_in = pg_current_xact_id()
    WHERE log_partition = %s AND state = 'live'
      AND NOT EXISTS (SELECT FROM kainite_load_table t WHERE t.log_partition = l.log_partition AND t.state <> 'live')
      AND NOT EXISTS (SELECT FROM kainite_load_foreign_key k
                      WHERE k.log_partition = l.log_partition AND k.cause IS NULL)"""

IS_CUT_OVER: Final = "SELECT EXISTS (SELECT FROM kainite_load WHERE log_partition = %s AND state = 'cut over')"

# The relations of loads: their tables, with partitions and heirs.
RELATIONS: Final = """
    WITH RECURSIVE loaded (log_partition, oid) AS (
        SELECT log_partition, to_regclass(format('%%I.%%I', table_schema, table_name))::oid FROM kainite_load_table
        UNION SELECT w.log_partition, i.inhrelid FROM pg_inherits i JOIN loaded w ON i.inhparent = w.oid
    )
    SELECT DISTINCT oid::bigint FROM loaded JOIN kainite_load l USING (log_partition)
    WHERE oid IS NOT NULL AND (l.log_partition = %(log)s OR %(log)s::text IS NULL AND l.state = 'cut over')"""

# Whether another log's apply job has a fence in the target, and has not been shut out by a cut-over.
OTHERS_APPLY: Final = """
    SELECT EXISTS (
        SELECT FROM kainite_fence f WHERE f.log_partition <> %(log)s AND NOT EXISTS (
            SELECT FROM kainite_load l WHERE l.log_partition = f.log_partition AND l.state = 'cut over'))"""

# The snapshot is from before the statement's own transaction gets its id.
MAKE_LIVE_AGAIN: Final = """
    WITH now AS MATERIALIZED (SELECT pg_snapshot_xmax(pg_current_snapshot()) AS next)
    UPDATE kainite_load SET state = 'live' FROM now WHERE log_partition = %s AND state = 'cut over'
    RETURNING now.next::text::bigint - cut_over_in::text::bigint - 1"""

SEEN: Final = """
    UPDATE kainite_load SET seen_at = CURRENT_TIMESTAMP WHERE log_partition = %s AND generation = %s"""

READ: Final = """
    SELECT generation, state, (position - '0/0')::bigint AS position, snapshot, source,
           (extract(epoch FROM began_at) * 1000)::bigint AS began_ms,
           (extract(epoch FROM live_at) * 1000)::bigint AS live_ms,
           (extract(epoch FROM CURRENT_TIMESTAMP) * 1000)::bigint AS now_ms,
           EXISTS (SELECT FROM kainite_load_step s WHERE s.log_partition = l.log_partition
                   AND s.stage < 1000000 AND s.done_at IS NULL) AS copies
    FROM kainite_load l WHERE log_partition = %s"""

NOT_LIVE: Final = "SELECT state FROM kainite_load WHERE log_partition = %s AND state <> 'live'"

POSITIONS: Final = """
    SELECT table_schema, table_name, (position - '0/0')::bigint, state FROM kainite_load_table
    WHERE log_partition = %s"""

FORGET_TABLES: Final = "DELETE FROM kainite_load_table WHERE log_partition = %s"

FORGET_COPIES: Final = "DELETE FROM kainite_load_step WHERE log_partition = %s AND stage < 1000000"

NOTE_TABLES: Final = """
    INSERT INTO kainite_load_table (log_partition, table_schema, table_name, position)
    SELECT %s, t.*, %s::pg_lsn FROM unnest(%s::text[], %s::text[]) t"""

NOTE_STEPS: Final = """
    INSERT INTO kainite_load_step (log_partition, step, stage, table_schema, table_name, work)
    SELECT %s, * FROM unnest(%s::bigint[], %s::integer[], %s::text[], %s::text[], %s::text[])"""

LEFT: Final = """
    SELECT step FROM kainite_load_step
    WHERE log_partition = %(log)s AND done_at IS NULL AND step <> ALL(%(failed)s::bigint[])
      AND stage = (SELECT min(stage) FROM kainite_load_step WHERE log_partition = %(log)s AND done_at IS NULL)
    ORDER BY step"""

NAMES: Final = """
    SELECT step, format('%%I.%%I', table_schema, table_name) AS name FROM kainite_load_step
    WHERE log_partition = %s AND step = ANY(%s::bigint[]) ORDER BY step"""

FAILED: Final = """
    UPDATE kainite_load_step SET cause = %s WHERE log_partition = %s AND step = %s AND done_at IS NULL"""

# What a task reads and writes, in the transaction of its step.
HOLD: Final = """
    SELECT FROM kainite_load WHERE log_partition = %s AND generation = %s AND state = 'loading' FOR KEY SHARE"""

CLAIM: Final = """
    SELECT work FROM kainite_load_step WHERE log_partition = %s AND step = %s AND done_at IS NULL FOR UPDATE"""

DONE: Final = """
    UPDATE kainite_load_step SET done_at = clock_timestamp(), rows = %s, bytes = %s, cause = NULL
    WHERE log_partition = %s AND step = %s"""

END_SESSIONS: Final = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE application_name LIKE %s AND pid <> pg_backend_pid() AND datname = current_database()"""

_STEPS: Final[msgspec.json.Decoder[StepWork]] = msgspec.json.Decoder(StepWork)


def encoded(work: StepWork) -> str:
    """Returns the column ``work`` of a step."""
    return msgspec.json.encode(work).decode()


def decoded(text: str) -> StepWork:
    """Returns the work of a step; the inverse of :func:`encoded`."""
    return _STEPS.decode(text)


def session_name(log_partition: str, step: int | None = None) -> str:
    """Returns how the target lists the session of a step; without ``step`` a pattern of LIKE for those of all steps.

    By this name whoever runs the step again finds a session that was left behind. PostgreSQL keeps 63 bytes.
    """
    load = hashlib.sha256(log_partition.encode()).hexdigest()[:12]
    return f"kainite load {load} {'%' if step is None else step}"
