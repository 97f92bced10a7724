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
from kainite.replicate import ledger, mariadb_ledger
from kainite.replicate.ends import ReplicaEnds, is_mariadb
from kainite.replicate.mariadb_point_target import MariadbPointTarget
from kainite.replicate.point_source import PostgresPoints
from kainite.replicate.point_target import PointTarget, PostgresPointTarget
from kainite.replicate.same_point import TRIES, PointRequest, SamePoint, same_point
from kainite.replicate.stop_ledger import encoded
from kainite.replicate.verify_ledger import VerifyLedger, VerifySession, first_row, statements_for
from support.verify_sessions import KINDS, run, session_of, target_of

LOG = "log/0"
ATTEND = "UPDATE kainite_verify SET state = 'attended', generation = 4 WHERE state = 'asked'"
STOPPED = """
    UPDATE kainite_verify SET state = 'stopped', micro_batch = 7, units = %s
    WHERE state = 'attended' AND position IS NOT NULL"""


@contextmanager
def answering(url: str, *answers: Callable[[VerifySession], object]) -> Iterator[None]:
    """Plays the apply job: gives the answers again and again, on a connection of its own."""
    over = threading.Event()

    def play() -> None:
        with session_of(url) as connection:
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
    made: PointTarget = (
        MariadbPointTarget(target, LOG, ("kainite_fence",), 3)
        if is_mariadb(target)
        else PostgresPointTarget(target, LOG, ("kainite_fence",))
    )
    request = PointRequest(PostgresPoints(ReplicaEnds(source, target, LOG), ()), made, 30.0, threading.Event())
    with session_of(target) as connection:
        held = VerifyLedger(connection, LOG)
        held.begin()
        with same_point(request, held) as found:
            yield found


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest) -> str:
    url = target_of(request.param, request)
    with session_of(url) as connection:
        run(connection, "INSERT INTO kainite_fence VALUES (%s, 4, 7)", LOG)
        for statement in mariadb_ledger.CREATE if is_mariadb(url) else ledger.CREATE:
            run(connection, statement)
        # Not by begin(): a server may keep its lock for a moment behind the session's end.
        run(connection, statements_for(connection).create)
    return url


def attend(connection: VerifySession) -> None:
    run(connection, ATTEND)


def stop(connection: VerifySession) -> None:
    run(connection, STOPPED, encoded(()))


def test_both_snapshots_have_what_was_there_at_the_point(source: SourceSlot, target: str) -> None:
    with psycopg.connect(source.url, autocommit=True) as writer, answering(target, attend, stop):
        writer.execute("INSERT INTO item VALUES (1)")
        with point(source, target) as found:
            writer.execute("INSERT INTO item VALUES (2)")
            with psycopg.connect(source.url) as reader:
                reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                reader.execute(f"SET TRANSACTION SNAPSHOT '{found.source}'".encode())
                assert reader.execute("SELECT id FROM item").fetchall() == [(1,)]
            with session_of(target) as other:
                assert first_row(other, "SELECT state FROM kainite_verify") == ("over",)
    assert found.units == ()


def test_an_apply_job_that_was_faster_gets_a_floor_with_the_next_try(source: SourceSlot, target: str) -> None:
    floors: list[object] = []

    def pass_once(connection: VerifySession) -> None:
        found = "SELECT floor FROM kainite_verify WHERE position IS NOT NULL AND state = 'attended'"
        if (row := first_row(connection, found)) is not None:
            floors.append(row[0])
            if len(floors) == 1:
                run(connection, "UPDATE kainite_verify SET state = 'passed'")
            else:
                stop(connection)

    with answering(target, attend, pass_once), point(source, target) as found:
        assert found.place > 0
    assert floors[0] is None
    assert floors[1] is not None


def test_a_stop_that_another_fence_belies_is_never_taken(source: SourceSlot, target: str) -> None:
    with session_of(target) as connection:
        run(connection, "UPDATE kainite_fence SET micro_batch = 8")
    with (
        answering(target, attend, stop),
        pytest.raises(TargetError, match=f"came to the point in none of {TRIES} tries"),
        point(source, target),
    ):
        pass


def test_a_table_that_is_being_loaded_by_itself_is_told(source: SourceSlot, target: str) -> None:
    placed = "%s" if is_mariadb(target) else "'0/0'::pg_lsn + %s::numeric"
    with session_of(target) as connection:
        for name, state, position in (("a", "live", 1), ("b", "loading", 1), ("c", "live", 0xFF << 32)):
            run(
                connection,
                "INSERT INTO kainite_load_table (log_partition, table_schema, table_name, state, position)"
                f" VALUES (%s, 'public', %s, %s, {placed})",
                *(LOG, name, state, position),
            )
    with answering(target, attend, stop), point(source, target) as found:
        assert found.unready == {
            ("public", "b"): "it is being loaded by itself, and not live",
            ("public", "c"): "it was loaded after the point",
        }


def test_a_target_that_is_being_loaded_is_refused(source: SourceSlot, target: str) -> None:
    with session_of(target) as connection:
        run(connection, mariadb_ledger.BEGIN if is_mariadb(target) else ledger.BEGIN, LOG)
    with (
        answering(target, attend, stop),
        pytest.raises(TargetError, match="is loading, and not live"),
        point(source, target),
    ):
        pass
