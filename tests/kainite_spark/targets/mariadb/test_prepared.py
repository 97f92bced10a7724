"""Prepared transactions in MariaDB, beside what the conformance suite shows of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from kainite.base.errors import TargetError, TargetRejectedError, TargetUnavailableError
from kainite.settings import ApplySettings, MarkersSettings, TargetCommit
from kainite.store.memory import MemoryStore
from kainite.targets.mariadb.connection import connect
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.mariadb import prepared, session
from kainite_spark.targets.mariadb.prepared import CLUSTER, FLUSHING, OTHER_SERVER, why_not, xid_of
from kainite_spark.targets.opener import TargetRequest
from kainite_spark.targets.opening import look_at_kind, open_target
from kainite_spark.targets.preparing import TransactionName, gid_of
from support.atomic_world import FENCE, LEDGER, NAME, AtomicWorld, leave_prepared
from support.mariadb_source import source_database
from support.several_world import item
from support.stores import Database
from support.waiting import eventually

SHOP = gid_of(LEDGER, "shop", NAME)


def opened_world(server: str, opened: ExitStack) -> AtomicWorld:
    """Returns two databases of a server that commit together, with a micro-batch begun."""
    databases = {name: Database(opened.enter_context(source_database(server))) for name in ("shop", "crm")}
    world = opened.enter_context(closing(AtomicWorld(MemoryStore(), databases)))
    target = world.target()
    target.raise_generation(LEDGER, 1)
    target.begin_micro_batch(FENCE)
    return world


@pytest.fixture
def world(mariadb_server: str) -> Iterator[AtomicWorld]:
    with ExitStack() as opened:
        yield opened_world(mariadb_server, opened)


def test_an_identifier_is_cut_at_its_last_colon() -> None:
    first, second = SHOP.rsplit(":", 1)
    assert xid_of(SHOP) == f"'{first}','{second}',19297"
    with pytest.raises(TargetError, match="takes no transaction of the name"):
        xid_of(gid_of(LEDGER, "shop", TransactionName(2**62, 2**62, "f" * 32)))
    with pytest.raises(TargetError, match="takes no transaction of the name"):
        xid_of("' OR 1")


def test_while_the_session_that_prepared_lives_no_other_one_finishes(
    world: AtomicWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows what the server calls unknown is not taken for finished, and is finished when the session has ended."""
    monkeypatch.setattr(prepared, "RELEASE_WAIT_S", 0.1)
    shop = world.targets["shop"]
    with closing(shop.connect()) as task:
        task.prepare(FENCE, (Unit(1, "T-1", (item(1, 1),)),), SHOP)
        for other in (shop, world.targets["crm"]):
            with pytest.raises(TargetUnavailableError, match="has not ended"):
                other.finish(SHOP, committed=False)
    monkeypatch.setattr(prepared, "RELEASE_WAIT_S", 60)
    assert shop.finish(SHOP, committed=True)
    assert not shop.finish(SHOP, committed=True)
    assert world.rows("shop") == {1: 1}


def test_the_session_that_prepared_finishes_by_itself_or_gives_way(world: AtomicWorld) -> None:
    other = gid_of(LEDGER, "shop", TransactionName(1, 1, "b2"))
    with closing(world.targets["shop"].connect()) as task:
        task.prepare(FENCE, (Unit(1, "T-1", (item(1, 1),)),), SHOP)
        assert task.finish(SHOP, committed=True)
        task.prepare_in_source_order(FENCE, Unit(2, "T-2", (item(2, 2),)), other)
        assert task.applied(LEDGER, [1, 2]) == {1}, "by another connection: this one takes no statement"
        assert task.finish(other, committed=False)
    assert world.rows("shop") == {1: 1}


def test_the_server_ends_the_session_of_a_task_that_hangs(world: AtomicWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "IDLE_S", 1)
    monkeypatch.setattr(prepared, "RELEASE_WAIT_S", 60)
    with closing(world.targets["shop"].connect()) as task:
        task.prepare(FENCE, (Unit(1, "T-1", (item(1, 1),)),), SHOP)
        assert world.target().resolve(LEDGER) == {NAME: False}
        with pytest.raises(TargetUnavailableError):
            task.finish(SHOP, committed=True)
        assert not task.finish(SHOP, committed=True)


def test_a_refused_unit_leaves_the_session_usable(world: AtomicWorld) -> None:
    with closing(world.targets["shop"].connect()) as task:
        with pytest.raises(TargetRejectedError):
            task.prepare(FENCE, (Unit(1, "T-1", (item(1, -1),)),), SHOP)
        task.prepare(FENCE, (Unit(1, "T-1", (item(1, 1),)),), SHOP)
        assert [part.gid for part in world.left()] == [SHOP]
        assert task.finish(SHOP, committed=True)


def test_only_the_logs_own_transactions_in_this_database_are_listed(world: AtomicWorld, mariadb_server: str) -> None:
    """Shows another log of the same name in another database of the server is left alone: nobody here has decided."""
    leave_prepared(world, "shop")
    with ExitStack() as opened, closing(connect(mariadb_server)) as stranger:
        elsewhere = opened_world(mariadb_server, opened)
        for statement in ("XA START 'theirs'", "XA END 'theirs'", "XA PREPARE 'theirs'"):
            stranger.query(statement)
        assert elsewhere.target().resolve(LEDGER) == {}
        [part] = world.target().prepared_in("shop", LEDGER)
        assert (part.name, part.gid) == (NAME, SHOP)
        assert part.age >= 0
        eventually(lambda: world.target().prepared_in("shop", LEDGER)[0].age > part.age)
        assert world.target().prepared_in("shop", "another/log") == []


def test_two_names_of_one_database_are_no_two_targets(world: AtomicWorld) -> None:
    target = AtomicTarget({**world.targets, "crm": world.targets["shop"]}, world.assignment)
    with pytest.raises(TargetError, match=r"target\.shop and target\.crm are one database"):
        target.prepare(LEDGER, world.catalogue)


def test_a_server_that_lacks_a_variable_tells_its_place_without_it(
    mariadb_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows earlier releases, which have no server_uid, are no servers that do not answer."""
    monkeypatch.setattr(prepared, "PLACE", prepared.PLACE.replace("server_uid", "of_a_later_release"))
    with closing(connect(mariadb_server)) as one, closing(connect(mariadb_server)) as other:
        place = prepared.ledger_place(one)
        assert place == prepared.ledger_place(other)
        other.query("CREATE DATABASE IF NOT EXISTS elsewhere")
        other.select_db("elsewhere")
        assert place != prepared.ledger_place(other)
        other.query("DROP DATABASE elsewhere")


@pytest.mark.parametrize(
    ("version", "kept", "cluster", "why"),
    [
        ("10.11.6-MariaDB-0+deb12u1", True, False, None),
        ("11.4.2-MariaDB", True, False, None),
        ("10.4.34-MariaDB", True, False, OTHER_SERVER),
        ("8.0.36", True, False, OTHER_SERVER),
        ("10.11.6-MariaDB", False, False, FLUSHING),
        ("10.11.6-MariaDB", True, True, CLUSTER),
    ],
)
def test_a_server_that_does_not_keep_what_it_has_prepared_is_refused(
    version: str, kept: bool, cluster: bool, why: str | None
) -> None:
    assert why_not(version, kept=kept, cluster=cluster) == why


def test_a_server_that_does_not_flush_is_refused_and_found(mariadb: str) -> None:
    database = Database(mariadb)
    database.run("CREATE TABLE item (id bigint PRIMARY KEY)")
    catalogue = reflect(mariadb)
    request = TargetRequest(mariadb, catalogue, None, ApplySettings(commit=TargetCommit.ATOMIC), MarkersSettings())
    assert "the server keeps what it has prepared" in "\n".join(found.what for found in look_at_kind(request))
    target = open_target(mariadb, catalogue)
    target.require_preparing()  # type: ignore[attr-defined]
    with closing(connect(mariadb)) as server:
        server.query("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
        try:
            with pytest.raises(TargetError, match="innodb_flush_log_at_trx_commit = 1"):
                target.require_preparing()  # type: ignore[attr-defined]
            told = "\n".join(found.what for found in look_at_kind(request))
        finally:
            server.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
    assert "the server cannot take part in targetCommit=atomic" in told


def test_a_table_of_another_engine_is_refused(mariadb: str) -> None:
    Database(mariadb).run("CREATE TABLE old (id int PRIMARY KEY) ENGINE = MyISAM")
    target = open_target(mariadb, reflect(mariadb))
    with pytest.raises(TargetError, match="table old has the storage engine MyISAM, and targetCommit=atomic"):
        target.require_preparing()  # type: ignore[attr-defined]
