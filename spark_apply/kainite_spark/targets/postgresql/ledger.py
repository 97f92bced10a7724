"""Kainite's own tables in PostgreSQL. Pure.

:mod:`kainite_spark.targets.contract` says what the tables are for, and what a crash leaves in them.
"""

from __future__ import annotations

from collections.abc import Iterable

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
        micro_batch bigint NOT NULL,
        tables bigint NOT NULL DEFAULT 0
    )"""

CREATE_MARK = """
    CREATE TABLE IF NOT EXISTS kainite_mark (
        log_partition text NOT NULL PRIMARY KEY,
        everywhere_below bigint NOT NULL,
        noted_at timestamp with time zone NOT NULL DEFAULT CURRENT_TIMESTAMP
    )"""

# The same generation may come again, when its driver lost the answer.
RAISE_GENERATION = """
    INSERT INTO kainite_fence (log_partition, generation, micro_batch) VALUES (%s, %s, -1)
    ON CONFLICT (log_partition) DO UPDATE SET
        micro_batch = CASE WHEN kainite_fence.generation = excluded.generation
                           THEN kainite_fence.micro_batch ELSE -1 END,
        generation = excluded.generation
    WHERE kainite_fence.generation <= excluded.generation"""

BEGIN_MICRO_BATCH = """
    UPDATE kainite_fence SET micro_batch = %s
    WHERE log_partition = %s AND generation = %s AND micro_batch <= %s"""

# Strictly forward: a number that tasks may have shuts nobody out.
CLOSE_MICRO_BATCH = """
    UPDATE kainite_fence SET micro_batch = %s
    WHERE log_partition = %s AND generation = %s AND micro_batch < %s"""

# Forward only: a job that reads the log anew may know less than was noted.
NOTE_MARK = """
    INSERT INTO kainite_mark (log_partition, everywhere_below) VALUES (%s, %s)
    ON CONFLICT (log_partition) DO UPDATE SET
        everywhere_below = excluded.everywhere_below, noted_at = CURRENT_TIMESTAMP
    WHERE kainite_mark.everywhere_below < excluded.everywhere_below"""

# ``tables`` is the version of the tables' states (kainite.replicate.table_ledger).
READ_FENCE = """
    SELECT generation, micro_batch FROM kainite_fence
    WHERE log_partition = %s AND generation = %s AND micro_batch = %s AND tables = %s"""

# Waits for the transactions of the micro-batch before, as the updates above do.
LOCK_FENCE = "SELECT generation, micro_batch FROM kainite_fence WHERE log_partition = %s FOR UPDATE"

TRIM = "DELETE FROM kainite_applied WHERE log_partition = %s AND transaction_id < %s"

# One statement locks the fence's row and writes the acknowledgements: without the fence none is written.
ACKNOWLEDGE = f"""
    WITH fence AS MATERIALIZED ({READ_FENCE} FOR SHARE)
    INSERT INTO kainite_applied (log_partition, transaction_id, uow)
    SELECT %s, u.tid, u.uow FROM fence, unnest(%s::bigint[], %s::text[]) AS u(tid, uow)"""

COUNT_APPLIED = """
    SELECT count(*) FROM kainite_applied WHERE log_partition = %s AND transaction_id = ANY(%s::bigint[])"""

APPLIED = """
    SELECT transaction_id FROM kainite_applied WHERE log_partition = %s AND transaction_id = ANY(%s::bigint[])"""


def array_of_numbers(numbers: Iterable[int]) -> str:
    """Returns an array as PostgreSQL reads it. To spell a list takes psycopg four times as long."""
    return "{" + ",".join(map(str, numbers)) + "}"


def array_of_texts(texts: Iterable[str]) -> str:
    """Returns an array as PostgreSQL reads it, whatever is in the texts."""
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join([f'"{each}"' for each in escaped]) + "}"
