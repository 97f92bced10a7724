"""Foreign keys that the load of a single table has taken off count as there for who reads MariaDB's catalogue."""

from __future__ import annotations

from contextlib import closing

from kainite.replicate import mariadb_table_ledger
from kainite.replicate.mariadb_foreign_keys import take_off
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import rows_of
from kainite.targets.mariadb.unfinished_load import foreign_keys_off
from kainite.uow.catalogue.reflection import reflect
from support.mariadb_server import run_script

TABLES = """
    CREATE TABLE item (a int, b int, PRIMARY KEY (a, b));
    CREATE TABLE line (id int PRIMARY KEY, x int, y int, boss int,
                       CONSTRAINT of_item FOREIGN KEY (y, x) REFERENCES item (a, b)
                       ON DELETE CASCADE ON UPDATE SET NULL,
                       CONSTRAINT of_boss FOREIGN KEY (boss) REFERENCES line (id))"""


def test_a_catalogue_is_the_same_while_foreign_keys_are_off(mariadb: str) -> None:
    run_script(mariadb, TABLES)
    there = reflect(mariadb)
    with closing(connect(mariadb)) as connection:
        schema = str(rows_of(connection, "SELECT DATABASE()")[0][0])
        assert list(foreign_keys_off(connection, schema, {"line": ["x", "y", "boss"]})) == []  # nothing is noted yet
        for statement in mariadb_table_ledger.CREATE:
            connection.query(statement)
        line = (schema, "line")
        assert sorted(take_off(connection, "log/0", line)) == [f"{schema}.line of_boss", f"{schema}.line of_item"]
        assert len(there.tables["line"].foreign_keys) == 2
        assert reflect(mariadb).tables["line"] == there.tables["line"]
        run_script(mariadb, "ALTER TABLE line ADD CONSTRAINT of_boss FOREIGN KEY (boss) REFERENCES line (id)")
        assert reflect(mariadb).tables["line"] == there.tables["line"]  # not twice
        assert list(foreign_keys_off(connection, schema, {"line": ["x", "boss"]})) == [
            {"tab": "line", "name": "of_boss", "col": "boss", "parent_schema": schema, "parent": "line",
             "parent_col": "id", "on_delete": "RESTRICT", "on_update": "RESTRICT"}
        ]  # fmt: skip
