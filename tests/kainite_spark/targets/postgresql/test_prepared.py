"""Transactions over two PostgreSQL servers: prepared, finished, left over, refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress

import psycopg
import pytest
from msgspec.structs import replace

from kainite.base.errors import TargetBusyError, TargetError, TargetFencedError, TargetRejectedError
from kainite.settings import ApplySettings, MarkersSettings, TargetCommit
from kainite.store.memory import MemoryStore
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.opener import TargetRequest
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql.readiness import look_at_database
from kainite_spark.targets.preparing import PreparedPart, TransactionName, gid_of, gid_prefix
from support.atomic_world import LEDGER, AtomicWorld
from support.chaos import Fate, KilledError, MortalStore
from support.preparing_postgres import new_database, two_servers
from support.several_world import changed, contact, item, noting
from support.stores import Database

FENCE = Fence(LEDGER, 1, 1)
NAME = TransactionName(1, 1, "a1")

Fresh = Callable[[], AtomicWorld]


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[str, str]]:
    with two_servers() as found:
        yield found


@pytest.fixture
def fresh(servers: tuple[str, str]) -> Iterator[Fresh]:
    """Gives a function that makes a world of its own at each call."""
    with ExitStack() as worlds:

        def made() -> AtomicWorld:
            databases = {
                name: Database(worlds.enter_context(new_database(server)))
                for name, server in zip(("shop", "crm"), servers, strict=True)
            }
            return worlds.enter_context(closing(AtomicWorld(MemoryStore(), databases)))

        yield made


@pytest.fixture
def world(fresh: Fresh) -> AtomicWorld:
    return fresh()


@pytest.fixture
def target(world: AtomicWorld) -> AtomicTarget:
    """Gives the world's targets, with a micro-batch begun."""
    target = world.target()
    target.raise_generation(LEDGER, 1)
    target.begin_micro_batch(FENCE)
    return target


def both(tid: int = 1, value: int = 1) -> Unit:
    return Unit(tid, f"T-{tid}", tuple(noting(f"T-{tid}", item(tid, value), contact(tid, value))))


def leave_prepared(world: AtomicWorld, *names: str, unit: Unit | None = None) -> None:
    """Prepares the parts of a unit in some targets, as a task that dies then."""
    parts = {"shop": noting("T-1", item(1, 1)), "crm": noting("T-1", contact(1, 1))}
    for name in names:
        with closing(world.targets[name].connect()) as session:
            own = unit or Unit(1, "T-1", tuple(parts[name]))
            session.prepare(FENCE, (own,), gid_of(LEDGER, name, NAME))


MOMENTS = [f"{half} {step}" for step in ("prepare in shop", "prepare in crm", "decide", "finish in shop",
                                         "finish in crm") for half in ("before", "after")]  # fmt: skip


@pytest.mark.parametrize("moment", MOMENTS)
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


def test_a_prepared_transaction_holds_the_fence(world: AtomicWorld, target: AtomicTarget) -> None:
    """Shows no fence advances over a transaction that is prepared under it, and that the driver resolves it first."""
    leave_prepared(world, "shop")
    with psycopg.connect(world.databases["shop"].url) as other, pytest.raises(psycopg.errors.LockNotAvailable):
        other.execute("SELECT 1 FROM kainite_fence FOR UPDATE NOWAIT")
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


def test_a_deferred_constraint_refuses_when_it_is_prepared(world: AtomicWorld) -> None:
    url = world.databases["crm"].url
    world.databases["crm"].run(
        "ALTER TABLE contact ADD parent bigint REFERENCES contact DEFERRABLE INITIALLY DEFERRED;"
        "CREATE TABLE other (id bigint PRIMARY KEY)"
    )
    crm = open_target(url, reflect(url))
    with closing(crm):
        crm.raise_generation(LEDGER, 1)
        crm.begin_micro_batch(FENCE)
        row = replace(contact(1, 1), row={"id": 1, "v": 1, "parent": 7})
        with pytest.raises(TargetRejectedError, match="contact"):
            leave_prepared(world, "crm", unit=Unit(1, "T-1", (row,)))
    assert world.left() == []


def test_an_unknown_transaction_is_not_there(world: AtomicWorld) -> None:
    gid = gid_of(LEDGER, "shop", NAME)
    assert not world.targets["shop"].finish(gid, committed=True)
    with closing(world.targets["shop"].connect()) as session:
        assert not session.finish(gid, committed=False)
        assert session.applied(LEDGER, [1]) == set()


def test_only_the_logs_own_transactions_in_this_database_are_listed(
    world: AtomicWorld, target: AtomicTarget, servers: tuple[str, str]
) -> None:
    leave_prepared(world, "shop")
    with new_database(servers[0]) as other, psycopg.connect(other, autocommit=True) as stranger:
        for gid in (gid_of(LEDGER, "shop", TransactionName(1, 1, "b2")), "someone else's"):
            stranger.execute("BEGIN")
            stranger.execute(f"PREPARE TRANSACTION '{gid.replace(chr(39), '')}'")
        [part] = target.prepared_in("shop", LEDGER)
        assert isinstance(part, PreparedPart)
        assert (part.name, part.gid) == (NAME, gid_of(LEDGER, "shop", NAME))
        assert part.age >= 0
    assert target.prepared_in("shop", "another/log") == []
    assert part.gid.startswith(gid_prefix(LEDGER, "shop"))


def test_two_schemas_of_one_database_are_no_two_targets(servers: tuple[str, str]) -> None:
    """Shows targets that share Kainite's own tables are refused at the start; two databases of a server are not."""
    with ExitStack() as opened:
        first, second = (opened.enter_context(new_database(servers[0])) for _ in range(2))
        with pytest.raises(TargetError, match=r"target\.shop and target\.crm are one database"):
            AtomicWorld(MemoryStore(), {"shop": Database(first), "crm": Database(first)})
        apart = {"shop": Database(second), "crm": Database(opened.enter_context(new_database(servers[0])))}
        world = opened.enter_context(closing(AtomicWorld(MemoryStore(), apart)))
        world.log.unit("both", *noting("both", item(1, 1), contact(1, 1)))
        world.apply(Fate(on="after finish in shop"))
        assert (world.rows("shop"), world.rows("crm"), world.left()) == ({1: 1}, {1: 1}, [])


def test_a_server_that_prepares_nothing_is_refused(postgres: str) -> None:
    database = Database(postgres)
    database.run("CREATE TABLE item (id bigint PRIMARY KEY)")
    target = open_target(postgres, reflect(postgres))
    with closing(target), pytest.raises(TargetError, match="max_prepared_transactions"):
        target.require_preparing()  # type: ignore[attr-defined]
    request = TargetRequest(postgres, reflect(postgres), None, ApplySettings(commit=TargetCommit.ATOMIC),
                            MarkersSettings())  # fmt: skip
    assert "max_prepared_transactions is 0" in [finding.what for finding in look_at_database(request)]


def test_a_server_that_prepares_is_found_ready(servers: tuple[str, str]) -> None:
    with new_database(servers[0]) as url:
        Database(url).run("CREATE TABLE item (id bigint PRIMARY KEY)")
        request = TargetRequest(url, reflect(url), None, ApplySettings(commit=TargetCommit.ATOMIC), MarkersSettings())
        told = [finding.what for finding in look_at_database(request)]
    assert "the server prepares transactions, for targetCommit=atomic" in told


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
