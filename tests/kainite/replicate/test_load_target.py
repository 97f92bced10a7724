"""Session, ledger and status of a target are those of its kind."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.replicate.load_ledger import LoadLedger
from kainite.replicate.load_target import driven_ledger, load_in, load_session, status_in
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger
from kainite.replicate.status import ReplicaStatus

LOG = "log/0"


def test_each_kind_of_target_has_its_own(postgres: str, mariadb: str) -> None:
    for url, kind in ((postgres, LoadLedger), (mariadb, MariadbLoadLedger)):
        with load_session(url, "kainite test") as connection:
            assert isinstance(connection, psycopg.Connection) == (kind is LoadLedger)
            assert isinstance(driven_ledger(connection, LOG), kind)
            assert load_in(connection, LOG) is None
            assert status_in(connection, LOG) == ReplicaStatus(None, consistent=False)


@pytest.mark.parametrize("url", ["mariadb://u@127.0.0.1:1/d", "host=127.0.0.1 port=1 user=u dbname=d"])
def test_a_target_that_is_away_is_unavailable(url: str) -> None:
    with pytest.raises(TargetUnavailableError, match="the target: "):
        load_session(url, "kainite test").__enter__()
