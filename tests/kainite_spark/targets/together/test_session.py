"""A task applies a group in all targets before the first one commits, wherever the job dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from kainite.settings import Consistency, TargetCommit
from kainite.store.memory import MemoryStore
from support.atomic_world import AtomicWorld
from support.chaos import Fate, KilledError
from support.inline_runner import QUICK
from support.joint_history import EXPECTED, file_databases, history
from support.several_world import changed, contact, item, noting

ONE = replace(QUICK, group_units=1)
Fresh = Callable[[], AtomicWorld]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Fresh]:
    """Gives a function that makes a world of its own at each call."""
    with ExitStack() as worlds:

        def made() -> AtomicWorld:
            world = AtomicWorld(MemoryStore(), file_databases(tmp_path), commit=TargetCommit.TOGETHER)
            return worlds.enter_context(closing(world))

        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("consistency", "every"), [(Consistency.CONFLICT, 3), (Consistency.PREFIX, 11)])
def test_what_one_target_refuses_no_other_has_wherever_the_job_dies(
    fresh: Fresh, consistency: Consistency, every: int
) -> None:
    whole = Fate()
    assert history(fresh(), consistency, whole, whole) == EXPECTED
    assert {f"{half} commit in {name}" for half in ("before", "after") for name in ("shop", "crm")} <= set(whole.names)
    for at in range(0, len(whole.names), every):
        world, fate = fresh(), Fate(at)
        assert history(world, consistency, fate, fate) == EXPECTED, f"died {whole.names[at]} (effect {at})"
        assert fate.dead


def half_applied(world: AtomicWorld) -> None:
    """Leaves a unit in the shop alone, of which the CRM then takes no row."""
    world.log.unit("both", *noting("both", item(1, 1), contact(1, 1)))
    world.log.unit("behind", *noting("behind", changed("item", 1, 2), changed("contact", 1, 2)))
    with pytest.raises(KilledError):
        world.job(Fate(on="after commit in shop"), options=ONE).run(once=True)
    assert (world.rows("shop"), world.rows("crm")) == ({1: 1}, {})
    world.databases["crm"].run("INSERT INTO contact (id, v) VALUES (1, 9);")
    world.apply()


def test_a_unit_that_is_in_one_target_and_refused_in_the_other_says_so(fresh: Fresh) -> None:
    world = fresh()
    half_applied(world)
    assert world.statuses() == {"both": "failed", "behind": "blocked"}
    [cause] = [unit.cause for unit in world.log.state.units.values() if unit.uow == "both"]
    assert cause is not None
    assert "its part in shop is applied" in cause
    assert "kainite uow retry tries crm alone, kainite uow discard leaves it as it is" in cause

    world.databases["crm"].run("DELETE FROM contact;")
    world.log.ask("retry", "both")
    world.apply()
    assert world.statuses() == {}
    assert (world.rows("shop"), world.rows("crm")) == ({1: 2}, {1: 2})
    assert world.noted("shop") == world.noted("crm") == ["behind", "both"]


def test_its_discard_leaves_it_in_the_one_target(fresh: Fresh) -> None:
    world = fresh()
    half_applied(world)
    world.log.ask("discard", "both")
    world.apply()
    assert world.statuses() == {}
    assert (world.noted("shop"), world.noted("crm")) == (["behind", "both"], ["behind"])
