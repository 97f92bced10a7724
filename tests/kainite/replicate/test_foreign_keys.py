"""Foreign keys go while a table is loaded by itself, and come back when both their tables are live."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from kainite.base.errors import CatalogueError
from kainite.replicate import ledger, table_ledger
from kainite.replicate.foreign_keys import make_again, take_off
from kainite.targets.postgresql.catalogue import reading_unfinished
from kainite.uow.catalogue.reflection import catalogue_of, reflect
from support.waiting import eventually

TABLES = """
    CREATE TABLE a (id int PRIMARY KEY, up int CONSTRAINT self REFERENCES a);
    CREATE TABLE b (id int PRIMARY KEY, a int CONSTRAINT "To A" REFERENCES a ON DELETE CASCADE DEFERRABLE);
    CREATE TABLE c (id int PRIMARY KEY, b int CONSTRAINT to_b REFERENCES b);
    CREATE TABLE kainite_fence (log_partition text PRIMARY KEY, generation bigint, micro_batch bigint, tables bigint);
"""
PARTITIONED = """
    CREATE TABLE whole (id int PRIMARY KEY, a int CONSTRAINT up REFERENCES a ON DELETE SET NULL)
        PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF whole FOR VALUES FROM (0) TO (10);
    ALTER TABLE low ADD CONSTRAINT low_own FOREIGN KEY (a) REFERENCES b;
"""
THERE = """
    SELECT conname, convalidated, condeferrable, confdeltype::text FROM pg_constraint
    WHERE contype = 'f' AND conparentid = 0 ORDER BY 1"""
ALL = [("To A", True, True, "c"), ("self", True, False, "a"), ("to_b", True, False, "a")]


@pytest.fixture
def target(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(TABLES)
        for statement in (*ledger.CREATE, *table_ledger.CREATE):
            connection.execute(statement)
        yield connection


def off(target: psycopg.Connection, table: str) -> list[str]:
    with target.transaction():
        target.execute(table_ledger.RAISE_VERSION, ["log/0"])
        target.execute(table_ledger.SET_LOADING, ("log/0", "public", table))
        return take_off(target, "log/0", ("public", table))


def live(target: psycopg.Connection, table: str) -> list[str]:
    target.execute("UPDATE kainite_load_table SET state = 'live' WHERE table_name = %s", [table])
    return make_again(target, "log/0")


def test_what_names_the_table_on_either_side_is_off_until_both_are_live(target: psycopg.Connection) -> None:
    assert target.execute(THERE).fetchall() == ALL
    assert off(target, "a") == ["public.a self", "public.b To A"]
    assert off(target, "c") == ["public.c to_b"]
    assert off(target, "b") == []
    assert target.execute(THERE).fetchall() == []
    assert live(target, "a") == []
    assert [name for name, *_ in target.execute(THERE).fetchall()] == ["self"]
    assert live(target, "b") == []
    assert live(target, "c") == []
    assert target.execute(THERE).fetchall() == ALL
    assert target.execute(table_ledger.FOREIGN_KEYS_LEFT, ["log/0"]).fetchall() == []


def test_what_is_refused_stays_noted_with_the_cause_and_is_made_when_that_is_mended(target: psycopg.Connection) -> None:
    off(target, "b")
    target.execute("INSERT INTO c VALUES (1, 7)")
    [refused] = live(target, "b")
    assert refused.startswith("public.c to_b: ")
    assert 'violates foreign key constraint "to_b"' in refused
    assert [(row[0], "violates" in row[1]) for row in target.execute(table_ledger.FOREIGN_KEYS_LEFT, ["log/0"])] == [
        ("public.c to_b", True)
    ]
    # Taken off again where it is not validated, it is validated all the same.
    assert off(target, "c") == ["public.c to_b"]
    target.execute("DELETE FROM c")
    assert live(target, "c") == []
    assert target.execute(THERE).fetchall() == ALL


def test_a_foreign_key_that_is_taken_off_as_it_is_validated_stays_noted(
    target: psycopg.Connection, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    off(target, "b")
    with psycopg.connect(postgres, autocommit=True) as other, ThreadPoolExecutor(1) as pool:
        begun: list[Future[list[str]]] = []
        execute = target.execute

        def waits_or_is_done() -> bool:
            query = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
            return begun[0].done() or bool(execute(query, [other.info.backend_pid]).rowcount)

        def forgotten(query: Any, values: Any = None) -> psycopg.Cursor:
            if query == table_ledger.FORGET_FOREIGN_KEY and not begun:
                begun.append(pool.submit(off, other, "b"))
                eventually(waits_or_is_done)
            return execute(query, values)

        with monkeypatch.context() as patched:
            patched.setattr(target, "execute", forgotten)
            live(target, "b")
        begun[0].result()
    live(target, "b")
    assert target.execute(THERE).fetchall() == ALL


def test_a_partitioned_child_is_checked_at_once_and_a_part_alone_is_refused(target: psycopg.Connection) -> None:
    target.execute("""
        CREATE TABLE whole (id int, a int REFERENCES a, PRIMARY KEY (id)) PARTITION BY RANGE (id);
        CREATE TABLE part PARTITION OF whole DEFAULT""")
    with pytest.raises(CatalogueError, match=r"comes from a partitioned table that public\.part is a part of"):
        off(target, "part")
    assert off(target, "whole") == ["public.whole whole_a_fkey"]
    assert live(target, "whole") == []
    assert len(target.execute(THERE).fetchall()) == 4


def test_what_is_off_counts_as_there_for_the_order_of_units(target: psycopg.Connection, postgres: str) -> None:
    """Else a daemon that starts meanwhile lets a child pass its parent, also behind the moment at which it is made."""
    before = reflect(postgres)
    off(target, "a")
    off(target, "c")
    assert target.execute(THERE).fetchall() == []
    assert reflect(postgres) == before
    with reading_unfinished(postgres) as reader:
        assert all(not table.foreign_keys for table in catalogue_of(reader, ()).tables.values())
    live(target, "a")
    live(target, "c")
    assert reflect(postgres) == before


def test_what_is_off_counts_for_partitions_too(target: psycopg.Connection, postgres: str) -> None:
    target.execute(PARTITIONED)
    before = reflect(postgres)
    assert len(before.tables["low"].foreign_keys) == 2
    assert off(target, "whole") == ["public.low low_own", "public.whole up"]
    assert reflect(postgres) == before


def test_a_partitions_own_foreign_key_waits_for_the_whole(target: psycopg.Connection) -> None:
    target.execute(PARTITIONED)
    off(target, "whole")
    off(target, "b")
    assert live(target, "b") == []
    assert "low_own" not in {name for name, *_ in target.execute(THERE)}
    assert live(target, "whole") == []
    assert {"low_own", "up"} <= {name for name, *_ in target.execute(THERE)}
