"""The row of the fence in MariaDB, and the rows that hold it."""

from __future__ import annotations

from contextlib import closing

from kainite.targets.mariadb.connection import connect
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mariadb import ledger
from kainite_spark.targets.mariadb.prepared import xid_of
from kainite_spark.targets.preparing import PreparingTarget, TransactionName, gid_of
from support.stores import Stores

NAME = TransactionName(1, 0, "a1")
GID = gid_of("0", "shop", NAME)


def test_what_held_the_fence_is_forgotten_when_it_advances(stores: Stores) -> None:
    store = stores.open("CREATE TABLE t (id int PRIMARY KEY)")
    target: PreparingTarget = store.target  # type: ignore[assignment]
    with closing(target.connect()) as session:
        session.prepare(store.fence, (Unit(1, "T-1", (store.insert("t", id=1),)),), GID)
        session.finish(GID, committed=True)
    assert store.database.rows("SELECT gid FROM kainite_prepared") == [(GID,)]
    target.begin_micro_batch(Fence("0", 1, 1))
    assert store.database.rows("SELECT gid FROM kainite_prepared") == []
    assert store.rows("t") == [(1,)]


def test_the_lock_of_the_fence_alone_would_not_hold_it(stores: Stores) -> None:
    """Shows what the rows are for: MariaDB gives a shared lock back when a transaction is prepared."""
    store = stores.open("CREATE TABLE t (id int PRIMARY KEY)")
    url, xid = store.database.url, xid_of(GID)
    with closing(connect(url)) as task, closing(connect(url)) as driver:
        task.query(f"XA START {xid}")
        task.query("SELECT * FROM kainite_fence LOCK IN SHARE MODE")
        task.query("INSERT INTO t VALUES (1)")
        for step in ("END", "PREPARE"):
            task.query(f"XA {step} {xid}")
        driver.query("SET SESSION innodb_lock_wait_timeout = 1")
        with driver.cursor() as cursor:
            assert cursor.execute(ledger.LOCK_FENCE, ("0",)) == 1
        task.query(f"XA ROLLBACK {xid}")
