"""The load of one table in MariaDB's ledger: who may write, and when it goes live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pymysql
import pytest

from kainite.base.errors import CatalogueError, SourceError, TargetError, TargetFencedError, TargetUnavailableError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate import mariadb_table_ledger, mariadb_table_load
from kainite.replicate.ledger import CopyStep, LoadStep
from kainite.replicate.mariadb_foreign_keys import make_again, take_off
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger
from kainite.replicate.mariadb_status import mariadb_status
from kainite.replicate.mariadb_table_load import MariadbTableLoad
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.table_load import OwnLoad
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import rows_of
from kainite_spark.targets.mariadb import ledger as of_the_apply_job
from support.mariadb_server import run_script

LOG = "log/0"
MAKE_LIVE = f"INSERT INTO kainite_load (log_partition, generation, state) VALUES ('{LOG}', 1, 'live')"
POINT = ConsistentPoint(4711, "a snapshot", SourceIdentity("7", 1, "shop"))


@pytest.fixture
def target(mariadb: str) -> Iterator[pymysql.connections.Connection]:
    run_script(mariadb, "CREATE TABLE item (id int PRIMARY KEY); INSERT INTO item VALUES (1); CREATE TABLE line (id int"
               " PRIMARY KEY, item int, CONSTRAINT of_item FOREIGN KEY (item) REFERENCES item (id))")  # fmt: skip
    with mariadb_session(mariadb) as connection:
        for statement in of_the_apply_job.CREATE:
            connection.query(statement)
        yield connection


@pytest.fixture
def load(target: pymysql.connections.Connection, mariadb: str) -> Iterator[MariadbTableLoad]:
    """Gives the load of a table, by a driver of its own."""
    with mariadb_session(mariadb) as connection:
        made = MariadbTableLoad(connection, LOG, (str(rows_of(target, "SELECT DATABASE()")[0][0]), "item"))
        made.steps.create()
        yield made


def one_step(target: pymysql.connections.Connection) -> list[LoadStep]:
    return [LoadStep(1, 1, str(rows_of(target, "SELECT DATABASE()")[0][0]), "item", CopyStep((), ""))]


def execute(target: pymysql.connections.Connection, *statements: str) -> None:
    for statement in statements:
        target.query(statement)


def foreign_keys(target: pymysql.connections.Connection) -> list[str]:
    there = "FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()"
    return [name for (name,) in rows_of(target, f"SELECT constraint_name {there} ORDER BY 1")]


def hold(target: pymysql.connections.Connection, *pieces: tuple[int, bool, bytes]) -> None:
    with target.cursor() as cursor:
        for tid, last, deltas in pieces:
            cursor.execute(
                "INSERT INTO kainite_held_delta (log_partition, table_schema, table_name, transaction_id, uow, is_last,"
                " size, deltas) VALUES (%s, DATABASE(), 'item', %s, %s, %s, %s, %s)",
                (LOG, tid, f"my-{tid}", last, len(deltas), deltas),
            )


def versions(target: pymysql.connections.Connection) -> Any:
    return rows_of(target, "SELECT tables FROM kainite_fence")


def test_a_load_from_its_beginning_to_its_end(target: pymysql.connections.Connection, load: MariadbTableLoad) -> None:
    assert load.found() is None
    [dropped] = load.begin()
    assert dropped.endswith(".line of_item")
    assert load.found() == OwnLoad(OwnLoadState.LOADING, None, None, None)
    assert versions(target) == [(1,)]
    hold(target, (5, True, b"before the point is known"))
    load.plan(POINT, one_step(target))
    assert load.found() == OwnLoad(OwnLoadState.LOADING, 4711, None, None)
    assert rows_of(target, "SELECT * FROM item") == []
    assert load.steps.left() == [1]
    execute(target, "UPDATE kainite_load_step SET done_at = now(), copied_rows = 3, copied_bytes = 30")
    load.enter(OwnLoadState.CATCHING_UP)
    execute(target, "UPDATE kainite_load_table SET reached = 4711",
            f"INSERT INTO kainite_load (log_partition, generation, state) VALUES ('{LOG}', 1, 'live')")  # fmt: skip
    told = mariadb_status(target, LOG)
    assert [(one.state, one.ranges, one.ranges_done, one.rows, one.bytes, one.held) for one in told.tables] == [
        ("catching up", 1, 1, 3, 30, 1)
    ]
    assert not told.consistent
    with pytest.raises(TargetFencedError), load.nobody_applies():
        load.go_live()  # something is held
    assert versions(target) == [(1,)]
    execute(target, "DELETE FROM kainite_held_delta")
    with load.nobody_applies():
        load.go_live()
    assert load.found() == OwnLoad(OwnLoadState.LIVE, 4711, 4711, None)
    assert versions(target) == [(2,)]
    assert mariadb_status(target, LOG).consistent


def test_a_table_is_not_live_before_its_point_is_passed(
    target: pymysql.connections.Connection, load: MariadbTableLoad
) -> None:
    load.begin()
    load.plan(POINT, [])
    execute(target, "UPDATE kainite_load_table SET reached = 4710")
    with pytest.raises(TargetFencedError), load.nobody_applies():
        load.go_live()


def test_units_are_held_in_their_order_whatever_stands_between_their_pieces(
    target: pymysql.connections.Connection, load: MariadbTableLoad
) -> None:
    load.begin()
    assert load.held() == []
    hold(target, (5, False, b"a"), (6, False, b"x"), (5, True, b"b"), (7, True, b"c"), (6, False, b"y"))
    assert [(one.tid, one.uow, one.pieces) for one in load.held()] == [(5, "my-5", (b"ab",)), (7, "my-7", (b"c",))]
    hold(target, (6, True, b"z"))
    assert [(one.tid, one.pieces) for one in load.held()] == [(5, (b"ab",)), (7, (b"c",)), (6, (b"xyz",))]


def test_a_driver_that_another_one_has_shut_out_changes_nothing(
    target: pymysql.connections.Connection, load: MariadbTableLoad
) -> None:
    load.begin()
    load.plan(POINT, one_step(target))
    with pytest.raises(TargetError, match=r"another kainite replicate load of log/0 table .*\.item runs"):
        MariadbTableLoad(target, LOG, (one_step(target)[0].schema, "item"))
    rows_of(load._connection, "SELECT RELEASE_ALL_LOCKS()")  # noqa: SLF001 - as a server does that has lost the session
    execute(target, "INSERT INTO item VALUES (7)")
    other = MariadbTableLoad(target, LOG, (one_step(target)[0].schema, "item"))
    other.steps.go_on()
    late: list[Callable[[], None]] = [
        lambda: load.plan(POINT, []), lambda: load.enter(OwnLoadState.FAILED, "late"), load.steps.seen,
        load.go_live, load.steps.finish,
    ]  # fmt: skip
    for one in late:
        with pytest.raises(TargetFencedError):
            one()
    assert rows_of(target, "SELECT id FROM item") == [(7,)]
    assert other.found() == OwnLoad(OwnLoadState.LOADING, 4711, None, None)


def test_what_the_target_is_not_fit_for_is_refused_before_the_table_is_emptied(
    target: pymysql.connections.Connection, load: MariadbTableLoad
) -> None:
    columns = "log_partition, generation, state, source"
    execute(target, f"INSERT INTO kainite_load ({columns}) VALUES ('{LOG}', 1, 'loading', '7/shop')")
    with pytest.raises(CatalogueError, match="the target is loading: its tables are loaded by kainite replicate load"):
        load.begin()
    assert load.found() is None
    execute(target, "UPDATE kainite_load SET state = 'live', source = '8/other'")
    load.begin()
    with pytest.raises(SourceError, match="was loaded from 8/other, and this source is 7/shop"):
        load.plan(POINT, [])
    assert rows_of(target, "SELECT id FROM item") == [(1,)]


def test_a_table_that_the_target_refuses_is_failed_and_may_be_begun_again(
    target: pymysql.connections.Connection, load: MariadbTableLoad
) -> None:
    def refuse(_: object) -> None:
        raise CatalogueError("no such type")

    with pytest.raises(CatalogueError, match="no such type"):
        load.begin(refuse)
    assert load.found() == OwnLoad(OwnLoadState.FAILED, None, None, "no such type")
    load.begin()
    assert load.found() == OwnLoad(OwnLoadState.LOADING, None, None, None)


def test_a_load_of_everything_ends_the_loads_of_tables(
    target: pymysql.connections.Connection, load: MariadbTableLoad
) -> None:
    load.begin()
    hold(target, (5, True, b"a"))
    whole = MariadbLoadLedger(target, LOG)
    whole.begin()
    assert rows_of(target, "SELECT COUNT(*) FROM kainite_held_delta") == [(0,)]
    with pytest.raises(TargetFencedError):
        load.plan(POINT, [])
    whole.plan(POINT, [], [])
    assert rows_of(target, "SELECT log_partition FROM kainite_load") == [(LOG,)]
    with pytest.raises(pymysql.Error):  # its driver's session was ended
        load.found()


def test_a_target_with_a_table_that_is_not_live_or_foreign_keys_that_are_off_is_not_cut_over(
    target: pymysql.connections.Connection, load: MariadbTableLoad
) -> None:
    execute(target, MAKE_LIVE)
    load.begin()
    whole = MariadbLoadLedger(target, LOG)
    with pytest.raises(TargetFencedError):
        whole.cut_over(lambda _: None)
    execute(target, "DELETE FROM kainite_load_table")
    with pytest.raises(TargetFencedError):  # who would make the foreign key again is refused from then on
        whole.cut_over(lambda _: None)
    assert make_again(target, LOG) == []
    whole.cut_over(lambda _: None)
    with pytest.raises(CatalogueError, match="the target is cut over"):
        load.begin()
    assert foreign_keys(target) == ["of_item"]


def test_foreign_keys_that_the_target_refuses_do_not_keep_it_from_being_cut_over(
    target: pymysql.connections.Connection, load: MariadbTableLoad
) -> None:
    execute(target, MAKE_LIVE)
    load.begin()
    execute(target, "DELETE FROM kainite_load_table", "INSERT INTO line VALUES (1, 77)")
    assert len(make_again(target, LOG)) == 1
    MariadbLoadLedger(target, LOG).cut_over(lambda _: None)


def test_a_target_is_not_cut_over_between_the_look_at_its_state_and_the_foreign_keys(
    target: pymysql.connections.Connection, load: MariadbTableLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(target, MAKE_LIVE)
    monkeypatch.setattr(mariadb_table_ledger, "FOREIGN_KEYS_WAIT_S", 0)
    looks: list[str] = []

    def cut_over(*of: Any) -> list[str]:
        if not looks:
            with pytest.raises(TargetUnavailableError, match="has dropped or made foreign keys"):
                MariadbLoadLedger(target, LOG).cut_over(lambda _: None)
        looks.append("taken off")
        return take_off(*of)

    monkeypatch.setattr(mariadb_table_load, "take_off", cut_over)
    load.begin()
    assert load.found() == OwnLoad(OwnLoadState.LOADING, None, None, None)


def test_a_load_that_is_refused_behind_the_foreign_keys_gives_them_back(
    target: pymysql.connections.Connection, load: MariadbTableLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(target, MAKE_LIVE)

    def and_loaded_anew(*of: Any) -> list[str]:
        dropped = take_off(*of)
        MariadbLoadLedger(target, LOG).begin()
        return dropped

    monkeypatch.setattr(mariadb_table_load, "take_off", and_loaded_anew)
    with pytest.raises(CatalogueError, match="the target is loading"):
        load.begin()
    assert load.found() is None
    assert foreign_keys(target) == ["of_item"]
    assert mariadb_status(target, LOG).foreign_keys == ()


def test_a_load_that_meets_a_table_that_is_in_use_gives_the_other_foreign_keys_back(
    target: pymysql.connections.Connection, load: MariadbTableLoad, mariadb: str
) -> None:
    execute(target, MAKE_LIVE, "CREATE TABLE more (id int PRIMARY KEY, item int, CONSTRAINT one_more FOREIGN KEY (item)"
            " REFERENCES item (id))")  # fmt: skip
    load._connection.query("SET SESSION lock_wait_timeout = 1")  # noqa: SLF001
    with closing(connect(mariadb)) as reader:
        reader.begin()
        rows_of(reader, "SELECT * FROM more")
        with pytest.raises(pymysql.Error, match="Lock wait timeout"):
            load.begin()
    assert load.found() is None
    assert foreign_keys(target) == ["of_item", "one_more"]
    assert mariadb_status(target, LOG).foreign_keys == ()
