from __future__ import annotations

from contextlib import closing

from kainite.settings import TargetTriggers
from kainite.targets.mariadb.connection import connect
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.hooks import HookPolicy
from kainite_spark.targets.mariadb.firing_triggers import KnownTriggers, found_triggers
from kainite_spark.targets.mariadb.packet import send
from support.mariadb_server import run_script

DDL = """
    CREATE TABLE p (id int PRIMARY KEY);
    CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p (id) ON DELETE CASCADE);
    CREATE TABLE other (id int PRIMARY KEY);
    CREATE TRIGGER seen BEFORE DELETE ON c FOR EACH ROW SET @seen = 1;
"""


def test_what_a_foreign_key_reaches_counts_as_hooked(mariadb: str) -> None:
    run_script(mariadb, DDL)
    with closing(connect(mariadb)) as connection:
        found = found_triggers(connection, reflect(mariadb, []))
    assert found.hooked == {"c", "p"}
    assert [str(hook) for hook in found.firing] == [
        "c: CREATE TRIGGER seen BEFORE DELETE ON c FOR EACH ROW SET @seen = 1"
    ]


def test_a_trigger_that_comes_or_goes_is_noticed(mariadb: str) -> None:
    run_script(mariadb, DDL)
    catalogue = reflect(mariadb, [])
    known = KnownTriggers(catalogue, HookPolicy(TargetTriggers.FIRE))
    tables = list(catalogue.tables.values())
    with closing(connect(mariadb)) as connection:
        known.read(connection)
        question = known.question(tables)
        assert not known.changed(catalogue.tables, send(connection, [question])[0].rows)
        for script in ("CREATE TRIGGER t AFTER INSERT ON p FOR EACH ROW DO 0", "DROP TRIGGER t; DROP TRIGGER seen"):
            run_script(mariadb, script)
            assert known.changed(catalogue.tables, send(connection, [question])[0].rows)
        known.forget()
        assert known.read(connection).hooked == frozenset()
