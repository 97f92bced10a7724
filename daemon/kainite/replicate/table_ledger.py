"""What a target knows of tables that are loaded by themselves while the apply job goes on with all others. Pure.

``kainite replicate add`` and ``reload`` give a table a consistent point S of its own. Meanwhile the apply job *holds*
the table's deltas: it writes them into ``kainite_held_delta`` instead of the table, in the transaction that applies the
rest of their unit and acknowledges it. Deltas of other tables are applied as always. What is held of a large unit is
several rows, the *pieces*, in their order, and the last one is marked: a value takes 1 GB at most. Pieces of other
units may stand between them, where their transactions ran at the same time.

===========  ==========================================================================================================
state        means
===========  ==========================================================================================================
(no row)     Kainite has not loaded the table; its deltas are applied
loading      its rows are being copied; its deltas are held
catching up  its rows are copied; held deltas are applied one after the other, and new ones are held
failed       the copy, or a held delta, was refused; its deltas are still held
given up     too much was held, and nobody went on with the load; its deltas are neither applied nor held
live         the table is as of the same transaction as all others; its deltas are applied
===========  ==========================================================================================================

::

    (no row), live ──begin──► loading ──all ranges copied──► catching up ──all caught up──► live
                                 │  ▲                           │   ▲
                                 └──┴────────► failed ◄─────────┴───┘    start again: goes on, or begins anew

    loading, catching up, failed ──too much is held, and no driver lives──► given up ──begin──► loading

Beside its row in ``kainite_load_table`` a table has a load of its own in ``kainite_load`` and ``kainite_load_step``,
under :func:`load_name`, with the rules of :mod:`kainite.replicate.ledger`: steps, generations, what a task may commit.

Invariants:

1. A transaction of the apply job commits only if it was made for the present *version* of the tables' states
   (``kainite_fence.tables``). ``begin`` and ``go live`` raise the version; the row's lock lets them wait for the
   transactions that have read it, and keeps out later ones until they commit. So no running or frozen task writes to a
   table that is not live, nor holds deltas of one that is.
2. While a table is not live, nobody writes to it but the tasks of its load and the catching up.
3. Each held delta whose unit committed at S or later is applied once, those before S never: it is deleted in the
   transaction that applies it, and all pieces of a unit in one. Their order is the one in which they were held, which
   is the apply job's.
4. A table goes live only when the apply job has applied a unit that committed at S or later (``reached``), and no delta
   is held. From 3: the table is then as of the last unit that was applied, like all others. With
   ``targetConsistency=prefix`` that is a state of the source.
5. A foreign key that the target would check against a table that is not live is dropped by ``begin``, in the
   transaction that notes how it is made again; it is made again when both its tables are live. Meanwhile it counts as
   there for whoever reads the catalogue (:func:`kainite.targets.postgresql.catalogue.reading`): units that conflict by
   it keep their order, also behind the moment at which it is made again.

What a crash of the driver leaves, and what the next ``add`` or ``reload`` of the table does:

=====================================  =================================================================================
killed                                 next start
=====================================  =================================================================================
before ``begin`` commits               nothing has happened
between ``begin`` and the plan         *loading* without a point: begins anew
between the plan and the last range    goes on if the snapshot lives, else begins anew
while it catches up                    goes on with the deltas that are still held
while the fence is locked to go live   the lock is gone with the session; goes on
between *live* and the last            makes the foreign keys that are left; so does any other ``add``, ``reload`` or
foreign key                            ``load``
=====================================  =================================================================================

In each of them the apply job goes on holding the table's deltas, until it gives the table up
(:mod:`kainite.replicate.giving_up`); then the next start begins anew. A load of everything (``load --anew``) takes the
place of all loads of tables: their rows in these tables go in the transaction that begins it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # a target of MariaDB needs this module, and not PostgreSQL's driver
    from kainite.replicate.tables import TableName


class OwnLoadState(StrEnum):
    """The state of a table that has a load of its own; the module says what each means."""

    LOADING = "loading"
    CATCHING_UP = "catching up"
    FAILED = "failed"
    GIVEN_UP = "given up"
    LIVE = "live"


CREATE: Final = (
    """
    CREATE TABLE IF NOT EXISTS kainite_held_delta (
        place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        log_partition text NOT NULL,
        table_schema text NOT NULL,
        table_name text NOT NULL,
        transaction_id bigint NOT NULL,
        uow text NOT NULL,
        last boolean NOT NULL,
        deltas bytea NOT NULL
    )""",
    """
    CREATE TABLE IF NOT EXISTS kainite_load_foreign_key (
        log_partition text NOT NULL,
        constraint_name text NOT NULL,
        child_schema text NOT NULL,
        child_name text NOT NULL,
        parent_schema text NOT NULL,
        parent_name text NOT NULL,
        child_columns text[] NOT NULL,
        parent_columns text[] NOT NULL,
        may_defer boolean NOT NULL,
        on_delete text NOT NULL,
        on_update text NOT NULL,
        add_sql text NOT NULL,
        validate_sql text,
        cause text,
        PRIMARY KEY (log_partition, child_schema, child_name, constraint_name)
    )""",
)

# Waits for the transactions that were made for the version before, and lets none begin until this one commits.
RAISE_VERSION: Final = """
    INSERT INTO kainite_fence (log_partition, generation, micro_batch, tables) VALUES (%s, -1, -1, 1)
    ON CONFLICT (log_partition) DO UPDATE SET tables = kainite_fence.tables + 1"""

VERSION: Final = "SELECT tables FROM kainite_fence WHERE log_partition = %s"

# The load of everything; it cannot begin before this transaction ends, since it closes the fence first.
WHOLE: Final = "SELECT state, source FROM kainite_load WHERE log_partition = %s"

SET_LOADING: Final = """
    INSERT INTO kainite_load_table (log_partition, table_schema, table_name, state) VALUES (%s, %s, %s, 'loading')
    ON CONFLICT (log_partition, table_schema, table_name)
    DO UPDATE SET state = 'loading', position = NULL, reached = NULL, cause = NULL"""

SET_POSITION: Final = """
    UPDATE kainite_load_table SET position = %s::pg_lsn
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s AND state <> 'live'"""

SET_STATE: Final = """
    UPDATE kainite_load_table SET state = %s, cause = %s
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s AND state <> 'live'"""

GO_LIVE: Final = """
    UPDATE kainite_load_table t SET state = 'live', cause = NULL
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s AND reached >= position
      AND NOT EXISTS (SELECT FROM kainite_held_delta h WHERE h.log_partition = t.log_partition
                      AND h.table_schema = t.table_schema AND h.table_name = t.table_name)"""

READ: Final = """
    SELECT state, (position - '0/0')::bigint AS position, (reached - '0/0')::bigint AS reached, cause
    FROM kainite_load_table WHERE log_partition = %s AND table_schema = %s AND table_name = %s"""

READ_ALL: Final = """
    SELECT table_schema AS schema, table_name AS name, state, (position - '0/0')::bigint AS position,
           (reached - '0/0')::bigint AS reached, cause,
           (SELECT count(*) FROM kainite_held_delta h WHERE h.last AND h.log_partition = t.log_partition
              AND h.table_schema = t.table_schema AND h.table_name = t.table_name) AS held
    FROM kainite_load_table t WHERE log_partition = %s ORDER BY 1, 2"""

# The size of a long value is known without reading it.
HELD_PLACES: Final = """
    SELECT place, transaction_id AS tid, last, octet_length(deltas)::bigint AS size FROM kainite_held_delta
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s ORDER BY place LIMIT %s"""

HELD: Final = """
    SELECT place, last, transaction_id AS tid, uow, deltas FROM kainite_held_delta
    WHERE place = ANY(%s::bigint[]) ORDER BY place"""

FORGET_HELD: Final = """
    DELETE FROM kainite_held_delta WHERE log_partition = %s AND table_schema = %s AND table_name = %s"""

# Under the generation of the table's load alone, which a driver that begins or goes on raises.
TAKE_HELD: Final = """
    WITH load AS MATERIALIZED (
        SELECT generation FROM kainite_load WHERE log_partition = %s AND generation = %s AND state = 'loading'
        FOR KEY SHARE)
    DELETE FROM kainite_held_delta h USING load WHERE h.place = ANY(%s::bigint[])"""

# What the apply job writes, in the transaction of the units.
HOLD: Final = """
    INSERT INTO kainite_held_delta (log_partition, table_schema, table_name, transaction_id, uow, last, deltas)
    SELECT %s, h.schema, h.name, h.tid, h.uow, h.last, h.deltas
    FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::text[], %s::boolean[], %s::bytea[])
         WITH ORDINALITY AS h (schema, name, tid, uow, last, deltas, place) ORDER BY h.place"""

# Not behind the point: tasks would wait for one another's lock on the row for as long as the table is not live.
REACHED: Final = """
    UPDATE kainite_load_table SET reached = %s::pg_lsn
    WHERE log_partition = %s AND state NOT IN ('live', 'given up') AND (reached IS NULL OR reached < %s::pg_lsn)
      AND (position IS NULL OR reached IS NULL OR reached < position)"""

NOTE_FOREIGN_KEY: Final = """
    INSERT INTO kainite_load_foreign_key (
        log_partition, constraint_name, child_schema, child_name, parent_schema, parent_name, child_columns,
        parent_columns, may_defer, on_delete, on_update, add_sql, validate_sql)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (log_partition, child_schema, child_name, constraint_name) DO UPDATE SET
        add_sql = excluded.add_sql, cause = NULL,
        validate_sql = coalesce(kainite_load_foreign_key.validate_sql, excluded.validate_sql)"""

# Foreign keys whose two tables are live: a partition's own waits for the whole too, and that of a whole for its parts.
_BOTH_LIVE: Final = """NOT EXISTS (
        SELECT FROM kainite_load_table t,
            (VALUES (k.child_schema, k.child_name), (k.parent_schema, k.parent_name)) AS side (schema, name),
            to_regclass(format('%%I.%%I', side.schema, side.name)) AS one,
            to_regclass(format('%%I.%%I', t.table_schema, t.table_name)) AS other
        WHERE t.log_partition = k.log_partition AND t.state <> 'live'
          AND (one = other OR other IN (SELECT relid FROM pg_partition_ancestors(one))
               OR one IN (SELECT relid FROM pg_partition_ancestors(other))))"""

MAKEABLE: Final = f"""
    SELECT constraint_name AS name, child_schema AS schema, child_name AS child, validate_sql
    FROM kainite_load_foreign_key k
    WHERE log_partition = %s AND {_BOTH_LIVE} ORDER BY 2, 3, 1"""

# No load of a table begins while this is held.
HOLD_VERSION: Final = "SELECT FROM kainite_fence WHERE log_partition = %s FOR SHARE"

CLAIM_FOREIGN_KEY: Final = f"""
    SELECT add_sql FROM kainite_load_foreign_key k
    WHERE log_partition = %s AND child_schema = %s AND child_name = %s AND constraint_name = %s AND {_BOTH_LIVE}
    FOR UPDATE"""

FORGET_FOREIGN_KEY: Final = """
    DELETE FROM kainite_load_foreign_key
    WHERE log_partition = %s AND child_schema = %s AND child_name = %s AND constraint_name = %s"""

FOREIGN_KEY_ADDED: Final = """
    UPDATE kainite_load_foreign_key SET add_sql = '', cause = NULL
    WHERE log_partition = %s AND child_schema = %s AND child_name = %s AND constraint_name = %s"""

FOREIGN_KEY_REFUSED: Final = """
    UPDATE kainite_load_foreign_key SET cause = %s
    WHERE log_partition = %s AND child_schema = %s AND child_name = %s AND constraint_name = %s"""

FOREIGN_KEYS_LEFT: Final = """
    SELECT format('%%s.%%s %%s', child_schema, child_name, constraint_name) AS name, cause
    FROM kainite_load_foreign_key WHERE log_partition = %s ORDER BY 1"""

# A load of everything takes the place of all loads of tables.
END_OWN_LOADS: Final = "DELETE FROM kainite_load WHERE starts_with(log_partition, %s)"
END_OWN_STEPS: Final = "DELETE FROM kainite_load_step WHERE starts_with(log_partition, %s)"
FORGET_ALL_HELD: Final = "DELETE FROM kainite_held_delta WHERE log_partition = %s"


def why_given_up(held: int) -> str:
    """Returns the cause of a table that is given up (:mod:`kainite.replicate.giving_up`); ``held`` is in bytes."""
    return f"{held:,} bytes of changes were held, more than targetHeldBytes"


def load_name(log_partition: str, table: TableName) -> str:
    """Returns the name under which a table's own load stands in ``kainite_load``."""
    return f"{names_begin(log_partition)}{table[0]}.{table[1]}"


def names_begin(log_partition: str) -> str:
    """Returns how the names of the loads of single tables of a log begin; no log partition's name has a space."""
    return f"{log_partition} table "
