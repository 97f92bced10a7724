"""A server that is killed between the prepare and the commit of a transaction over two targets."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from kainite.base.errors import TargetBusyError, TargetError
from kainite.store.memory import MemoryStore
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mariadb import target as mariadb
from kainite_spark.targets.postgresql import target as postgresql
from kainite_spark.targets.preparing import TransactionName, gid_of
from support.atomic_world import FENCE, LEDGER, NAME, AtomicWorld, leave_prepared
from support.killed_servers import WITH_BINLOG, KilledServer
from support.several_world import item
from support.stores import Database

OTHER = TransactionName(1, 1, "b2")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["postgresql", pytest.param("mariadb", marks=pytest.mark.long), WITH_BINLOG])
def test_what_is_prepared_outlives_a_kill_of_its_server(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows a server that begins again has what was prepared, and holds the fence with it, until it is resolved."""
    monkeypatch.setattr(mariadb, "_FENCE_WAIT_S", 1)
    monkeypatch.setattr(postgresql, "FENCE_WAIT_S", 1)
    sqlite3.connect(tmp_path / "crm.db").close()
    with ExitStack() as opened:
        server = opened.enter_context(closing(KilledServer(kind)))
        databases = {"shop": Database(server.start()), "crm": Database(f"sqlite:///{tmp_path / 'crm.db'}")}
        world = opened.enter_context(closing(AtomicWorld(MemoryStore(), databases)))
        driver = world.target()
        driver.raise_generation(LEDGER, 1)
        driver.begin_micro_batch(FENCE)
        leave_prepared(world, "shop", "crm")
        with closing(world.targets["shop"].connect()) as session:
            session.prepare(FENCE, (Unit(2, "T-2", (item(2, 2),)),), gid_of(LEDGER, "shop", OTHER))
        driver.decisions.commit(NAME, ("shop", "crm"))

        begin_again(server, world)
        shop = [gid_of(LEDGER, "shop", name) for name in (NAME, OTHER)]
        assert [part.gid for part in world.left()] == [*shop, gid_of(LEDGER, "crm", NAME)]
        assert (world.rows("shop"), world.rows("crm")) == ({}, {})
        with pytest.raises(TargetBusyError):
            world.targets["shop"].begin_micro_batch(Fence(LEDGER, 1, 2))
        world.target().raise_generation(LEDGER, 2)
        assert (world.rows("shop"), world.rows("crm")) == ({1: 1}, {1: 1})
        assert world.left() == []

        begin_again(server, world)
        assert (world.rows("shop"), world.left()) == ({1: 1}, [])


def begin_again(server: KilledServer, world: AtomicWorld) -> None:
    server.kill()
    server.start()
    with suppress(TargetError):  # the driver's connection of before, where it keeps one
        world.left()
