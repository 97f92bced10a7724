"""Prepared transactions in PostgreSQL, beside what the conformance suite shows of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest
from msgspec.structs import replace

from kainite.base.errors import TargetError, TargetRejectedError
from kainite.settings import ApplySettings, MarkersSettings, TargetCommit
from kainite.store.memory import MemoryStore
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.opener import TargetRequest
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql.readiness import look_at_database
from kainite_spark.targets.preparing import PreparedPart, TransactionName, gid_of, gid_prefix
from support.atomic_world import FENCE, LEDGER, NAME, AtomicWorld, leave_prepared
from support.chaos import Fate
from support.preparing_postgres import new_database
from support.several_world import contact, item, noting
from support.stores import Database


@pytest.fixture
def world(preparing_servers: tuple[str, str]) -> Iterator[AtomicWorld]:
    with ExitStack() as opened:
        databases = {
            name: Database(opened.enter_context(new_database(server)))
            for name, server in zip(("shop", "crm"), preparing_servers, strict=True)
        }
        yield opened.enter_context(closing(AtomicWorld(MemoryStore(), databases)))


@pytest.fixture
def target(world: AtomicWorld) -> AtomicTarget:
    """Gives the world's targets, with a micro-batch begun."""
    target = world.target()
    target.raise_generation(LEDGER, 1)
    target.begin_micro_batch(FENCE)
    return target


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


def test_only_the_logs_own_transactions_in_this_database_are_listed(
    world: AtomicWorld, target: AtomicTarget, preparing_servers: tuple[str, str]
) -> None:
    leave_prepared(world, "shop")
    with new_database(preparing_servers[0]) as other, psycopg.connect(other, autocommit=True) as stranger:
        for gid in (gid_of(LEDGER, "shop", TransactionName(1, 1, "b2")), "someone else's"):
            stranger.execute("BEGIN")
            stranger.execute(f"PREPARE TRANSACTION '{gid.replace(chr(39), '')}'")
        [part] = target.prepared_in("shop", LEDGER)
        assert isinstance(part, PreparedPart)
        assert (part.name, part.gid) == (NAME, gid_of(LEDGER, "shop", NAME))
        assert part.age >= 0
    assert target.prepared_in("shop", "another/log") == []
    assert part.gid.startswith(gid_prefix(LEDGER, "shop"))


def test_two_schemas_of_one_database_are_no_two_targets(preparing_servers: tuple[str, str]) -> None:
    """Shows targets that share Kainite's own tables are refused at the start; two databases of a server are not."""
    with ExitStack() as opened:
        first, second = (opened.enter_context(new_database(preparing_servers[0])) for _ in range(2))
        with pytest.raises(TargetError, match=r"target\.shop and target\.crm are one database"):
            AtomicWorld(MemoryStore(), {"shop": Database(first), "crm": Database(first)})
        apart = {"shop": Database(second), "crm": Database(opened.enter_context(new_database(preparing_servers[0])))}
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


def test_a_server_that_prepares_is_found_ready(preparing_servers: tuple[str, str]) -> None:
    with new_database(preparing_servers[0]) as url:
        Database(url).run("CREATE TABLE item (id bigint PRIMARY KEY)")
        request = TargetRequest(url, reflect(url), None, ApplySettings(commit=TargetCommit.ATOMIC), MarkersSettings())
        told = [finding.what for finding in look_at_database(request)]
    assert "the server prepares transactions, for targetCommit=atomic" in told
