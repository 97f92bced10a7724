from __future__ import annotations

from contextlib import closing

import pytest

from kainite.base.errors import TargetError
from kainite.targets.mariadb.connection import connect
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import TypeFamily
from kainite_spark.targets.mariadb.packet import FailedStatementError, send
from kainite_spark.targets.mariadb.present_tables import PresentTables, why_not_transactional
from support.mariadb_server import run_script


def test_a_table_is_as_the_target_has_it_now(mariadb: str) -> None:
    run_script(mariadb, "CREATE TABLE t (id bigint AUTO_INCREMENT PRIMARY KEY, v varchar(9), w int)")
    table = reflect(mariadb, []).tables["t"]
    run_script(mariadb, "ALTER TABLE t MODIFY v int NOT NULL; ALTER TABLE t DROP w")
    known = PresentTables()
    with closing(connect(mariadb)) as connection:
        now = known.table(connection, table)
        assert (now.columns["v"].family, now.columns["v"].nullable) == (TypeFamily.INTEGER, False)
        assert now.columns["w"] == table.columns["w"]
        send(connection, ["INSERT INTO t (v) VALUES (1), (2)"])  # a counter is no change
        assert not known.changed(["t"], send(connection, [known.question(table)]))
        send(connection, ["ALTER TABLE t ADD x int"])
        assert known.changed(["t"], send(connection, [known.question(table)]))
        known.forget()
        send(connection, ["DROP TABLE t"])
        with pytest.raises(FailedStatementError):
            known.table(connection, table)


def test_a_table_without_transactions_is_an_error(mariadb: str) -> None:
    run_script(mariadb, "CREATE TABLE t (id int PRIMARY KEY) ENGINE = Aria")
    table = reflect(mariadb, []).tables["t"]
    with closing(connect(mariadb)) as connection, pytest.raises(TargetError, match="Aria"):
        PresentTables().table(connection, table)


def test_an_engine_is_judged_by_its_name() -> None:
    assert why_not_transactional("t", "InnoDB") is None
    assert "MEMORY" in (why_not_transactional("t", "MEMORY") or "")
