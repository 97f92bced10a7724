"""A task's transactions over two targets: what it does when a step fails, or another process was faster."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import (
    LogUnavailableError,
    TargetBusyError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.store.memory import MemoryStore
from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.atomic.session import AtomicSession
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.preparing import TransactionName, gid_of
from support.atomic_world import LEDGER, AtomicWorld
from support.several_world import contact, item, noting
from support.stores import Database

FENCE = Fence(LEDGER, 1, 1)
NAME = TransactionName(1, 1, "x1")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[AtomicWorld]:
    databases = {}
    for name in ("shop", "crm"):
        path = tmp_path / f"{name}.db"
        sqlite3.connect(path).close()
        databases[name] = Database(f"sqlite:///{path}")
    with closing(AtomicWorld(MemoryStore(), databases)) as made:
        made.target().raise_generation(LEDGER, 1)
        made.target().begin_micro_batch(FENCE)
        yield made


class Failing:
    """A session of which some calls fail, before or after they had their effect.

    Args:
        inner: the session.
        fails: by the name of a call the errors of its next calls, in order; None for a call that succeeds.
        after: whether such a call has its effect all the same.
    """

    def __init__(self, inner: Any, fails: dict[str, list[Exception | None]], *, after: bool = False) -> None:
        self._inner = inner
        self._fails = fails
        self._after = after

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            error = self._fails[name].pop(0) if self._fails.get(name) else None
            if error is not None and not self._after:
                raise error
            answer = getattr(self._inner, name)(*args, **more)
            if error is not None:
                raise error
            return answer

        return call


class Register(Decisions):
    """Shows a register: runs ``before`` in front of each decision of a task, and can lose its answer."""

    def __init__(self, world: AtomicWorld, before: Callable[[TransactionName], object], *, lost: bool = False) -> None:
        super().__init__(world.store, "0")
        self._before = before
        self._lost = lost

    def commit(self, name: TransactionName, targets: Sequence[str] = ()) -> bool:
        self._before(name)
        committed = super().commit(name, targets)
        if self._lost:
            raise LogUnavailableError("no answer")
        return committed


def session_of(world: AtomicWorld, decisions: Decisions | None = None, **failing: Any) -> AtomicSession:
    """Returns a session; ``failing`` replaces the session of a target."""
    sessions = {name: target.connect() for name, target in world.targets.items()}
    return AtomicSession(
        {name: failing[name](one) if name in failing else one for name, one in sessions.items()},
        world.assignment, decisions or Decisions(world.store, "0"), lambda: "x1",
    )  # fmt: skip


def both(value: int = 1) -> Unit:
    return Unit(1, "both", tuple(noting("both", item(1, 1), contact(1, value))))


def there(world: AtomicWorld) -> tuple[list[str], list[str], int]:
    return world.noted("shop"), world.noted("crm"), len(world.left())


def test_a_group_of_both_targets_is_committed_in_both_by_one_decision(world: AtomicWorld) -> None:
    with closing(session_of(world)) as session:
        session.apply(FENCE, [both()])
        assert session.applied(LEDGER, [1, 2]) == {1}
    assert there(world) == (["both"], ["both"], 0)
    assert Decisions(world.store, "0").all() == {NAME: True}


def test_a_group_of_one_target_needs_no_decision(world: AtomicWorld) -> None:
    with closing(session_of(world)) as session:
        session.apply(FENCE, [Unit(2, "shop", tuple(noting("shop", item(2))))])
    assert there(world) == (["shop"], [], 0)
    assert Decisions(world.store, "0").all() == {}


def test_a_unit_in_the_sources_order_is_in_both_too(world: AtomicWorld) -> None:
    with closing(session_of(world)) as session:
        session.apply_in_source_order(FENCE, both())
    assert there(world) == (["both"], ["both"], 0)


@pytest.mark.parametrize("in_order", [False, True])
def test_what_the_second_target_refuses_is_rolled_back_in_the_first_one(world: AtomicWorld, in_order: bool) -> None:
    with closing(session_of(world)) as session:
        unit = both(-1)
        act = partial(session.apply_in_source_order, FENCE, unit) if in_order else partial(session.apply, FENCE, [unit])
        with pytest.raises(TargetRejectedError):
            act()
    assert there(world) == ([], [], 0)


def test_what_was_prepared_though_its_answer_was_lost_is_rolled_back(world: AtomicWorld) -> None:
    lost = TargetUnavailableError("no answer")
    crm = lambda inner: Failing(inner, {"prepare": [lost]}, after=True)  # noqa: E731
    with closing(session_of(world, crm=crm)) as session:
        with pytest.raises(TargetUnavailableError, match="no answer"):
            session.apply(FENCE, [both()])
        assert there(world) == ([], [], 0)
        session.apply(FENCE, [both()])
    assert there(world) == (["both"], ["both"], 0)


def test_what_cannot_be_rolled_back_now_is_settled_before_the_next_call(world: AtomicWorld) -> None:
    away = TargetUnavailableError("away")
    shop = lambda inner: Failing(inner, {"finish": [away, away]})  # noqa: E731
    with closing(session_of(world, shop=shop)) as session:
        with pytest.raises(TargetRejectedError):
            session.apply(FENCE, [both(-1)])
        assert there(world) == ([], [], 1)
        with pytest.raises(TargetUnavailableError, match="away"):
            session.applied(LEDGER, [1])
        assert session.applied(LEDGER, [1]) == set()
    assert there(world) == ([], [], 0)
    assert Decisions(world.store, "0").all() == {NAME: False}


@pytest.mark.parametrize("aborted", [False, True])
def test_a_decision_whose_answer_was_lost_is_asked_for(world: AtomicWorld, aborted: bool) -> None:
    """Shows the task acts on the decision that stands, its own or another process's."""
    elsewhere = Decisions(world.store, "0")
    register = Register(world, elsewhere.settle if aborted else lambda _: None, lost=True)
    with closing(session_of(world, register)) as session:
        with pytest.raises(LogUnavailableError):
            session.apply(FENCE, [both()])
        assert len(world.left()) == 2
        assert session.applied(LEDGER, [1]) == (set() if aborted else {1})
    assert there(world) == (([], [], 0) if aborted else (["both"], ["both"], 0))


def test_a_transaction_that_another_process_has_given_up_is_not_committed(world: AtomicWorld) -> None:
    register = Register(world, lambda _: world.target().resolve(LEDGER))
    with closing(session_of(world, register)) as session, pytest.raises(TargetUnavailableError, match="rolled back"):
        session.apply(FENCE, [both()])
    assert there(world) == ([], [], 0)


def test_a_zombie_decides_about_nothing_when_its_transaction_and_decision_are_gone(world: AtomicWorld) -> None:
    """Shows a task that wakes up when the fences have passed hears that it is not known what became of its units."""

    def pass_by(_: TransactionName) -> None:
        world.target().trim(Fence(LEDGER, 1, 2), 0)
        assert Decisions(world.store, "0").all() == {}

    zombie = Register(world, pass_by)
    with closing(session_of(world, zombie)) as session:
        with pytest.raises(TargetUnavailableError):
            session.apply(FENCE, [both()])
        assert session.applied(LEDGER, [1]) == set()
    assert there(world) == ([], [], 0)


def test_a_commit_that_another_process_has_made_is_asked_for(world: AtomicWorld) -> None:
    """Shows a task that finds its transaction gone goes by the acknowledgements."""
    register = Register(world, lambda _: None)
    resolving = lambda inner: Meanwhile(inner, lambda: world.target().resolve(LEDGER))  # noqa: E731
    with closing(session_of(world, register, shop=resolving)) as session:
        with pytest.raises(TargetUnavailableError, match="finished by another process"):
            session.apply(FENCE, [both()])
        assert session.applied(LEDGER, [1]) == {1}
    assert there(world) == (["both"], ["both"], 0)


class Meanwhile:
    """A session in front of whose commit something else happens."""

    def __init__(self, inner: Any, act: Callable[[], object]) -> None:
        self._inner = inner
        self._act = act

    def __getattr__(self, name: str) -> Any:
        if name == "finish":
            self._act()
        return getattr(self._inner, name)


def test_a_unit_counts_only_with_all_its_parts(world: AtomicWorld) -> None:
    """Shows a task that finds a unit in one target commits what is left over in the other."""
    away = TargetUnavailableError("away")
    crm = lambda inner: Failing(inner, {"finish": [away]})  # noqa: E731
    with closing(session_of(world, crm=crm)) as dying, pytest.raises(TargetUnavailableError):
        dying.apply(FENCE, [both()])
    assert there(world) == (["both"], [], 1)
    with closing(session_of(world)) as session:
        assert session.applied(LEDGER, [1]) == {1}
    assert there(world) == (["both"], ["both"], 0)


def test_what_is_not_decided_is_left_to_its_task(world: AtomicWorld) -> None:
    """Shows a task that finds a unit of its own applied leaves another task's transaction alone."""
    with closing(session_of(world)) as session:
        session.apply(FENCE, [Unit(2, "shop", tuple(noting("shop", item(2))))])
        other = TransactionName(1, 1, "y2")
        with closing(world.targets["crm"].connect()) as task:
            task.prepare(FENCE, (Unit(3, "crm", (contact(3),)),), gid_of(LEDGER, "crm", other))
        assert session.applied(LEDGER, [2]) == {2}
        assert [part.name for part in world.left()] == [other]
        with pytest.raises(TargetBusyError):
            session.apply(FENCE, [both()])
    assert [part.name for part in world.left()] == [other]
