"""Several targets as the driver has them: their fences, what is left prepared, and what is refused."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import TargetError, TargetFencedError, TargetUnavailableError, TargetWentBackError
from kainite.settings.assignment import TableAssignment
from kainite.store.memory import MemoryStore
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mark import TargetMark
from kainite_spark.targets.preparing import TransactionName, gid_of
from support.atomic_world import LEDGER, AtomicWorld
from support.several_world import contact, item, noting
from support.stores import Database


@pytest.fixture
def world(tmp_path: Path) -> Iterator[AtomicWorld]:
    databases = {}
    for name in ("shop", "crm"):
        path = tmp_path / f"{name}.db"
        sqlite3.connect(path).close()
        databases[name] = Database(f"sqlite:///{path}")
    with closing(AtomicWorld(MemoryStore(), databases)) as made:
        yield made


@pytest.fixture
def target(world: AtomicWorld) -> AtomicTarget:
    """Gives the targets, taken over by generation 2, in micro-batch 3."""
    target = world.target()
    target.raise_generation(LEDGER, 2)
    target.begin_micro_batch(Fence(LEDGER, 2, 3))
    return target


def leave_prepared(world: AtomicWorld, target: str, name: TransactionName) -> None:
    delta = item(1, 1) if target == "shop" else contact(1, 1)
    with closing(world.targets[target].connect()) as session:
        unit = Unit(1, "T-1", tuple(noting("T-1", delta)))
        session.prepare(Fence(LEDGER, 2, 3), (unit,), gid_of(LEDGER, target, name))


NAME = TransactionName(2, 3, "a")


@pytest.mark.parametrize("committed", [False, True])
def test_what_is_left_is_finished_as_the_log_has_decided(
    world: AtomicWorld, target: AtomicTarget, committed: bool
) -> None:
    for name in ("shop", "crm"):
        leave_prepared(world, name, NAME)
    if committed:
        target.decisions.commit(NAME)
    assert target.resolve(LEDGER) == {NAME: committed}
    assert world.left() == []
    assert world.noted("shop") == world.noted("crm") == (["T-1"] if committed else [])
    assert target.decisions.all() == {NAME: committed}


@pytest.mark.parametrize("step", ["begin_micro_batch", "close_micro_batch", "trim"])
def test_no_fence_advances_before_what_is_left_is_finished(world: AtomicWorld, target: AtomicTarget, step: str) -> None:
    leave_prepared(world, "crm", NAME)
    more: tuple[Any, ...] = {"close_micro_batch": ([1],), "trim": (0,)}.get(step, ())
    getattr(target, step)(Fence(LEDGER, 2, 4), *more)
    assert world.left() == []
    assert target.decisions.all() == ({} if step == "trim" else {NAME: False})


def test_a_new_generation_finishes_what_every_older_one_left(world: AtomicWorld, target: AtomicTarget) -> None:
    """Shows a micro-batch of an older driver is earlier whatever its number is."""
    leave_prepared(world, "shop", NAME)
    target.raise_generation(LEDGER, 3)
    target.begin_micro_batch(Fence(LEDGER, 3, 1))
    assert world.left() == []


def test_an_older_driver_leaves_a_newer_ones_transactions_alone(world: AtomicWorld, target: AtomicTarget) -> None:
    leave_prepared(world, "shop", NAME)
    with pytest.raises(TargetUnavailableError):
        target.begin_micro_batch(Fence(LEDGER, 1, 9))
    assert [part.name for part in world.left()] == [NAME]
    assert target.decisions.all() == {}


def test_an_older_driver_is_shut_out_of_all_targets(target: AtomicTarget) -> None:
    with pytest.raises(TargetFencedError):
        target.begin_micro_batch(Fence(LEDGER, 1, 9))
    with pytest.raises(TargetFencedError):
        target.raise_generation(LEDGER, 1)


def test_a_closed_micro_batch_tells_what_any_target_has(world: AtomicWorld, target: AtomicTarget) -> None:
    with closing(target.connect()) as session:
        session.apply(Fence(LEDGER, 2, 3), [Unit(1, "T-1", (item(1),)), Unit(2, "T-2", (contact(2),))])
    assert target.close_micro_batch(Fence(LEDGER, 2, 4), [1, 2, 3]) == {1, 2}
    assert target.trim(Fence(LEDGER, 2, 5), 2) == 1


def test_one_target_that_went_back_is_noticed(world: AtomicWorld, target: AtomicTarget) -> None:
    """Shows the fence of each target is compared; what the last micro-batch wrote is not known of each."""
    world.databases["crm"].run("UPDATE kainite_fence SET micro_batch = 1")
    with pytest.raises(TargetWentBackError):
        target.begin_micro_batch(Fence(LEDGER, 2, 4), TargetMark(2, 3, (1,)))
    world.databases["crm"].run("UPDATE kainite_fence SET micro_batch = 3")
    target.begin_micro_batch(Fence(LEDGER, 2, 5), TargetMark(2, 3, (1,)))


def test_two_targets_with_the_same_tables_of_kainites_own_are_refused(world: AtomicWorld) -> None:
    target = AtomicTarget({**world.targets, "crm": world.targets["shop"]}, world.assignment)
    with pytest.raises(TargetError, match=r"target\.shop and target\.crm are one database"):
        target.prepare(LEDGER, world.catalogue)


@pytest.mark.parametrize("committed", [False, True])
def test_what_a_target_prepared_under_a_former_name_is_finished_too(
    world: AtomicWorld, target: AtomicTarget, committed: bool
) -> None:
    """Shows a target that got another name in the settings does not hold its own fence for ever."""
    leave_prepared(world, "crm", NAME)
    if committed:
        target.decisions.commit(NAME)
    targets = {"shop": world.targets["shop"], "customers": world.targets["crm"]}
    renamed = AtomicTarget(targets, TableAssignment((("shop", ()), ("customers", ("contact", "visit")))),
                           target.decisions)  # fmt: skip
    assert [part.name for part in renamed.left_prepared(LEDGER)["customers"]] == [NAME]
    renamed.raise_generation(LEDGER, 3)
    assert world.left() == []
    assert world.noted("crm") == (["T-1"] if committed else [])


class Refusing:
    """A target whose server prepares nothing, or that is away."""

    def __init__(self, error: TargetError) -> None:
        self._error = error
        self.closed = False

    def require_preparing(self) -> None:
        raise self._error

    def connect(self) -> None:
        raise self._error

    def close(self) -> None:
        self.closed = True


def test_a_target_that_prepares_nothing_is_named(world: AtomicWorld) -> None:
    other: Any = Refusing(TargetError("max_prepared_transactions is 0"))
    target = AtomicTarget({**world.targets, "crm": other}, world.assignment)
    with pytest.raises(TargetError, match=r"target\.crm: max_prepared_transactions"):
        target.prepare("log/0", world.catalogue)


def test_what_one_target_answers_is_asked_of_all_before_a_task_begins(world: AtomicWorld) -> None:
    other: Any = Refusing(TargetUnavailableError("away"))
    target = AtomicTarget({**world.targets, "crm": other}, world.assignment)
    with pytest.raises(TargetUnavailableError, match="away"):
        target.connect()
    target.close()
    assert other.closed


def test_the_targets_go_to_a_task_without_the_drivers_log(target: AtomicTarget) -> None:
    sent = pickle.loads(pickle.dumps(replace(target)))
    assert sent == target
    assert sent.deciding_by(target.decisions).decisions is target.decisions
