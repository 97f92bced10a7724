"""Kainite's own tables in MariaDB. Pure.

:mod:`kainite_spark.targets.contract` says what the tables are for, and what a crash leaves in them;
:mod:`~kainite_spark.targets.mariadb.prepared` what ``kainite_prepared`` is for. DDL commits silently there, so they are
made outside of any transaction, before the job's first one.
"""

from __future__ import annotations

from typing import Final

TABLES: Final = ("kainite_applied", "kainite_fence", "kainite_prepared", "kainite_log_table")

_OPTIONS: Final = "ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

CREATE: Final = (
    f"""
    CREATE TABLE IF NOT EXISTS kainite_applied (
        log_partition varchar(255) NOT NULL,
        transaction_id bigint NOT NULL,
        uow varchar(1024) NOT NULL,
        applied_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        PRIMARY KEY (log_partition, transaction_id)
    ) {_OPTIONS}""",
    f"""
    CREATE TABLE IF NOT EXISTS kainite_fence (
        log_partition varchar(255) NOT NULL PRIMARY KEY,
        generation bigint NOT NULL,
        micro_batch bigint NOT NULL,
        tables bigint NOT NULL DEFAULT 0
    ) {_OPTIONS}""",
    f"""
    CREATE TABLE IF NOT EXISTS kainite_prepared (
        log_partition varchar(255) NOT NULL,
        gid varchar(200) NOT NULL,
        began_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        PRIMARY KEY (log_partition, gid)
    ) {_OPTIONS}""",
    f"""
    CREATE TABLE IF NOT EXISTS kainite_log_table (
        table_name varchar(200) NOT NULL PRIMARY KEY,
        log varchar(255) NOT NULL,
        log_partition varchar(255) NOT NULL
    ) {_OPTIONS}""",
)

CREATE_MARK: Final = f"""
    CREATE TABLE IF NOT EXISTS kainite_mark (
        log_partition varchar(255) NOT NULL PRIMARY KEY,
        everywhere_below bigint NOT NULL,
        noted_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
    ) {_OPTIONS}"""

FENCE: Final = "SELECT generation, micro_batch FROM kainite_fence WHERE log_partition = %s"

# ``tables`` is the version of the tables' states (kainite.replicate.table_ledger).
SHARE_FENCE: Final = """
    SELECT generation, micro_batch, tables FROM kainite_fence WHERE log_partition = %s LOCK IN SHARE MODE"""

# Waits for the transactions of the micro-batch before.
LOCK_FENCE: Final = f"{FENCE} FOR UPDATE"

# Waits for the transactions that are prepared. Not the DELETE alone: an UPDATE at READ COMMITTED passes over rows that
# are not committed yet, and it is not documented that a DELETE does not.
HOLDERS: Final = "SELECT gid FROM kainite_prepared WHERE log_partition = %s FOR UPDATE"

FORGET_HOLDERS: Final = "DELETE FROM kainite_prepared WHERE log_partition = %s"

HOLD: Final = "INSERT INTO kainite_prepared (log_partition, gid) VALUES "

HOLDING: Final = """
    SELECT gid, TIMESTAMPDIFF(MICROSECOND, began_at, SYSDATE(6)) / 1e6 FROM kainite_prepared ORDER BY began_at, gid"""

NEW_FENCE: Final = "INSERT INTO kainite_fence (log_partition, generation, micro_batch) VALUES (%s, %s, -1)"

ADVANCE: Final = "UPDATE kainite_fence SET generation = %s, micro_batch = %s WHERE log_partition = %s"

# Forward only: a job that reads the log anew may know less than was noted. The key is the table's only one.
NOTE_MARK: Final = """
    INSERT INTO kainite_mark (log_partition, everywhere_below) VALUES (%s, %s)
    ON DUPLICATE KEY UPDATE
        noted_at = IF(everywhere_below < VALUES(everywhere_below), CURRENT_TIMESTAMP(6), noted_at),
        everywhere_below = GREATEST(everywhere_below, VALUES(everywhere_below))"""

ACKNOWLEDGE: Final = "INSERT INTO kainite_applied (log_partition, transaction_id, uow) VALUES "

APPLIED: Final = "SELECT transaction_id FROM kainite_applied WHERE log_partition = %s AND transaction_id IN %s"

TRIM: Final = "DELETE FROM kainite_applied WHERE log_partition = %s AND transaction_id < %s"
