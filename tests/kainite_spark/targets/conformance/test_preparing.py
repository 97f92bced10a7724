"""Transactions over two targets that can prepare, of each kind and mixed: prepared, finished, left over, refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from kainite.base.errors import TargetBusyError, TargetFencedError, TargetUnavailableError
from kainite.store.memory import MemoryStore
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mariadb import target as mariadb
from kainite_spark.targets.postgresql import target as postgresql
from kainite_spark.targets.preparing import gid_of
from support.atomic_world import FENCE, LEDGER, NAME, AtomicWorld, both, leave_prepared
from support.chaos import Fate, KilledError, MortalStore
from support.mariadb_source import source_database
from support.preparing_postgres import new_database
from support.several_world import changed, contact, item, noting
from support.stores import Database


@pytest.fixture(params=[("postgresql", "postgresql"), ("mariadb", "mariadb")], ids="-".join)
def world(request: pytest.FixtureRequest) -> Iterator[AtomicWorld]:
    """Gives a log, and databases of these kinds for shop and CRM."""
    with ExitStack() as opened:
        databases = {}
        for place, name in enumerate(("shop", "crm")):
            if request.param[place] == "mariadb":
                url = opened.enter_context(source_database(request.getfixturevalue("mariadb_server")))
            else:
                url = opened.enter_context(new_database(request.getfixturevalue("preparing_servers")[place]))
            databases[name] = Database(url)
        yield opened.enter_context(closing(AtomicWorld(MemoryStore(), databases)))


@pytest.fixture
def target(world: AtomicWorld) -> AtomicTarget:
    """Gives the world's targets, with a micro-batch begun."""
    target = world.target()
    target.raise_generation(LEDGER, 1)
    target.begin_micro_batch(FENCE)
    return target


STEPS = ("prepare in shop", "prepare in crm", "decide", "finish in shop", "finish in crm")
DEATHS = [
    *((("postgresql", "postgresql"), f"{half} {step}") for step in STEPS for half in ("before", "after")),
    *((("mariadb", "postgresql"), f"after {step}") for step in STEPS),
]


@pytest.mark.parametrize(("world", "moment"), DEATHS, indirect=["world"])
def test_a_unit_is_in_both_servers_once_wherever_the_job_dies(world: AtomicWorld, moment: str) -> None:
    world.log.unit("both", *noting("both", item(1, 1), contact(1, 1)))
    fate = Fate(on=moment)
    world.apply(fate)
    assert fate.dead
    assert (world.rows("shop"), world.rows("crm")) == ({1: 1}, {1: 1})
    assert (world.noted("shop"), world.noted("crm")) == (["both"], ["both"])
    assert (world.left(), world.statuses()) == ([], {})


@pytest.mark.parametrize(("shop", "crm"), [(-1, 1), (1, -1)])
def test_what_one_server_refuses_the_other_does_not_have(world: AtomicWorld, shop: int, crm: int) -> None:
    """Shows a refusal by either server is the unit's, and that units beside it are applied."""
    world.log.unit("good", *noting("good", item(1, 1), contact(1, 1)))
    world.log.unit("bad", *noting("bad", item(2, shop), contact(2, crm)))
    world.log.unit("behind", *noting("behind", changed("item", 2, 5)))
    world.log.unit("beside", *noting("beside", item(3, 3)))
    world.apply()
    assert (world.rows("shop"), world.rows("crm")) == ({1: 1, 3: 3}, {1: 1})
    assert world.statuses() == {"bad": "failed", "behind": "blocked"}
    assert world.left() == []


def test_a_prepared_transaction_holds_the_fence(
    world: AtomicWorld, target: AtomicTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows no fence advances over a transaction that is prepared under it, and that the driver resolves it first."""
    monkeypatch.setattr(mariadb, "_FENCE_WAIT_S", 1)
    monkeypatch.setattr(postgresql, "FENCE_WAIT_S", 1)
    leave_prepared(world, "shop")
    with pytest.raises(TargetBusyError):
        world.targets["shop"].begin_micro_batch(Fence(LEDGER, 1, 2))
    with pytest.raises(TargetBusyError):
        world.targets["shop"].raise_generation(LEDGER, 2)
    target.begin_micro_batch(Fence(LEDGER, 1, 2))
    assert world.left() == []
    assert target.decisions.all() == {NAME: False}
    assert world.rows("shop") == {}


def test_what_is_decided_is_committed_by_whoever_finds_it(world: AtomicWorld, target: AtomicTarget) -> None:
    leave_prepared(world, "shop", "crm")
    assert target.decisions.commit(NAME)
    target.raise_generation(LEDGER, 2)
    assert (world.rows("shop"), world.rows("crm"), world.left()) == ({1: 1}, {1: 1}, [])


def test_a_newer_drivers_transactions_are_left_alone(world: AtomicWorld, target: AtomicTarget) -> None:
    leave_prepared(world, "shop")
    assert target.resolve(LEDGER, (1, 1)) == {}
    assert [part.name for part in world.left()] == [NAME]


def test_a_task_of_an_old_fence_prepares_nothing(world: AtomicWorld, target: AtomicTarget) -> None:
    with closing(target.connect()) as session:
        target.begin_micro_batch(Fence(LEDGER, 1, 2))
        with pytest.raises(TargetFencedError):
            session.apply(FENCE, [both()])
    assert world.left() == []


def test_a_rival_that_holds_the_rows_makes_the_target_busy(world: AtomicWorld, target: AtomicTarget) -> None:
    leave_prepared(world, "crm")
    with closing(target.connect()) as session, pytest.raises(TargetBusyError):
        session.apply(FENCE, [both()])
    assert [part.gid for part in world.left()] == [gid_of(LEDGER, "crm", NAME)]


def test_an_unknown_transaction_is_not_there(world: AtomicWorld) -> None:
    gid = gid_of(LEDGER, "shop", NAME)
    assert not world.targets["shop"].finish(gid, committed=True)
    with closing(world.targets["shop"].connect()) as session:
        assert not session.finish(gid, committed=False)
        assert session.applied(LEDGER, [1]) == set()


def test_an_answer_of_the_log_that_is_lost_leaves_what_the_next_call_ends(
    world: AtomicWorld, target: AtomicTarget
) -> None:
    """Shows a task whose last transaction's end is unknown settles it before it does anything else."""
    fate = Fate(on="after decide")
    with closing(world.target(fate, MortalStore(world.store, fate)).connect()) as session:
        with suppress(KilledError):
            session.apply(FENCE, [both()])
        assert len(world.left()) == 2
        fate.on, fate.dead = None, False
        assert session.applied(LEDGER, [1]) == {1}
    assert (world.left(), world.rows("crm")) == ([], {1: 1})


def test_a_target_that_is_away_keeps_no_other_from_being_finished(world: AtomicWorld, target: AtomicTarget) -> None:
    leave_prepared(world, "shop", "crm")
    target.decisions.commit(NAME)
    there = world.targets["shop"]
    world.targets["shop"] = Away()  # type: ignore[assignment]
    try:
        with pytest.raises(TargetUnavailableError, match=r"target\.shop: away"):
            world.target().resolve(LEDGER)
    finally:
        world.targets["shop"] = there
    assert [gid_of(LEDGER, "shop", NAME)] == [part.gid for part in world.left()]
    assert world.rows("crm") == {1: 1}


class Away:
    def prepared(self, prefix: str) -> None:
        raise TargetUnavailableError("away")
