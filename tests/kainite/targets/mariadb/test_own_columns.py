"""Tables of Kainite's that an earlier version has made in MariaDB: what they lack is said before anything is begun."""

from __future__ import annotations

import re
from contextlib import closing

import pytest

from kainite.base.errors import CatalogueError
from kainite.replicate import mariadb_ledger, mariadb_table_ledger
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.own_columns import check_mariadb_columns
from kainite.targets.mariadb.rows import rows_of
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.mariadb import ledger as apply_ledger
from kainite_spark.targets.opening import open_target
from support.mariadb_server import run_script

CREATED = (*mariadb_ledger.CREATE, *mariadb_table_ledger.CREATE, *apply_ledger.CREATE)
_OF_NO_KEY = """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = DATABASE() AND column_key = '' AND extra = '' ORDER BY 1, 2"""


def test_each_column_that_a_table_lacks_is_named_with_the_statement_that_mends_it(mariadb: str) -> None:
    with closing(connect(mariadb)) as connection:
        for statement in CREATED:
            connection.query(statement)
        check_mariadb_columns(connection, CREATED)
        others = rows_of(connection, _OF_NO_KEY)
        for table, column in others:
            connection.query(f"ALTER TABLE {table} DROP COLUMN {column}")
            with pytest.raises(CatalogueError, match=f"ALTER TABLE {table} ADD COLUMN {column} ") as refused:
                check_mariadb_columns(connection, CREATED)
            connection.query(re.sub(r".*stopped: ", "", str(refused.value)))
            check_mariadb_columns(connection, CREATED)
        assert len(others) > 25


def test_an_apply_job_does_not_begin_on_an_earlier_fence_or_load(mariadb: str) -> None:
    run_script(mariadb, "CREATE TABLE item (id int PRIMARY KEY); CREATE TABLE kainite_fence (log_partition varchar(255)"
               " PRIMARY KEY, generation bigint, micro_batch bigint); CREATE TABLE kainite_load_table (log_partition"
               " varchar(255) PRIMARY KEY, table_schema text, table_name text, position bigint)")  # fmt: skip
    catalogue = reflect(mariadb)
    target = open_target(mariadb, catalogue)
    with pytest.raises(CatalogueError) as refused:
        target.prepare("0", catalogue)
    for statement in (
        "ALTER TABLE kainite_fence ADD COLUMN tables bigint NOT NULL DEFAULT 0",
        "ALTER TABLE kainite_load_table ADD COLUMN state varchar(20) NOT NULL DEFAULT 'live'",
        "ALTER TABLE kainite_load_table ADD COLUMN reached bigint unsigned",
        "ALTER TABLE kainite_load_table ADD COLUMN cause text",
    ):
        assert statement in str(refused.value)
        run_script(mariadb, statement)
    target.prepare("0", catalogue)
