"""The statements of :mod:`kainite.replicate.stop_ledger` in MariaDB's SQL. Pure.

The states and invariants are the same. Rows are looked at in autocommit mode, each time as they are by then.
"""

from __future__ import annotations

from typing import Final

from kainite.replicate.stop_ledger import BEAT, END, StopStatements

MARIADB: Final = StopStatements(
    create="""
    CREATE TABLE IF NOT EXISTS kainite_verify (
        log_partition varchar(255) NOT NULL PRIMARY KEY,
        request bigint NOT NULL,
        state varchar(20) NOT NULL,
        floor bigint unsigned,
        position bigint unsigned,
        generation bigint,
        micro_batch bigint,
        units longblob,
        beat bigint NOT NULL DEFAULT 0,
        held_ms bigint,
        result longtext
    ) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin""",
    is_there="""
    SELECT EXISTS (SELECT 1 FROM information_schema.tables
                   WHERE table_schema = DATABASE() AND table_name = 'kainite_verify')""",
    # Names of locks are the server's, not a database's, and have 64 characters at most.
    one_at_a_time="""
    SELECT GET_LOCK(CONCAT('kainite verify ', LEFT(SHA2(CONCAT(DATABASE(), '/', %s), 256), 32)), 0) = 1""",
    ask="""
    INSERT INTO kainite_verify (log_partition, request, state, floor) VALUES (%s, 1, 'asked', %s)
    ON DUPLICATE KEY UPDATE
        request = request + 1, state = 'asked', floor = VALUES(floor), position = NULL,
        generation = NULL, micro_batch = NULL, units = NULL, beat = 0, held_ms = NULL""",
    beat=BEAT,
    end=END,
    await_="""
    SELECT v.state, v.generation <=> f.generation AS attends
    FROM kainite_verify v LEFT JOIN kainite_fence f ON f.log_partition = v.log_partition
    WHERE v.log_partition = %s AND v.request = %s""",
    see="""
    SELECT v.units, '' AS snapshot FROM kainite_verify v JOIN kainite_fence f
      ON f.log_partition = v.log_partition AND f.generation = v.generation AND f.micro_batch = v.micro_batch
    WHERE v.log_partition = %s AND v.request = %s AND v.state = 'stopped'""",
    set_position="""
    UPDATE kainite_verify SET position = %s WHERE log_partition = %s AND request = %s AND state = 'attended'""",
    note_result="""
    INSERT INTO kainite_verify (result, log_partition, request, state) VALUES (%s, %s, 0, 'over')
    ON DUPLICATE KEY UPDATE result = VALUES(result)""",
    look="""
    SELECT request, state, floor, position, generation, beat
    FROM kainite_verify WHERE log_partition = %s AND state IN ('asked', 'attended', 'stopped')""",
)
