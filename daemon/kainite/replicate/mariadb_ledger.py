"""What a MariaDB target knows of its load: the tables of :mod:`kainite.replicate.ledger`, in MariaDB's own SQL. Pure.

States and invariants are those of :mod:`~kainite.replicate.ledger`, but for *prepared*, which does not come about
here; tables that are loaded by themselves are :mod:`~kainite.replicate.mariadb_table_ledger`'s. What is otherwise:

* **DDL commits silently**, so the ledger's tables are made before anything else, and ``TRUNCATE`` cannot stand in the
  transaction that sets the point. Tables are emptied between ``begin`` and ``plan``, while the load is *loading*
  without a point, on the session that holds the driver's lock (:data:`ONE_DRIVER`): a driver that is frozen keeps its
  lock, so no other one has begun; one whose session was ended can send nothing. A crash in between leaves *loading*
  without a point, so the next load begins anew, and empties the same tables: what it empties is what the ledger has.
* **The driver's signs of life** have a table of their own: a task holds the row of ``kainite_load`` shared, which an
  update of the same row would wait for.
* **Sessions that were left behind** are found by the lock that each task's session holds (:func:`step_lock`), since
  the server lists no names of sessions; whoever repeats the step ends the lock's holder by ``KILL``. Nothing depends
  on that: a step commits only under its load's generation, and once. It only shortens the wait.
* **Foreign keys are not checked while rows are copied** (``foreign_key_checks = 0`` in the tasks' sessions alone), and
  MariaDB never checks them later. So ranges are copied in any order, also of tables that reference themselves, and
  behind the last one a step of each table (:class:`~kainite.replicate.ledger.CheckStep`) looks for rows that lack their
  parent. The load is *live* only when none does: nobody else writes meanwhile, and what the apply job writes then is
  checked as it is written.
* **A cut-over** notes the binlog's GTIDs as its transaction found them (``cut_over_in``; :func:`written_since`): the
  server has no other number of transactions that outlives its restart.

What a crash leaves is what :mod:`~kainite.replicate.ledger` says. Steps of the stage :data:`CHECK_STAGE` need no
snapshot, as statements there.
"""

from __future__ import annotations

import hashlib
from typing import Final

from kainite.replicate.ledger import STATEMENT_STAGE

CHECK_STAGE: Final = STATEMENT_STAGE
"""The stage of the steps that look at foreign keys; those of ranges are below."""

_OPTIONS: Final = "ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

CREATE: Final = (
    f"""
    CREATE TABLE IF NOT EXISTS kainite_load (
        log_partition varchar(255) NOT NULL PRIMARY KEY,
        generation bigint NOT NULL,
        state varchar(20) NOT NULL,
        position bigint unsigned,
        snapshot varchar(1024),
        source varchar(1024),
        began_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        live_at timestamp(6) NULL,
        cut_over_in varchar(1024)
    ) {_OPTIONS}""",
    f"""
    CREATE TABLE IF NOT EXISTS kainite_load_seen (
        log_partition varchar(255) NOT NULL PRIMARY KEY,
        seen_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
    ) {_OPTIONS}""",
    f"""
    CREATE TABLE IF NOT EXISTS kainite_load_table (
        log_partition varchar(255) NOT NULL,
        table_schema varchar(64) NOT NULL,
        table_name varchar(64) NOT NULL,
        position bigint unsigned NOT NULL,
        state varchar(20) NOT NULL DEFAULT 'live',
        reached bigint unsigned,
        cause text,
        PRIMARY KEY (log_partition, table_schema, table_name)
    ) {_OPTIONS}""",
    f"""
    CREATE TABLE IF NOT EXISTS kainite_load_step (
        log_partition varchar(255) NOT NULL,
        step bigint NOT NULL,
        stage integer NOT NULL,
        table_schema varchar(64) NOT NULL,
        table_name varchar(64) NOT NULL,
        work longtext NOT NULL,
        copied_rows bigint,
        copied_bytes bigint,
        cause text,
        done_at timestamp(6) NULL,
        PRIMARY KEY (log_partition, step)
    ) {_OPTIONS}""",
)

TABLES: Final = ("kainite_load", "kainite_load_seen", "kainite_load_table", "kainite_load_step")

# Locks of sessions: they end with the session, whatever ends it.
ONE_DRIVER: Final = "SELECT GET_LOCK(%s, 0)"
HOLDER: Final = "SELECT IS_USED_LOCK(%s)"
TAKE_STEP: Final = "SELECT GET_LOCK(%s, %s)"
GIVE_BACK: Final = "SELECT RELEASE_LOCK(%s)"
LEFT_SESSIONS: Final = """
    SELECT DISTINCT IS_USED_LOCK(CONCAT(%s, step)) AS holder FROM kainite_load_step
    WHERE log_partition = %s AND done_at IS NULL HAVING holder IS NOT NULL"""

# Closes the apply job's fence for good: the job has to begin again, and is let in when the state is live.
CLOSE_FENCE: Final = """
    INSERT INTO kainite_fence (log_partition, generation, micro_batch) VALUES (%s, %s, 9223372036854775807)
    ON DUPLICATE KEY UPDATE generation = GREATEST(generation, VALUES(generation)), micro_batch = VALUES(micro_batch)"""

LOCK: Final = "SELECT generation, state FROM kainite_load WHERE log_partition = %s FOR UPDATE"

BEGIN: Final = """
    INSERT INTO kainite_load (log_partition, generation, state) VALUES (%s, 1, 'loading')
    ON DUPLICATE KEY UPDATE generation = generation + 1, state = 'loading', position = NULL, snapshot = NULL,
        source = NULL, began_at = CURRENT_TIMESTAMP(6), live_at = NULL"""

GO_ON: Final = """
    UPDATE kainite_load SET generation = generation + 1
    WHERE log_partition = %s AND state = 'loading' AND position IS NOT NULL"""

SET_POINT: Final = """
    UPDATE kainite_load SET position = %s, snapshot = %s, source = %s
    WHERE log_partition = %s AND generation = %s AND state = 'loading'"""

VOID: Final = """
    UPDATE kainite_load SET position = NULL, snapshot = NULL
    WHERE log_partition = %s AND generation = %s AND state = 'loading'"""

FINISH: Final = """
    UPDATE kainite_load l SET state = 'live', live_at = CURRENT_TIMESTAMP(6), snapshot = NULL
    WHERE log_partition = %s AND generation = %s AND state = 'loading' AND position IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM kainite_load_step s WHERE s.log_partition = l.log_partition AND s.done_at IS NULL)
    """

CUT_OVER: Final = """
    UPDATE kainite_load l SET state = 'cut over', cut_over_in = %s WHERE log_partition = %s AND state = 'live'
      AND NOT EXISTS (SELECT 1 FROM kainite_load_table t WHERE t.log_partition = l.log_partition AND t.state <> 'live')
      AND NOT EXISTS (SELECT 1 FROM kainite_load_foreign_key k
                      WHERE k.log_partition = l.log_partition AND k.cause IS NULL)"""

CUT_OVER_IN: Final = """
    SELECT cut_over_in FROM kainite_load WHERE log_partition = %s AND state = 'cut over' FOR UPDATE"""

MAKE_LIVE_AGAIN: Final = "UPDATE kainite_load SET state = 'live', cut_over_in = NULL WHERE log_partition = %s"

# The transactions in the server's binlog, by their domains; NULL where it writes none.
BINLOG_GTIDS: Final = "SELECT IF(@@global.log_bin, @@global.gtid_binlog_pos, NULL)"

# The tables that cut-overs have handed over to others, of whichever log.
HANDED_OVER: Final = """
    SELECT table_schema, table_name FROM kainite_load_table JOIN kainite_load l USING (log_partition)
    WHERE l.state = 'cut over'"""

IS_ITS: Final = "SELECT 1 FROM kainite_load WHERE log_partition = %s AND generation = %s"

SEEN: Final = """
    INSERT INTO kainite_load_seen (log_partition) VALUES (%s)
    ON DUPLICATE KEY UPDATE seen_at = CURRENT_TIMESTAMP(6)"""

READ: Final = """
    SELECT generation, state, position, snapshot, source, CAST(UNIX_TIMESTAMP(began_at) * 1000 AS SIGNED),
           CAST(UNIX_TIMESTAMP(live_at) * 1000 AS SIGNED), CAST(UNIX_TIMESTAMP(CURRENT_TIMESTAMP(6)) * 1000 AS SIGNED),
           EXISTS (SELECT 1 FROM kainite_load_step s WHERE s.log_partition = l.log_partition
                   AND s.stage < 1000000 AND s.done_at IS NULL)
    FROM kainite_load l WHERE log_partition = %s"""

SNAPSHOT_NEEDED: Final = """
    SELECT snapshot IS NULL AND generation = %s
        OR snapshot = %s AND EXISTS (SELECT 1 FROM kainite_load_step s WHERE s.log_partition = l.log_partition
                                     AND s.stage < 1000000 AND s.done_at IS NULL)
    FROM kainite_load l JOIN kainite_load_seen USING (log_partition)
    WHERE log_partition = %s AND state = 'loading' AND seen_at > CURRENT_TIMESTAMP(6) - INTERVAL %s SECOND"""

STATE: Final = "SELECT state FROM kainite_load WHERE log_partition = %s"

POSITIONS: Final = "SELECT table_schema, table_name, position FROM kainite_load_table WHERE log_partition = %s"

FORGET_TABLES: Final = "DELETE FROM kainite_load_table WHERE log_partition = %s"

FORGET_STEPS: Final = "DELETE FROM kainite_load_step WHERE log_partition = %s"

NOTE_TABLE: Final = """
    INSERT INTO kainite_load_table (log_partition, table_schema, table_name, position) VALUES (%s, %s, %s, %s)"""

NOTE_STEP: Final = """
    INSERT INTO kainite_load_step (log_partition, step, stage, table_schema, table_name, work)
    VALUES (%s, %s, %s, %s, %s, %s)"""

LEFT: Final = """
    SELECT step FROM kainite_load_step WHERE log_partition = %s AND done_at IS NULL AND stage = (
        SELECT MIN(stage) FROM kainite_load_step WHERE log_partition = %s AND done_at IS NULL)
    ORDER BY step"""

NAMES: Final = """
    SELECT step, CONCAT(table_schema, '.', table_name) FROM kainite_load_step
    WHERE log_partition = %s AND step IN %s ORDER BY step"""

FAILED: Final = """
    UPDATE kainite_load_step SET cause = %s WHERE log_partition = %s AND step = %s AND done_at IS NULL"""

# What a task reads and writes, in the transaction of its step.
HOLD: Final = """
    SELECT 1 FROM kainite_load WHERE log_partition = %s AND generation = %s AND state = 'loading' LOCK IN SHARE MODE"""

CLAIM: Final = """
    SELECT work, table_schema, table_name FROM kainite_load_step
    WHERE log_partition = %s AND step = %s AND done_at IS NULL FOR UPDATE"""

DONE: Final = """
    UPDATE kainite_load_step SET done_at = SYSDATE(6), copied_rows = %s, copied_bytes = %s, cause = NULL
    WHERE log_partition = %s AND step = %s"""

# For the status: what is copied of each table, and what has been found of its foreign keys.
COPIED: Final = f"""
    SELECT table_schema, table_name, CAST(SUM(stage < {CHECK_STAGE}) AS SIGNED),
           CAST(SUM(stage < {CHECK_STAGE} AND done_at IS NOT NULL) AS SIGNED),
           CAST(COALESCE(SUM(copied_rows), 0) AS SIGNED), CAST(COALESCE(SUM(copied_bytes), 0) AS SIGNED),
           MAX(IF(stage < {CHECK_STAGE}, cause, NULL))
    FROM kainite_load_step WHERE log_partition = %s GROUP BY table_schema, table_name
    HAVING SUM(stage < {CHECK_STAGE}) > 0 ORDER BY table_schema, table_name"""

CHECKED: Final = f"""
    SELECT table_schema, table_name, done_at IS NOT NULL, cause FROM kainite_load_step
    WHERE log_partition = %s AND stage >= {CHECK_STAGE} ORDER BY step"""


def written_since(then: str | None, now: str | None) -> int | None:
    """Returns how many transactions the binlog has from after a cut-over; None where it does not tell.

    Args:
        then: the binlog's GTIDs as the cut-over's own transaction found them; None for a server without a binlog.
        now: those of now.
    """
    if then is None or now is None:
        return None
    before, after = _numbers(then), _numbers(now)
    counts = [after.get(domain, 0) - before.get(domain, 0) for domain in {**before, **after}]
    # One is the cut-over's own; fewer are there where the binlog was begun anew meanwhile (RESET MASTER).
    return sum(counts) - 1 if sum(counts) > 0 and min(counts) >= 0 else None


def _numbers(gtids: str) -> dict[str, int]:
    """Returns the number of the latest transaction of each domain."""
    parts = [gtid.split("-") for gtid in gtids.split(",") if gtid]
    return {domain: int(number) for domain, _, number in parts}


def driver_lock(database: str, log_partition: str) -> str:
    """Returns the name of the lock that the one driver of a load holds."""
    return f"kainite load {_digest(database, log_partition)} driver"


def step_lock(database: str, log_partition: str, step: int | str = "") -> str:
    """Returns the name of the lock that the session of a step holds; without ``step`` what the names begin with.

    Names of locks are the server's, not a database's, and have 64 characters at most.
    """
    return f"kainite load {_digest(database, log_partition)} {step}"


def _digest(database: str, log_partition: str) -> str:
    return hashlib.sha256(f"{database}\0{log_partition}".encode()).hexdigest()[:16]
