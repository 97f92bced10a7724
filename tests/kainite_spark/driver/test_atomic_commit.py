"""Units of work in two targets that commit together: one apply job, which dies at each effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from kainite.settings import Consistency
from kainite.store.memory import MemoryStore
from kainite_spark.targets.atomic.decisions import Decisions
from support.atomic_world import LEDGER, AtomicWorld
from support.chaos import Fate, KilledError
from support.joint_history import EXPECTED, file_databases, history
from support.several_world import contact, item, noting

Fresh = Callable[[], AtomicWorld]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Fresh]:
    """Gives a function that makes a world of its own at each call."""
    with ExitStack() as worlds:

        def made() -> AtomicWorld:
            return worlds.enter_context(closing(AtomicWorld(MemoryStore(), file_databases(tmp_path))))

        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("consistency", "every"), [(Consistency.CONFLICT, 3), (Consistency.PREFIX, 11)])
def test_a_unit_is_in_both_targets_or_in_none_wherever_the_job_dies(
    fresh: Fresh, consistency: Consistency, every: int
) -> None:
    """Shows a crash before or after an effect, at each target and at the log, leaves what the next job ends.

    Every third effect, or eleventh, is tried: odd numbers, so that both sides of effects are.
    """
    whole = Fate()
    assert history(fresh(), consistency, whole, whole) == EXPECTED
    steps = {"prepare in shop", "prepare in crm", "decide", "finish in shop", "finish in crm"}
    assert {f"{half} {step}" for half in ("before", "after") for step in steps} <= set(whole.names)
    for at in range(0, len(whole.names), every):
        world, fate = fresh(), Fate(at)
        assert history(world, consistency, fate, fate) == EXPECTED, f"died {whole.names[at]} (effect {at})"
        assert fate.dead
        assert world.left() == []


@pytest.mark.parametrize("first", ["after prepare in shop", "after prepare in crm", "after decide",
                                   "after finish in shop"])  # fmt: skip
def test_a_job_that_dies_while_it_resolves_is_followed_by_one_that_ends_it(fresh: Fresh, first: str) -> None:
    names = Fate()
    resolved(fresh(), first, names)
    assert {"after decide", "before raise_generation"} <= set(names.names)
    for at in range(len(names.names)):
        world = fresh()
        resolved(world, first, Fate(at))
        assert (world.rows("shop"), world.rows("crm")) == ({1: 1}, {1: 1}), f"died {names.names[at]}"
        assert (world.noted("shop"), world.noted("crm")) == (["both"], ["both"])
        assert world.left() == []


def resolved(world: AtomicWorld, first: str, second: Fate) -> None:
    """Kills a job at an effect, and the next one at another."""
    world.log.unit("both", *noting("both", item(1, 1), contact(1, 1)))
    world.apply(Fate(on=first), second)


def test_decisions_are_deleted_when_no_transaction_needs_them(fresh: Fresh) -> None:
    world = fresh()
    world.log.unit("both", *noting("both", item(1, 1), contact(1, 1)))
    world.job().run(once=True)
    assert Decisions(world.store, "0").all() == {}
    world.log.take_outcomes()
    assert world.statuses() == {}


@pytest.mark.parametrize("moment", ["after prepare in shop", "after prepare in crm"])
def test_a_dead_jobs_transaction_is_rolled_back_before_the_next_generation(fresh: Fresh, moment: str) -> None:
    world = fresh()
    world.log.unit("both", *noting("both", item(1, 1), contact(1, 1)))
    with pytest.raises(KilledError):
        world.job(Fate(on=moment)).run(once=True)
    left = world.left()
    assert left
    target = world.target()
    target.raise_generation(LEDGER, 2)
    assert world.left() == []
    assert target.decisions.all() == {left[0].name: False}
