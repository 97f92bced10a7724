"""The ledger of one table's load as its driver holds it: what is refused, and whom it shuts out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from kainite.base.errors import CatalogueError, SourceError, TargetError, TargetFencedError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate import ledger, table_ledger, table_load
from kainite.replicate.ledger import CopyStep, LoadStep
from kainite.replicate.load_ledger import LoadLedger
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.table_load import TableLoad
from kainite.replicate.tables import ReplicaTable

POINT = ConsistentPoint(0x10, "00000003-00000001-1", SourceIdentity("7", 1, "shop"))
ITEM = ReplicaTable("public", "item", "public.item", (), (), "d", 0, ())
COPY = LoadStep(1, 1, "public", "item", CopyStep((), ""))


@pytest.fixture
def target(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("""
            CREATE TABLE item (id int PRIMARY KEY);
            CREATE TABLE kainite_fence (log_partition text PRIMARY KEY, generation bigint, micro_batch bigint,
                                        tables bigint DEFAULT 0)""")
        yield connection


def begun(target: psycopg.Connection) -> TableLoad:
    load = TableLoad(target, "log/0", ("public", "item"))
    load.steps.create()
    load.begin()
    return load


def reach(target: psycopg.Connection, lsn: str) -> None:
    target.execute(table_ledger.REACHED, (lsn, "log/0", lsn))


def test_a_table_goes_live_when_all_is_copied_and_applied_and_the_point_is_passed(target: psycopg.Connection) -> None:
    load = begun(target)
    assert load.found() is not None
    load.plan(POINT, [COPY])
    deltas = ["public"], ["item"], [1], ["pg-1-0/10"], [True], [b"[]"]
    target.execute(table_ledger.HOLD, ("log/0", *deltas))
    load.enter(OwnLoadState.CATCHING_UP)
    done: list[Callable[[], object]] = [
        lambda: target.execute(ledger.DONE, (0, 0, load.name, 1)),
        lambda: reach(target, "0/F"),
        lambda: target.execute(table_ledger.FORGET_HELD, ("log/0", "public", "item")),
        lambda: reach(target, "0/10"),
    ]
    for step in done:
        with pytest.raises(TargetFencedError), load.nobody_applies():
            load.go_live()
        step()
    before = target.execute(table_ledger.VERSION, ["log/0"]).fetchone()
    with load.nobody_applies():
        load.go_live()
    found = load.found()
    assert found is not None
    assert (found.state, found.position, found.reached) == (OwnLoadState.LIVE, 0x10, 0x10)
    after = target.execute(table_ledger.VERSION, ["log/0"]).fetchone()
    assert before is not None
    assert after == (before[0] + 1,)


def test_another_driver_of_the_same_table_is_refused_and_one_that_was_shut_out_writes_nothing(
    target: psycopg.Connection, postgres: str
) -> None:
    load = begun(target)
    with psycopg.connect(postgres, autocommit=True) as other:
        with pytest.raises(TargetError, match=r"another kainite replicate load of log/0 table public\.item runs"):
            TableLoad(other, "log/0", ("public", "item"))
        TableLoad(other, "log/0", ("public", "more"))
        target.execute("SELECT pg_advisory_unlock_all()")
        TableLoad(other, "log/0", ("public", "item")).begin()
    with pytest.raises(TargetFencedError):
        load.plan(POINT, [COPY])
    with pytest.raises(TargetFencedError):
        load.enter(OwnLoadState.FAILED, "late")


def test_a_load_of_everything_shuts_it_out(target: psycopg.Connection) -> None:
    load = begun(target)
    load.plan(POINT, [COPY])
    LoadLedger(target, "log/0").begin()
    with pytest.raises(TargetFencedError):
        load.enter(OwnLoadState.CATCHING_UP)
    with pytest.raises(CatalogueError, match="the target is loading"):
        load.begin()


def test_a_replica_has_one_source(target: psycopg.Connection) -> None:
    load = begun(target)
    target.execute(ledger.PREPARE, ["log/0"])
    target.execute("UPDATE kainite_load SET source = '8/shop', state = 'live' WHERE log_partition = 'log/0'")
    with pytest.raises(SourceError, match="loaded from 8/shop, and this source is 7/shop"):
        load.plan(POINT, [COPY])


def test_tasks_do_not_wait_for_one_another_once_the_point_is_passed(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as one, psycopg.connect(postgres, autocommit=True) as other:
        for statement in (*ledger.CREATE, *table_ledger.CREATE):
            one.execute(statement)
        one.execute("INSERT INTO kainite_load_table VALUES (%s, 'public', 'a', '0/10', 'loading', '0/10')", ["log/0"])
        with one.transaction():
            one.execute(table_ledger.REACHED, ("0/20", "log/0", "0/20"))
            other.execute("SET lock_timeout = '100ms'")
            other.execute(table_ledger.REACHED, ("0/21", "log/0", "0/21"))


def test_what_is_held_is_given_in_whole_units_within_a_bound(
    target: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keeps many units from being in memory at once, and a large one from being applied in part."""
    monkeypatch.setattr(table_load, "HELD_BYTES", 25)
    load = begun(target)
    rows = [(1, True), (2, False), (2, False), (2, True), (3, True), (4, False)]
    for tid, last in rows:
        values = ["public"], ["item"], [tid], [f"pg-{tid}-0/10"], [last], [b"0123456789"]
        target.execute(table_ledger.HOLD, ("log/0", *values))
    found = load.held()
    assert [(one.tid, len(one.pieces)) for one in found] == [(1, 1), (2, 3)]
    assert table_load.is_full(found)
    target.execute("DELETE FROM kainite_held_delta WHERE place = ANY(%s)", [[at for one in found for at in one.places]])
    # The end of the fourth unit is not there: nobody but a transaction that is under way could see this.
    assert [(one.tid, len(one.pieces)) for one in load.held()] == [(3, 1)]
    assert not table_load.is_full(load.held())


def test_pieces_of_units_that_were_held_at_the_same_time_stay_with_their_units(
    target: psycopg.Connection, postgres: str
) -> None:
    """Writes pieces of two units in turns, as two tasks of a micro-batch do: a piece takes the place that is next."""
    load = begun(target)
    with psycopg.connect(postgres) as one, psycopg.connect(postgres) as other:
        for session, tid, last, piece in ((one, 1, False, b"a"), (other, 2, False, b"b"), (one, 1, True, b"A")):
            hold(session, tid, last, piece)
        one.commit()
        assert [(unit.tid, unit.pieces) for unit in load.held()] == [(1, (b"a", b"A"))]
        hold(other, 2, True, b"B")
        other.commit()
    found = load.held()
    assert [(unit.tid, unit.uow, unit.pieces) for unit in found] == [
        (1, "pg-1-0/10", (b"a", b"A")),
        (2, "pg-2-0/10", (b"b", b"B")),
    ]
    assert [unit.places for unit in found] == [(1, 3), (2, 4)]


def hold(session: psycopg.Connection, tid: int, last: bool, piece: bytes) -> None:
    values = ["public"], ["item"], [tid], [f"pg-{tid}-0/10"], [last], [piece]
    session.execute(table_ledger.HOLD, ("log/0", *values))
