"""Opens connections to PostgreSQL, and gives each transaction its settings (:func:`pin`), a task's and the driver's.

Settings of a transaction's own cost no round trip in the pipeline.
"""

from __future__ import annotations

import psycopg

from kainite.targets.postgresql.connection import connect
from kainite.targets.postgresql.text_forms import as_local_settings
from kainite_spark.targets.postgresql.errors import about_own_tables

ROW_WAIT_S = 1
"""How long a task waits for a lock, in seconds: a group of 500 units with one locked row is cut in two nine
times, and each part with the locked row waits for it."""

FENCE_WAIT_S = 30
"""How long the driver waits for the transactions of a micro-batch before, in seconds."""

_PINNED = f"""
    SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', '60s', true),
           {as_local_settings()}"""
"""The first statement of each transaction. A session's own settings do not last: a trigger may change them, and behind
a pooler each transaction may be in another session. The second one limits how long others wait for a task that hangs.
"""

_OWN_PATH = "SET LOCAL search_path TO DEFAULT"
"""Kainite's tables are named without a schema: they are on the search path of the role or of the database."""


def pin(connection: psycopg.Connection, lock_wait: int) -> None:
    """Gives the transaction its settings, before any other statement of it."""
    connection.execute(_OWN_PATH)
    connection.execute(_PINNED, (f"{lock_wait}s",))


def opened(url: str) -> psycopg.Connection:
    """Opens a connection without prepared statements: a plan made while a table was small would be used for ever.

    ``plan_cache_mode`` is no alternative: it also makes the server plan the foreign keys' checks anew for
    each row, which was measured to double the time of an insert.
    """
    try:
        connection = connect(url, "kainite apply")
        connection.autocommit = False
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    except psycopg.Error as error:
        raise about_own_tables(error) from error
    return connection
