"""``tests/kainite/targets/test_golden.py`` reads a schema with everything in it."""

from __future__ import annotations

import pytest

from kainite.base.errors import CatalogueError, TargetUnavailableError
from kainite.uow.catalogue.reflection import reflect
from support.mariadb_server import run_script
from support.ports import free_port


def test_tables_of_other_databases_have_their_names_before_them(mariadb: str, mariadb_server: str) -> None:
    database = mariadb.partition("?")[0].rpartition("/")[2]
    run_script(mariadb_server, f"CREATE DATABASE {database}_sales")
    try:
        run_script(mariadb, "CREATE TABLE customer (id int PRIMARY KEY)")
        run_script(
            mariadb,
            f"CREATE TABLE {database}_sales.orders (id int PRIMARY KEY, c int, "
            f"FOREIGN KEY (c) REFERENCES {database}.customer (id))",
        )
        found = reflect(mariadb, [database, f"{database}_sales"])
    finally:
        run_script(mariadb_server, f"DROP DATABASE {database}_sales")
    assert set(found.tables) == {"customer", f"{database}_sales.orders"}
    [key] = found.tables[f"{database}_sales.orders"].foreign_keys
    assert key.parent == "customer"


def test_a_table_that_the_role_may_not_change_is_judged_by_that(mariadb: str, mariadb_server: str) -> None:
    database = mariadb.partition("?")[0].rpartition("/")[2]
    run_script(mariadb, "CREATE TABLE half (id int PRIMARY KEY, v int)")
    run_script(
        mariadb_server,
        f"CREATE USER {database}@localhost; GRANT SELECT, INSERT ON {database}.* TO {database}@localhost",
    )
    try:
        found = reflect(mariadb.replace("root@", f"{database}@"), [])
    finally:
        run_script(mariadb_server, f"DROP USER {database}@localhost")
    assert found.tables["half"].judged is None


def test_a_database_that_does_not_exist_is_no_outage(mariadb_server: str) -> None:
    with pytest.raises(CatalogueError, match="Unknown database 'nowhere'"):
        reflect(mariadb_server.replace("/mysql?", "/nowhere?"), [])


def test_a_server_that_does_not_answer_is_one() -> None:
    with pytest.raises(TargetUnavailableError, match="cannot be read") as raised:
        reflect(f"mariadb://root:geheimnis@127.0.0.1:{free_port()}/d", [])
    assert "geheimnis" not in str(raised.value)
