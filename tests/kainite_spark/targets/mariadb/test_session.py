"""What a session does about locks, deadlocks, lost connections and tables that change while it works."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from kainite.base.errors import TargetBusyError, TargetError, TargetInterruptedError
from kainite.targets.mariadb.connection import connect
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.mariadb import session
from support.mariadb_server import WAITING_FOR_ROWS
from support.stores import Store, Stores

DDL = "CREATE TABLE item (id bigint PRIMARY KEY, v integer, t varchar(20))"


@pytest.fixture
def store(stores: Stores) -> Store:
    opened = stores.open(DDL)
    assert opened.statuses(opened.unit(0, *(opened.insert("item", id=n, v=0) for n in (1, 2)))) == ["committed"]
    return opened


def test_a_locked_row_delays_its_unit_alone(store: Store) -> None:
    units = [store.unit(n, store.update("item", {"id": n}, v=n)) for n in (1, 2)]
    with closing(connect(store.database.url)) as other:
        other.begin()
        other.query("UPDATE item SET v = 9 WHERE id = 1")
        outcomes = store.apply(*units)
    assert [outcome.status.value for outcome in outcomes] == ["in progress", "committed"]
    assert "Lock wait timeout" in (outcomes[0].cause or "")
    assert store.statuses(*units) == ["committed"] * 2
    assert [row[1] for row in store.rows("item")] == [1, 2]


def test_a_table_that_is_being_altered_delays_its_units(store: Store) -> None:
    with closing(connect(store.database.url)) as other:
        other.query("LOCK TABLES item WRITE")
        with pytest.raises(TargetBusyError):
            store.session.apply(store.fence, [store.unit(1, store.update("item", {"id": 1}, v=1))])
    assert store.statuses(store.unit(1, store.update("item", {"id": 1}, v=1))) == ["committed"]


def test_a_deadlock_is_no_refusal(stores: Stores, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ROW_WAIT_S", 30)
    with closing(connect(store.database.url)) as other:
        other.begin()
        other.query("UPDATE item SET v = 5, t = 'heavy' WHERE id = 2")
        found: list[Any] = []
        unit = store.unit(1, store.update("item", {"id": 1}, v=1), store.update("item", {"id": 2}, v=1))

        def apply() -> None:
            try:
                store.session.apply(store.fence, [unit])
            except TargetError as error:
                found.append(error)

        thread = threading.Thread(target=apply)
        thread.start()
        while store.database.rows(WAITING_FOR_ROWS) != [(1,)]:
            assert thread.is_alive()
        try:
            other.query("UPDATE item SET v = 5 WHERE id = 1")
            other.rollback()
        except Exception:  # the server may choose either of the two
            found.append(None)
        thread.join(60)
    assert len(found) == 1
    assert found[0] is None or isinstance(found[0], TargetBusyError)
    if found[0] is not None:
        assert store.statuses(unit) == ["committed"]
    assert [row[1] for row in store.rows("item")] == [1, 1]


def test_a_lost_connection_is_told_and_opened_again(store: Store) -> None:
    unit = store.unit(1, store.update("item", {"id": 1}, v=1))
    [(own,)] = store.database.rows(
        "SELECT id FROM information_schema.processlist WHERE command = 'Sleep' AND db = database()"
    )
    store.database.run(f"KILL {own}")
    with pytest.raises(TargetInterruptedError):
        store.session.apply(store.fence, [unit])
    assert store.statuses(unit) == ["committed"]


def test_a_column_that_gets_another_type_meanwhile_is_written_by_the_new_one(store: Store) -> None:
    assert store.statuses(store.unit(1, store.update("item", {"id": 1}, t="\\x6162"))) == ["committed"]
    store.database.run("ALTER TABLE item MODIFY t varbinary(20)")
    assert store.statuses(store.unit(2, store.update("item", {"id": 2}, t="\\x6162"))) == ["committed"]
    assert [row[2] for row in store.rows("item")] == [b"\\x6162", b"ab"]


def test_a_table_that_loses_its_transactions_meanwhile_ends_the_job(store: Store) -> None:
    assert store.statuses(store.unit(1, store.update("item", {"id": 1}, v=1))) == ["committed"]
    store.database.run("ALTER TABLE item ENGINE = MyISAM")
    with pytest.raises(TargetError, match="storage engine MyISAM"):
        store.apply(store.unit(2, store.update("item", {"id": 2}, v=2)))
    assert store.acknowledged() == [0, 1]


def test_zero_in_a_counted_column_stays_zero_and_null_is_refused(stores: Stores) -> None:
    store = stores.open("CREATE TABLE c (id bigint PRIMARY KEY, n integer NOT NULL AUTO_INCREMENT UNIQUE)")
    units = [store.unit(1, store.insert("c", id=1, n=0)), store.unit(2, store.insert("c", id=2, n=None))]
    assert store.statuses(*units) == ["committed", "failed"]
    assert store.rows("c") == [(1, 0)]


def test_keys_that_differ_in_case_and_accents_are_one_row_and_conflict(stores: Stores) -> None:
    store = stores.open("CREATE TABLE person (name varchar(20) PRIMARY KEY, age integer)")
    first = store.unit(1, store.insert("person", name="Ann", age=1))
    again = store.unit(2, store.delete("person", name="ANN"), store.upsert("person", name="änn ", age=2))
    assert first.written & again.written
    assert store.statuses(first, again) == ["committed"] * 2
    assert store.rows("person") == [("änn ", 2)]


def test_tables_are_emptied_in_their_place_children_first_and_rows_that_name_each_other_too(stores: Stores) -> None:
    """Shows it in both ways of applying a unit: set-based, and in the source's order."""
    ddl = """
        CREATE TABLE parent (id bigint PRIMARY KEY);
        CREATE TABLE child (id bigint PRIMARY KEY, p bigint REFERENCES parent (id), other bigint REFERENCES child (id));
        CREATE TABLE kept (id bigint PRIMARY KEY);
    """
    made = stores.open(ddl)
    for tid in (0, 2):
        first = [made.insert("parent", id=1), made.insert("child", id=1, p=1, other=1), made.insert("kept", id=tid)]
        rows = [*first, made.insert("child", id=2, p=1, other=1), made.insert("child", id=3, p=1, other=2)]
        assert made.statuses(made.unit(tid, *rows)) == ["committed"]
        emptied = [Delta(name, Operation.TRUNCATE, {}, {}, {}) for name in ("parent", "child")]
        after = [made.insert("parent", id=7), *emptied, made.insert("parent", id=8)]
        unit = made.unit(tid + 1, *(replace(delta, ordinal=place) for place, delta in enumerate(after)))
        if tid:
            made.session.apply_in_source_order(made.fence, unit)
        else:
            assert made.statuses(unit) == ["committed"]
        assert (made.rows("parent"), made.rows("child")) == ([(8,)], [])
        made.database.run("DELETE FROM parent")
    assert made.rows("kept") == [(0,), (2,)]
