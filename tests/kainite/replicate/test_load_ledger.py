"""The ledger as one driver holds it: begins, plans, goes on, finishes; and whom it shuts out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from kainite.base.errors import CatalogueError, TargetError, TargetFencedError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate import ledger
from kainite.replicate.found_load import source_name
from kainite.replicate.ledger import FIRST_STATEMENT, STATEMENT_STAGE, CopyStep, LoadState, LoadStep, StatementStep
from kainite.replicate.load_ledger import LoadLedger, found_load, with_rows
from kainite.replicate.tables import ReplicaTable

POINT = ConsistentPoint(0x1_0000_0010, "00000003-00000001-1", SourceIdentity("7", 1, "shop"))
ITEM = ReplicaTable("public", "item", "public.item", (), (), "d", 0, ())
COPY = LoadStep(1, 1, "public", "item", CopyStep((), ""))
KEY = LoadStep(FIRST_STATEMENT, STATEMENT_STAGE, "public", "item", StatementStep("SELECT 1"))


@contextmanager
def driver(url: str) -> Iterator[tuple[LoadLedger, psycopg.Connection]]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS item (id int)")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS kainite_fence"
            " (log_partition text PRIMARY KEY, generation bigint, micro_batch bigint)"
        )
        made = LoadLedger(connection, "log/0")
        made.create()
        yield made, connection


def done(connection: psycopg.Connection, step: int) -> None:
    connection.execute(ledger.DONE, (0, 0, "log/0", step))


def test_a_load_from_its_beginning_to_its_end(postgres: str) -> None:
    with driver(postgres) as (load, connection):
        assert load.found() is None
        load.prepare("CREATE TABLE made (id int)", [KEY])
        found = load.found()
        assert found is not None
        assert (found.state, found.generation) == (LoadState.PREPARED, 0)
        load.begin()
        assert connection.execute("SELECT generation, micro_batch FROM kainite_fence").fetchall() == [(-1, 2**63 - 1)]
        load.plan(POINT, [ITEM], [COPY])
        assert load.left() == [1]
        found = load.found()
        assert found is not None
        assert (found.position, found.snapshot, found.source) == (POINT.lsn, POINT.snapshot, source_name(POINT))
        assert found.copies
        with pytest.raises(TargetFencedError):
            load.finish()
        done(connection, 1)
        assert load.left() == [FIRST_STATEMENT]
        assert load.left([FIRST_STATEMENT]) == []
        done(connection, FIRST_STATEMENT)
        load.seen()
        load.finish()
        found = load.found()
        assert found is not None
        assert (found.state, found.snapshot, found.copies) == (LoadState.LIVE, None, False)


def test_a_driver_that_goes_on_shuts_out_the_former_one(postgres: str) -> None:
    with driver(postgres) as (first, connection):
        with pytest.raises(TargetFencedError):
            first.go_on()
        first.begin()
        first.plan(POINT, [ITEM], [COPY])
        with pytest.raises(TargetError, match="another kainite replicate load"), driver(postgres):
            pass
        connection.execute("SELECT pg_advisory_unlock_all()")
        with driver(postgres) as (second, _):
            second.go_on()
            assert second.generation == first.generation + 1
            for act in (first.seen, first.finish, lambda: first.plan(POINT, [ITEM], [COPY])):
                with pytest.raises(TargetFencedError, match="kainite replicate status tells"):
                    act()
            second.seen()
            second.void()
            with pytest.raises(TargetFencedError):
                second.go_on()


def test_what_a_load_has_filled_is_emptied_and_nothing_else(postgres: str) -> None:
    with driver(postgres) as (load, connection):
        connection.execute("INSERT INTO item VALUES (1)")
        assert with_rows(connection, [("public", "item"), ("public", "none")]) == [("public", "item")]
        load.begin()
        with pytest.raises(CatalogueError, match=r"no load has put there, in public\.item"):
            load.plan(POINT, [ITEM], [COPY])
        connection.execute("TRUNCATE item")
        load.plan(POINT, [ITEM], [COPY])
        connection.execute("INSERT INTO item VALUES (1)")
        load.begin()
        load.plan(POINT, [ITEM], [COPY, LoadStep(2, 1, "public", "item", CopyStep((), ""))])
        assert with_rows(connection, [("public", "item")]) == []
        assert load.left() == [1, 2]


def test_a_load_begins_anew_where_its_tables_were_dropped(postgres: str) -> None:
    with driver(postgres) as (load, connection):
        load.begin()
        load.plan(POINT, [ITEM], [COPY])
        connection.execute("DROP TABLE item")
        load.begin()
        load.plan(POINT, [ITEM], [COPY])
        assert load.left() == [1]


def test_tables_that_others_refer_to_are_not_emptied(postgres: str) -> None:
    with driver(postgres) as (load, connection):
        load.begin()
        load.plan(POINT, [ITEM], [COPY])
        connection.execute("ALTER TABLE item ADD PRIMARY KEY (id); CREATE TABLE mine (id int REFERENCES item)")
        load.begin()
        with pytest.raises(CatalogueError, match=r"cannot be emptied: .*mine"):
            load.plan(POINT, [ITEM], [COPY])


def test_what_was_prepared_is_not_prepared_again_and_a_script_that_fails_leaves_nothing(postgres: str) -> None:
    with driver(postgres) as (load, connection):
        with pytest.raises(psycopg.errors.SyntaxError):
            load.prepare("CREATE TABLE made (id int); NONSENSE", [KEY])
        assert load.found() is None
        assert load.left() == []
        load.prepare("", [KEY])
        with pytest.raises(CatalogueError, match="have been made, or loaded, before"):
            load.prepare("", [KEY])
        load.failed(FIRST_STATEMENT, "a cause")
        assert [row.cause for row in load.rows("SELECT cause FROM kainite_load_step")] == ["a cause"]
        assert found_load(connection, "log/1") is None
