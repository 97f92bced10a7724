"""Kainite's own tables in SQLite. Pure.

:mod:`kainite_spark.targets.contract` says what the tables are for, and what a crash leaves in them.
"""

from __future__ import annotations

CREATE_APPLIED = """
    CREATE TABLE IF NOT EXISTS kainite_applied (
        log_partition text NOT NULL,
        transaction_id bigint NOT NULL,
        uow text NOT NULL,
        applied_at timestamp with time zone NOT NULL DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (log_partition, transaction_id)
    )"""

CREATE_FENCE = """
    CREATE TABLE IF NOT EXISTS kainite_fence (
        log_partition text NOT NULL PRIMARY KEY,
        generation bigint NOT NULL,
        micro_batch bigint NOT NULL
    )"""

CREATE_MARK = """
    CREATE TABLE IF NOT EXISTS kainite_mark (
        log_partition text NOT NULL PRIMARY KEY,
        everywhere_below bigint NOT NULL,
        noted_at timestamp with time zone NOT NULL DEFAULT CURRENT_TIMESTAMP
    )"""

CREATE_LOG_TABLE = """
    CREATE TABLE IF NOT EXISTS kainite_log_table (
        table_name text NOT NULL PRIMARY KEY,
        log text NOT NULL,
        log_partition text NOT NULL
    )"""

TABLES_OF_LOG = "SELECT table_name FROM kainite_log_table WHERE log_partition = ?"
GIVE_UP_TABLE = "DELETE FROM kainite_log_table WHERE table_name = ? AND log_partition = ?"

TAKE_TABLE = """
    INSERT INTO kainite_log_table (table_name, log, log_partition) VALUES (?, ?, ?)
    ON CONFLICT (table_name) DO UPDATE SET log_partition = excluded.log_partition
    WHERE kainite_log_table.log = excluded.log"""

TABLES_OF_OTHERS = "SELECT table_name, log FROM kainite_log_table WHERE log <> ?"

# The same generation may come again, when its driver lost the answer.
RAISE_GENERATION = """
    INSERT INTO kainite_fence (log_partition, generation, micro_batch) VALUES (?, ?, -1)
    ON CONFLICT (log_partition) DO UPDATE SET
        micro_batch = CASE WHEN kainite_fence.generation = excluded.generation
                           THEN kainite_fence.micro_batch ELSE -1 END,
        generation = excluded.generation
    WHERE kainite_fence.generation <= excluded.generation"""

BEGIN_MICRO_BATCH = """
    UPDATE kainite_fence SET micro_batch = ?
    WHERE log_partition = ? AND generation = ? AND micro_batch <= ?"""

# Strictly forward: a number that tasks may have shuts nobody out.
CLOSE_MICRO_BATCH = """
    UPDATE kainite_fence SET micro_batch = ?
    WHERE log_partition = ? AND generation = ? AND micro_batch < ?"""

# Forward only: a job that reads the log anew may know less than was noted.
NOTE_MARK = """
    INSERT INTO kainite_mark (log_partition, everywhere_below) VALUES (?, ?)
    ON CONFLICT (log_partition) DO UPDATE SET
        everywhere_below = excluded.everywhere_below, noted_at = CURRENT_TIMESTAMP
    WHERE kainite_mark.everywhere_below < excluded.everywhere_below"""

READ_FENCE = """
    SELECT generation, micro_batch FROM kainite_fence
    WHERE log_partition = ? AND generation = ? AND micro_batch = ?"""

FENCE = "SELECT generation, micro_batch FROM kainite_fence WHERE log_partition = ?"

ACKNOWLEDGE = "INSERT INTO kainite_applied (log_partition, transaction_id, uow) VALUES (?, ?, ?)"

APPLIED = """
    SELECT transaction_id FROM kainite_applied
    WHERE log_partition = ? AND transaction_id IN (SELECT value FROM json_each(?))"""

TRIM = "DELETE FROM kainite_applied WHERE log_partition = ? AND transaction_id < ?"
