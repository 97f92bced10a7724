"""Both snapshots, and what the comparison does where the apply job does not come to the point at the first try."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from kainite.base.errors import TargetError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate import ledger
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.point_source import PostgresPoints
from kainite.replicate.same_point import TRIES, PointRequest, SamePoint, same_point
from kainite.replicate.verify_ledger import VerifyLedger

LOG = "log/0"
FENCE = "CREATE TABLE kainite_fence (log_partition text, generation bigint, micro_batch bigint)"
ATTEND = "UPDATE kainite_verify SET state = 'attended', generation = 4 WHERE state = 'asked'"
STOPPED = """
    UPDATE kainite_verify SET state = 'stopped', micro_batch = 7, units = '\\x90'
    WHERE state = 'attended' AND position IS NOT NULL"""


@contextmanager
def answering(url: str, *answers: Callable[[psycopg.Connection], object]) -> Iterator[None]:
    """Plays the apply job: gives the answers again and again, on a connection of its own."""
    over = threading.Event()

    def play() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.wait(0.002):
                for answer in answers:
                    answer(connection)

    with ThreadPoolExecutor(1) as pool:
        playing = pool.submit(play)
        try:
            yield
        finally:
            over.set()
            playing.result()


@contextmanager
def point(source: SourceSlot, target: str) -> Iterator[SamePoint]:
    request = PointRequest(
        PostgresPoints(ReplicaEnds(source, target, LOG), ()), ("kainite_fence",), 30.0, threading.Event()
    )
    with psycopg.connect(target, autocommit=True) as connection:
        held = VerifyLedger(connection, LOG)
        held.begin()
        with same_point(request, held) as found:
            yield found


@pytest.fixture
def target(postgres: str) -> str:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(FENCE)
        connection.execute("INSERT INTO kainite_fence VALUES (%s, 4, 7)", [LOG])
        for statement in ledger.CREATE:
            connection.execute(statement)
        VerifyLedger(connection, LOG).begin()
    return postgres


def attend(connection: psycopg.Connection) -> None:
    connection.execute(ATTEND)


def stop(connection: psycopg.Connection) -> None:
    connection.execute(STOPPED)


def test_both_snapshots_have_what_was_there_at_the_point(source: SourceSlot, target: str) -> None:
    with psycopg.connect(source.url, autocommit=True) as writer, answering(target, attend, stop):
        writer.execute("INSERT INTO item VALUES (1)")
        with point(source, target) as found:
            writer.execute("INSERT INTO item VALUES (2)")
            with psycopg.connect(source.url) as reader:
                reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                reader.execute(f"SET TRANSACTION SNAPSHOT '{found.source}'".encode())
                assert reader.execute("SELECT id FROM item").fetchall() == [(1,)]
            with psycopg.connect(target, autocommit=True) as other:
                assert other.execute("SELECT state FROM kainite_verify").fetchall() == [("over",)]
    assert found.units == ()


def test_an_apply_job_that_was_faster_gets_a_floor_with_the_next_try(source: SourceSlot, target: str) -> None:
    floors: list[object] = []

    def pass_once(connection: psycopg.Connection) -> None:
        found = connection.execute("SELECT floor FROM kainite_verify WHERE position IS NOT NULL AND state = 'attended'")
        if (row := found.fetchone()) is not None:
            floors.append(row[0])
            if len(floors) == 1:
                connection.execute("UPDATE kainite_verify SET state = 'passed'")
            else:
                stop(connection)

    with answering(target, attend, pass_once), point(source, target) as found:
        assert found.place > 0
    assert floors[0] is None
    assert floors[1] is not None


def test_a_stop_that_another_fence_belies_is_never_taken(source: SourceSlot, target: str) -> None:
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute("UPDATE kainite_fence SET micro_batch = 8")
    with (
        answering(target, attend, stop),
        pytest.raises(TargetError, match=f"came to the point in none of {TRIES} tries"),
        point(source, target),
    ):
        pass


def test_a_table_that_is_being_loaded_by_itself_is_told(source: SourceSlot, target: str) -> None:
    with psycopg.connect(target, autocommit=True) as connection:
        for name, state, position in (("a", "live", "0/1"), ("b", "loading", None), ("c", "live", "FF/0")):
            connection.execute(
                "INSERT INTO kainite_load_table (log_partition, table_schema, table_name, state, position)"
                " VALUES (%s, 'public', %s, %s, %s::pg_lsn)",
                [LOG, name, state, position],
            )
    with answering(target, attend, stop), point(source, target) as found:
        assert found.unready == {
            ("public", "b"): "it is being loaded by itself, and not live",
            ("public", "c"): "it was loaded after the point",
        }


def test_a_target_that_is_being_loaded_is_refused(source: SourceSlot, target: str) -> None:
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute(ledger.BEGIN, (LOG,))
    with (
        answering(target, attend, stop),
        pytest.raises(TargetError, match="is loading, and not live"),
        point(source, target),
    ):
        pass
