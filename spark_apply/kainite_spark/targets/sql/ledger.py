"""Kainite's own two tables in a target, in SQL that PostgreSQL and SQLite share. Pure.

Placeholders are ``%s``; :func:`qmark` turns them into SQLite's. :mod:`kainite_spark.targets.contract`
says what the tables are for, and what a crash leaves in them.
"""

from __future__ import annotations

from kainite.base.errors import TargetRejectedError, TargetUnavailableError
from kainite.uow.delta import Delta
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.statements.planner import Statement

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

READ_FENCE = """
    SELECT generation, micro_batch FROM kainite_fence
    WHERE log_partition = %s AND generation = %s AND micro_batch = %s"""

TRIM = "DELETE FROM kainite_applied WHERE log_partition = %s AND transaction_id < %s"


def qmark(sql: str) -> str:
    """Returns the statement with SQLite's placeholders."""
    return sql.replace("%s", "?")


def already_applied(fence: Fence) -> TargetUnavailableError:
    """Returns the error of a group of which another task acknowledged a unit meanwhile.

    The caller reads the acknowledgements again and applies the rest.
    """
    return TargetUnavailableError(
        f"units of log partition {fence.log_partition!r} were acknowledged by another task meanwhile: "
        "read the acknowledgements again"
    )


def missed(statement: Statement, met: int) -> TargetRejectedError:
    """Returns the error of a delta that met no row: the target differs from the source; the change would be lost."""
    shape, deltas = statement.shape, statement.deltas
    if len(deltas) > 1:
        return TargetRejectedError(f"{shape.table}: {shape.op} met {met} rows for {len(deltas)} deltas")
    return TargetRejectedError(f"{shape.table}: {shape.op} met {met} rows, not 1, with {_plain(deltas[0])}")


def _plain(delta: Delta) -> str:
    named = delta.key or delta.row
    return f"({', '.join(named)}) = ({', '.join(map(str, named.values()))})"
