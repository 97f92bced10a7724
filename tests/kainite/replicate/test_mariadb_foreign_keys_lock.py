"""The lock of those who drop and make foreign keys of a MariaDB target, on a server."""

from __future__ import annotations

from contextlib import closing

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.replicate import mariadb_table_ledger
from kainite.replicate.mariadb_foreign_keys_lock import foreign_keys_alone
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import rows_of

LOG = "log/0"


def test_one_makes_or_drops_foreign_keys_at_a_time(mariadb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_table_ledger, "FOREIGN_KEYS_WAIT_S", 0)
    with closing(connect(mariadb)) as target, closing(connect(mariadb)) as other:
        with foreign_keys_alone(other, LOG):
            [(holder,)] = rows_of(other, "SELECT CONNECTION_ID()")
            told = f"session {holder} has dropped or made foreign keys"
            with pytest.raises(TargetUnavailableError, match=told), foreign_keys_alone(target, LOG):
                pass
            with foreign_keys_alone(target, "log/1"):
                pass
        with foreign_keys_alone(target, LOG):
            pass
