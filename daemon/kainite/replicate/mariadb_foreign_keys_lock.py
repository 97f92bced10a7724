"""The lock of those who drop and make foreign keys of a MariaDB target, and of who cuts it over.

Dropping and making commit by themselves, so no transaction keeps them from a change of the target's state: this lock
does. It is of a session: whoever is frozen keeps it, and who has lost the session can send nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pymysql

from kainite.base.errors import TargetUnavailableError
from kainite.replicate import mariadb_table_ledger as table_ledger
from kainite.replicate.mariadb_ledger import GIVE_BACK, HOLDER, TAKE_STEP
from kainite.targets.mariadb.rows import rows_of

_DATABASE: Final = "SELECT DATABASE()"


@contextmanager
def foreign_keys_alone(connection: pymysql.connections.Connection, log_partition: str) -> Iterator[None]:
    """Holds the lock of those who drop and make foreign keys; of this session, so no statement gives it back.

    Raises:
        TargetUnavailableError: somebody else holds it for long.
    """
    [(database,)] = rows_of(connection, _DATABASE)
    name = table_ledger.foreign_keys_lock(str(database), log_partition)
    if rows_of(connection, TAKE_STEP, name, table_ledger.FOREIGN_KEYS_WAIT_S)[0][0] != 1:
        [(holder,)] = rows_of(connection, HOLDER, name)
        raise TargetUnavailableError(
            f"the target's session {holder} has dropped or made foreign keys for {table_ledger.FOREIGN_KEYS_WAIT_S} s:"
            " start again when it has ended, or end it (KILL)"
        )
    try:
        yield
    finally:
        with suppress(pymysql.Error):  # a session that is lost has given it back
            rows_of(connection, GIVE_BACK, name)
