"""Tables of Kainite's that an earlier version has made: what they lack is said before anything is begun."""

from __future__ import annotations

import re

import psycopg
import pytest

from kainite.base.errors import CatalogueError
from kainite.replicate import ledger, table_ledger
from kainite.targets.postgresql.own_columns import check_own_columns
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql import ledger as apply_ledger
from support.replicas import run, tables_of

CREATED = (*ledger.CREATE, *table_ledger.CREATE, apply_ledger.CREATE_APPLIED, apply_ledger.CREATE_FENCE)


def columns(connection: psycopg.Connection) -> list[tuple[str, str]]:
    query = """SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relname LIKE 'kainite%' AND c.relkind = 'r' AND attnum > 0 AND NOT attisdropped ORDER BY 1, 2"""
    return connection.execute(query.encode()).fetchall()


def test_each_column_that_a_table_lacks_is_named_with_the_statement_that_mends_it(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        for statement in CREATED:
            connection.execute(statement.encode())
        check_own_columns(connection, CREATED)
        whole = columns(connection)
        for table, column in whole:
            with connection.transaction(force_rollback=True):
                connection.execute(f"ALTER TABLE {table} DROP COLUMN {column} CASCADE".encode())
                with pytest.raises(CatalogueError, match=f"ALTER TABLE {table} ADD COLUMN {column} ") as refused:
                    check_own_columns(connection, CREATED)
                connection.execute(re.sub(r".*stopped: ", "", str(refused.value)).encode())
                check_own_columns(connection, CREATED)
        assert len(whole) > 35


def test_an_apply_job_does_not_begin_on_an_earlier_fence(postgres: str) -> None:
    fence = "CREATE TABLE kainite_fence (log_partition text PRIMARY KEY, generation bigint, micro_batch bigint)"
    run(postgres, "CREATE TABLE item (id int PRIMARY KEY)", fence)
    catalogue = tables_of(postgres)
    target = open_target(postgres, catalogue)
    mend = "ALTER TABLE kainite_fence ADD COLUMN tables bigint NOT NULL DEFAULT 0"
    with pytest.raises(CatalogueError, match=re.escape(mend)):
        target.prepare("0", catalogue)
    run(postgres, mend)
    target.prepare("0", catalogue)
    target.close()
