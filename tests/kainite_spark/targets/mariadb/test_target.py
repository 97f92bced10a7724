"""What the driver refuses before any unit is applied."""

from __future__ import annotations

from contextlib import closing

import pytest

from kainite.base.errors import CatalogueError, TargetBusyError
from kainite.settings import ApplySettings, TargetTriggers
from kainite.targets.mariadb.connection import connect
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mariadb import target as module
from kainite_spark.targets.opening import open_target
from support.mariadb_server import run_script
from support.stores import Database, Stores

CYCLE = """
    CREATE TABLE hen (id int PRIMARY KEY, egg int);
    CREATE TABLE egg (id int PRIMARY KEY, hen int REFERENCES hen (id));
    ALTER TABLE hen ADD FOREIGN KEY (egg) REFERENCES egg (id);
"""


def test_a_table_without_transactions_is_refused(stores: Stores) -> None:
    with pytest.raises(CatalogueError, match=r"table old has the storage engine MyISAM.*ENGINE = InnoDB"):
        stores.open("CREATE TABLE old (id int PRIMARY KEY) ENGINE = MyISAM")


def test_tables_in_a_cycle_are_refused(stores: Stores) -> None:
    with pytest.raises(CatalogueError, match="drop one where the target defers none, as MariaDB"):
        stores.open(CYCLE)


def test_a_role_that_does_not_see_triggers_is_refused(stores: Stores, mariadb: str, mariadb_server: str) -> None:
    name = mariadb.partition("?")[0].rpartition("/")[2]
    rights = "SELECT, INSERT, UPDATE, DELETE, CREATE"
    run_script(mariadb_server, f"CREATE USER {name}@localhost; GRANT {rights} ON {name}.* TO {name}@localhost")
    try:
        limited = Stores(Database(mariadb.replace("root@", f"{name}@")))
        with pytest.raises(CatalogueError, match=r"does not see which triggers t has.*GRANT TRIGGER ON"):
            limited.open("CREATE TABLE t (id int PRIMARY KEY)")
        run_script(mariadb_server, f"GRANT TRIGGER ON {name}.* TO {name}@localhost")
        limited.open("SELECT 1")
        limited.close()
    finally:
        run_script(mariadb_server, f"DROP USER {name}@localhost")


def test_triggers_cannot_be_switched_off(stores: Stores) -> None:
    ddl = "CREATE TABLE t (id int PRIMARY KEY); CREATE TRIGGER hook AFTER UPDATE ON t FOR EACH ROW DO 0;"
    with pytest.raises(CatalogueError, match=r"MariaDB cannot switch a trigger off.*DROP TRIGGER `hook`"):
        stores.open(ddl, apply=ApplySettings(triggers=TargetTriggers.OFF))
    target = open_target(stores.database.url, reflect(stores.database.url, []))
    assert isinstance(target, module.MariadbTarget)
    assert [hook.table for hook in target.hooks().firing] == ["t"]
    assert target.switch_on() == ()


def test_a_key_that_nobody_can_compare_is_told_once_a_start(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    stores.open("CREATE TABLE t (id varchar(9) COLLATE utf8mb4_unicode_ci PRIMARY KEY)")
    assert [record.getMessage() for record in caplog.records].count("units of a table wait for each other") == 1


def test_the_driver_gives_up_when_the_fence_stays_locked(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stores.open("CREATE TABLE t (id int PRIMARY KEY)")
    monkeypatch.setattr(module, "_FENCE_WAIT_S", 1)
    with closing(connect(stores.database.url)) as task:
        task.begin()
        task.query("SELECT * FROM kainite_fence LOCK IN SHARE MODE")
        with pytest.raises(TargetBusyError):
            store.target.begin_micro_batch(Fence("0", 1, 1))
    store.target.begin_micro_batch(Fence("0", 1, 1))
