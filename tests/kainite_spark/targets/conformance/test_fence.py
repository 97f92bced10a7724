"""The fence and the acknowledgements: which generation and micro-batch may write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from kainite.base.errors import SettingsError, TargetFencedError, TargetUnavailableError
from kainite.targets.mariadb.connection import connect
from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mariadb import session as mariadb
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql import session as postgresql
from support.mariadb_server import WAITING_FOR_ROWS
from support.stores import DATABASES, Store, Stores
from support.waiting import eventually


def audit(store: Store, tid: int) -> Unit:
    return store.unit(tid, store.insert("audit", what="x", at=tid))


def test_an_older_micro_batch_writes_nothing(shop: Store) -> None:
    shop.target.begin_micro_batch(Fence("0", 1, 5))
    with pytest.raises(TargetFencedError, match="micro-batch 0"):
        shop.apply(audit(shop, 1))
    with pytest.raises(TargetFencedError):
        shop.session.apply_in_source_order(Fence("0", 1, 4), audit(shop, 1))
    assert shop.rows("audit") == []
    assert shop.acknowledged() == [0]


def test_a_fenced_task_is_told_so_even_if_its_rows_are_refused(shop: Store) -> None:
    shop.target.begin_micro_batch(Fence("0", 1, 5))
    with pytest.raises(TargetFencedError):
        shop.session.apply(shop.fence, [shop.unit(1, shop.insert("region", id=1, name="again"))])


def test_micro_batches_go_forward_only(shop: Store) -> None:
    shop.target.begin_micro_batch(Fence("0", 1, 5))
    shop.target.begin_micro_batch(Fence("0", 1, 5))
    with pytest.raises(TargetFencedError):
        shop.target.begin_micro_batch(Fence("0", 1, 4))


def test_a_newer_generation_takes_over(shop: Store) -> None:
    shop.target.raise_generation("0", 2)
    for refused in (
        lambda: shop.apply(audit(shop, 1)),
        lambda: shop.target.begin_micro_batch(Fence("0", 1, 9)),
        lambda: shop.target.raise_generation("0", 1),
        lambda: shop.target.trim(shop.fence, 1),
    ):
        with pytest.raises(TargetFencedError):
            refused()
    shop.target.begin_micro_batch(Fence("0", 2, 0))
    shop.fence = Fence("0", 2, 0)
    assert shop.statuses(audit(shop, 1)) == ["committed"]


def test_raising_the_same_generation_again_keeps_its_micro_batch(shop: Store) -> None:
    shop.target.begin_micro_batch(Fence("0", 1, 5))
    shop.target.raise_generation("0", 1)
    with pytest.raises(TargetFencedError):
        shop.target.begin_micro_batch(Fence("0", 1, 4))


def test_log_partitions_do_not_meet(shop: Store) -> None:
    shop.target.raise_generation("other", 1)
    shop.target.begin_micro_batch(Fence("other", 1, 0))
    shop.session.apply(Fence("other", 1, 0), [audit(shop, 0)])
    assert shop.session.applied("other", [0, 1]) == {0}
    assert shop.statuses(audit(shop, 1)) == ["committed"]


def test_trim_forgets_only_what_is_below(shop: Store) -> None:
    shop.apply(*(audit(shop, tid) for tid in range(1, 6)))
    assert shop.target.trim(Fence("0", 1, 1), 4) == 4
    assert shop.acknowledged() == [4, 5]
    assert shop.session.applied("0", range(10)) == {4, 5}


def test_trimming_shuts_out_every_older_task(stores: Stores, shop: Store) -> None:
    # The zombie has asked what is applied before its retry committed, and goes on after the trimming.
    zombie = stores.session(shop.target)
    units = [audit(shop, tid) for tid in range(1, 4)]
    assert zombie.applied("0", [1, 2, 3]) == set()
    assert shop.statuses(*units) == ["committed"] * 3
    shop.target.trim(Fence("0", 1, 1), 10)
    with pytest.raises(TargetFencedError):
        zombie.apply(shop.fence, units)
    with pytest.raises(TargetFencedError):
        zombie.apply_in_source_order(shop.fence, units[0])
    assert shop.rows("audit") == [("x", 1), ("x", 2), ("x", 3)]
    shop.fence = Fence("0", 1, 2)
    shop.target.begin_micro_batch(shop.fence)
    assert shop.statuses(audit(shop, 4)) == ["committed"]


def test_trimming_under_a_number_that_tasks_may_have_is_refused(shop: Store) -> None:
    shop.apply(audit(shop, 1))
    for number in (0, -1):
        with pytest.raises(TargetFencedError):
            shop.target.trim(Fence("0", 1, number), 10)
    assert shop.acknowledged() == [0, 1]


def test_closing_a_micro_batch_shuts_its_tasks_out_and_tells_what_they_did(stores: Stores, shop: Store) -> None:
    zombie = stores.session(shop.target)
    zombie.apply(shop.fence, [audit(shop, 1)])
    assert shop.target.close_micro_batch(Fence("0", 1, 1), [1, 2]) == {1}
    with pytest.raises(TargetFencedError):
        zombie.apply(shop.fence, [audit(shop, 2)])
    with pytest.raises(TargetFencedError):
        shop.target.close_micro_batch(Fence("0", 1, 0), [1])


@DATABASES
def test_a_unit_that_somebody_acknowledged_meanwhile_is_no_failure(shop: Store) -> None:
    shop.session.apply(shop.fence, [audit(shop, 1)])
    with pytest.raises(TargetUnavailableError, match="acknowledged"):
        shop.session.apply(shop.fence, [audit(shop, 1), audit(shop, 2)])
    assert shop.statuses(audit(shop, 1), audit(shop, 2)) == ["committed"] * 2
    assert shop.rows("audit") == [("x", 1), ("x", 2)]


def test_preparing_twice_keeps_everything(shop: Store) -> None:
    shop.target.prepare("0", shop.catalogue)
    assert shop.acknowledged() == [0]


class Held(tuple[Delta, ...]):
    """Deltas that stop whoever reads them, in the middle of a transaction, until they are let go."""

    __slots__ = ()
    reached = threading.Event()
    let_go = threading.Event()

    def __iter__(self) -> Iterator[Delta]:
        self.reached.set()
        assert self.let_go.wait(30)
        return super().__iter__()


@DATABASES
def test_a_new_micro_batch_waits_for_a_running_transaction(
    stores: Stores, shop: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "ROW_WAIT_S", 30)
    monkeypatch.setattr(mariadb, "ROW_WAIT_S", 30)
    # SQLite alone stops inside ``Held``; the others stop at a row that another connection has locked.
    began = threading.Event()
    unit = shop.unit(1, shop.update("region", {"id": 1}, name="late"))

    def begin() -> None:
        shop.target.begin_micro_batch(Fence("0", 1, 1))
        assert shop.rows("region") == [(1, "late")]
        began.set()

    if shop.database.kind == "sqlite":
        session_thread = threading.Thread(target=lambda: apply_once(shop, replace(unit, deltas=Held(unit.deltas))))
        session_thread.start()
        assert Held.reached.wait(30)
        release = Held.let_go.set
    else:
        holder = held_row(shop)
        session_thread = threading.Thread(target=lambda: apply_once(shop, unit))
        session_thread.start()
        wait_for_lock_waits(shop, 1)
        release = holder.close
    waiter = threading.Thread(target=begin)
    waiter.start()
    if shop.database.kind != "sqlite":
        wait_for_lock_waits(shop, 2)
    assert not began.wait(0.3)
    release()
    session_thread.join(30)
    assert began.wait(30)
    waiter.join(30)
    with pytest.raises(TargetFencedError):
        shop.session.apply(shop.fence, [audit(shop, 2)])


def held_row(store: Store) -> Any:
    """Locks a row; returns the connection."""
    sql = "UPDATE region SET name = 'held' WHERE id = 1"
    if store.database.kind == "mariadb":
        connection = connect(store.database.url)
        connection.begin()
        connection.query(sql)
        return connection
    holder = psycopg.connect(store.database.url)
    holder.execute(sql)
    return holder


WAITING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    "mariadb": WAITING_FOR_ROWS,
}


def apply_once(store: Store, unit: Unit) -> None:
    session = store.target.connect()
    session.apply(store.fence, [unit])
    session.close()


def wait_for_lock_waits(store: Store, count: int) -> None:
    """Waits until so many sessions wait for a lock."""
    eventually(lambda: store.database.rows(WAITING[store.database.kind]) == [(count,)])


@pytest.mark.parametrize("url", ["oracle://x", "target.db", ""])
def test_an_unknown_kind_of_target_is_a_wrong_setting(shop: Store, url: str) -> None:
    with pytest.raises(SettingsError, match="target must be postgresql://user@host/database, sqlite:///file, mariadb"):
        open_target(url, shop.catalogue)
