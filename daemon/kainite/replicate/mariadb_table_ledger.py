"""What a MariaDB target knows of tables that are loaded by themselves: :mod:`kainite.replicate.table_ledger`'s. Pure.

States and invariants are those of :mod:`~kainite.replicate.table_ledger`, in MariaDB's own SQL. What is otherwise
follows from one thing: **DDL commits silently**, so tables are not made or emptied, nor foreign keys dropped or added,
in the transaction that changes a state.

* **Foreign keys** are noted, then dropped, *before* the transaction that sets *loading*. In between the table is as it
  was and units are applied to it; merely nobody checks them, and the rows are looked at when the foreign key comes
  back. They are made again when both tables are live, without a look at the rows (``foreign_key_checks = 0``, which is
  the only way that holds up no writer), and rows that lack their parent are searched for behind that, since from then
  on the server lets no other one in. The note goes when there is none (:mod:`~kainite.replicate.mariadb_foreign_keys`).
  Who drops or makes foreign keys holds a lock of its session (:mod:`~kainite.replicate.mariadb_foreign_keys_lock`)
  from the look at the tables' states up to the statement, a load that begins from its look at the target's state up to
  *loading*: else one that is made again would be there while a load runs. A cut-over holds it in its last transaction,
  and refuses where a foreign key is noted that nobody has tried to make: no command would make it later. A load that is
  refused behind the lock gives back what it has dropped.
* **A table that is added** is made behind the transaction that sets *loading*: so the target never has it without
  holding its deltas.
* **A table is emptied** between ``begin`` and ``plan``, while it is *loading* without a point, on the session that
  holds the lock of the table's driver: a driver that is frozen keeps the lock, so that no other one has begun; one
  whose session was ended can send nothing. The load of everything ends the sessions of such drivers before it empties
  tables itself, and their tasks by their generation.

What a crash of the driver leaves, and what the next ``add`` or ``reload`` of the table does:

=====================================  =================================================================================
killed                                 next start
=====================================  =================================================================================
while foreign keys are dropped         the state is what it was; those that are gone are noted. Begins; so does any
                                       other ``add``, ``reload`` or ``load``, which makes them again
between ``begin`` and the plan         *loading* without a point, the table there or not, full or empty: begins anew
between the plan and the last range    goes on if the snapshot lives, else begins anew
while it catches up                    goes on with the deltas that are still held
while the fence is locked to go live   the lock is gone with the session; goes on
while foreign keys are made again      one is there, and noted, or only noted: the next look makes it, looks for rows
                                       without their parent, and forgets the note
=====================================  =================================================================================

A transaction of the apply job reads the version together with the fence, under the fence's shared lock, and then the
states, where the version is another one than it knows: what it does is made for the states that hold until it commits.

A piece of what is held has at most :data:`HELD_PIECE` bytes, wherever that cuts: a statement must fit into a packet.
"""

from __future__ import annotations

from typing import Final

from kainite.replicate.ledger import STATEMENT_STAGE
from kainite.replicate.mariadb_ledger import step_lock
from kainite.replicate.table_ledger import names_begin

_OPTIONS: Final = "ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

HELD_PIECE: Final = 2**19
"""Most bytes of a row that holds deltas; a statement spells them twice as long."""

FOREIGN_KEYS_WAIT_S: Final = 30
"""Seconds for which somebody else who drops or makes foreign keys is waited for."""

CREATE: Final = (
    f"""
    CREATE TABLE IF NOT EXISTS kainite_held_delta (
        place bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
        log_partition varchar(255) NOT NULL,
        table_schema varchar(64) NOT NULL,
        table_name varchar(64) NOT NULL,
        transaction_id bigint NOT NULL,
        uow varchar(1024) NOT NULL,
        is_last boolean NOT NULL,
        size bigint NOT NULL,
        deltas longblob NOT NULL,
        KEY kainite_held_of_table (log_partition, table_schema, table_name, place)
    ) {_OPTIONS}""",
    f"""
    CREATE TABLE IF NOT EXISTS kainite_load_foreign_key (
        log_partition varchar(255) NOT NULL,
        constraint_name varchar(64) NOT NULL,
        child_schema varchar(64) NOT NULL,
        child_name varchar(64) NOT NULL,
        parent_schema varchar(64) NOT NULL,
        parent_name varchar(64) NOT NULL,
        child_columns text NOT NULL,
        parent_columns text NOT NULL,
        on_delete varchar(20) NOT NULL,
        on_update varchar(20) NOT NULL,
        cause text,
        PRIMARY KEY (log_partition, child_schema, child_name, constraint_name)
    ) {_OPTIONS}""",
)

TABLES: Final = ("kainite_held_delta", "kainite_load_foreign_key")

STATES: Final = "SELECT table_schema, table_name, position, state FROM kainite_load_table WHERE log_partition = %s"

# Waits for the transactions that have read the version before, and lets none read it until this one commits.
RAISE_VERSION: Final = """
    INSERT INTO kainite_fence (log_partition, generation, micro_batch, tables) VALUES (%s, -1, -1, 1)
    ON DUPLICATE KEY UPDATE tables = tables + 1"""

# The load of everything; it cannot begin before this transaction ends, since it closes the fence first.
WHOLE: Final = "SELECT state, source FROM kainite_load WHERE log_partition = %s"

SET_LOADING: Final = """
    INSERT INTO kainite_load_table (log_partition, table_schema, table_name, position, state)
    VALUES (%s, %s, %s, 0, 'loading')
    ON DUPLICATE KEY UPDATE state = 'loading', position = 0, reached = NULL, cause = NULL"""

SET_POSITION: Final = """
    UPDATE kainite_load_table SET position = %s
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s AND state <> 'live'"""

SET_STATE: Final = """
    UPDATE kainite_load_table SET state = %s, cause = %s
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s AND state <> 'live'"""

GO_LIVE: Final = """
    UPDATE kainite_load_table t SET state = 'live', cause = NULL
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s AND position > 0 AND reached >= position
      AND NOT EXISTS (SELECT 1 FROM kainite_held_delta h WHERE h.log_partition = t.log_partition
                      AND h.table_schema = t.table_schema AND h.table_name = t.table_name)"""

READ: Final = """
    SELECT state, NULLIF(position, 0), reached, cause FROM kainite_load_table
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s"""

READ_ALL: Final = """
    SELECT table_schema, table_name, state, NULLIF(position, 0), reached, cause,
           (SELECT COUNT(*) FROM kainite_held_delta h WHERE h.is_last AND h.log_partition = t.log_partition
              AND h.table_schema = t.table_schema AND h.table_name = t.table_name)
    FROM kainite_load_table t WHERE log_partition = %s ORDER BY 1, 2"""

# What is copied of each table that has a load of its own.
COPIED_BY_THEMSELVES: Final = f"""
    SELECT table_schema, table_name, COUNT(*), COUNT(done_at), CAST(COALESCE(SUM(copied_rows), 0) AS SIGNED),
           CAST(COALESCE(SUM(copied_bytes), 0) AS SIGNED)
    FROM kainite_load_step WHERE log_partition BETWEEN %s AND %s AND stage < {STATEMENT_STAGE}
    GROUP BY table_schema, table_name"""

HELD_PLACES: Final = """
    SELECT place, transaction_id, is_last, size FROM kainite_held_delta
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s ORDER BY place LIMIT %s"""

HELD: Final = """
    SELECT place, transaction_id, is_last, uow, deltas FROM kainite_held_delta WHERE place IN %s ORDER BY place"""

FORGET_HELD: Final = """
    DELETE FROM kainite_held_delta WHERE log_partition = %s AND table_schema = %s AND table_name = %s"""

# Under the generation of the table's load alone, which a driver that begins or goes on raises.
HOLD_LOAD: Final = """
    SELECT 1 FROM kainite_load WHERE log_partition = %s AND generation = %s AND state = 'loading' LOCK IN SHARE MODE"""

TAKE_HELD: Final = "DELETE FROM kainite_held_delta WHERE place IN %s"

# What the apply job writes, in the transaction of the units.
HOLD: Final = """
    INSERT INTO kainite_held_delta
        (log_partition, table_schema, table_name, transaction_id, uow, is_last, size, deltas) VALUES """

# Not behind the point: tasks would wait for one another's lock on the row for as long as the table is not live.
REACHED: Final = """
    UPDATE kainite_load_table SET reached = {reached}
    WHERE log_partition = {log} AND state NOT IN ('live', 'given up') AND (reached IS NULL OR reached < {reached})
      AND (position = 0 OR reached IS NULL OR reached < position)"""

# A load of everything takes the place of all loads of tables: it ends them when it begins, and forgets them when it has
# ended the sessions of their drivers, whose names it finds in these rows.
OWN_LOADS: Final = "SELECT log_partition FROM kainite_load WHERE log_partition BETWEEN %s AND %s"
END_OWN_LOADS: Final = """
    UPDATE kainite_load SET generation = generation + 1, position = NULL, snapshot = NULL
    WHERE log_partition BETWEEN %s AND %s"""
FORGET_OWN_LOADS: Final = "DELETE FROM kainite_load WHERE log_partition BETWEEN %s AND %s"
FORGET_OWN_STEPS: Final = "DELETE FROM kainite_load_step WHERE log_partition BETWEEN %s AND %s"
FORGET_ALL_HELD: Final = "DELETE FROM kainite_held_delta WHERE log_partition = %s"

NOTE_FOREIGN_KEY: Final = """
    INSERT INTO kainite_load_foreign_key (
        log_partition, constraint_name, child_schema, child_name, parent_schema, parent_name, child_columns,
        parent_columns, on_delete, on_update)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON DUPLICATE KEY UPDATE
        parent_schema = VALUES(parent_schema), parent_name = VALUES(parent_name),
        child_columns = VALUES(child_columns), parent_columns = VALUES(parent_columns),
        on_delete = VALUES(on_delete), on_update = VALUES(on_update), cause = NULL"""

# Foreign keys whose two tables are live.
MAKEABLE: Final = """
    SELECT constraint_name, child_schema, child_name, parent_schema, parent_name, child_columns, parent_columns,
           on_delete, on_update
    FROM kainite_load_foreign_key k
    WHERE log_partition = %s AND NOT EXISTS (
        SELECT 1 FROM kainite_load_table t WHERE t.log_partition = k.log_partition AND t.state <> 'live'
          AND ((t.table_schema = k.child_schema AND t.table_name = k.child_name)
               OR (t.table_schema = k.parent_schema AND t.table_name = k.parent_name)))
    ORDER BY child_schema, child_name, constraint_name"""

FORGET_FOREIGN_KEY: Final = """
    DELETE FROM kainite_load_foreign_key
    WHERE log_partition = %s AND child_schema = %s AND child_name = %s AND constraint_name = %s"""

FOREIGN_KEY_REFUSED: Final = """
    UPDATE kainite_load_foreign_key SET cause = %s
    WHERE log_partition = %s AND child_schema = %s AND child_name = %s AND constraint_name = %s"""

FOREIGN_KEYS_LEFT: Final = """
    SELECT CONCAT(child_schema, '.', child_name, ' ', constraint_name), cause
    FROM kainite_load_foreign_key WHERE log_partition = %s ORDER BY 1"""


def own_loads(log_partition: str) -> tuple[str, str]:
    """Returns between which names those of the loads of single tables of a log lie."""
    begin = names_begin(log_partition)
    return begin, f"{begin}\U0010ffff"


def foreign_keys_lock(database: str, log_partition: str) -> str:
    """Returns the name of the lock that whoever drops or makes foreign keys of a log's tables holds."""
    return step_lock(database, log_partition, "foreign keys")
