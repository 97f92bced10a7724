"""The apply job dies before and after each effect of a whole history; the result is always the same."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.outcomes import outcomes_of, stored_batches
from kainite.settings import ApplySettings, Consistency
from kainite.store.memory import MemoryStore
from kainite.uow.delta import UnitKind
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job import ApplyJob
from support.apply_world import World, insert, noted, update
from support.chaos import Fate, KilledError, MortalStore, MortalTarget
from support.inline_runner import InlineRunner

End = tuple[dict[int, int], list[str], dict[str, str]]


def apply_until_done(world: World, fate: Fate, consistency: Consistency) -> None:
    """Runs an apply job, and another one if it died; then the log copies their outcomes."""
    for mortal in (fate, Fate()):
        store, target = MortalStore(world.store, mortal), MortalTarget(world.target, mortal)
        settings = ApplySettings(lease=60.0, idle=0.01, max_units=3, group_units=2, consistency=consistency)
        parts = ApplyEnvironment(settings, store, "0", "a job", target, InlineRunner(store, "0", target), "log/0")
        with contextlib.suppress(KilledError):
            ApplyJob(parts, world.stop).run(once=True)
            break
    world.log.take_outcomes()


def history(world: World, fate: Fate, consistency: Consistency) -> End:
    """Groups, conflicts, a unit that fails, one behind it, a correction, a retry, a discard: with tidying between."""
    log = world.log
    log.unit("T-1", *noted("T-1", insert(1)))
    log.unit("T-2", *noted("T-2", update(1, 2)))
    log.unit("broken", *noted("broken", insert(2, -1)))
    log.unit("behind", *noted("behind", update(2, 5)))
    log.unit("early", *noted("early", update(3, 1)))
    apply_until_done(world, fate, consistency)
    world.database.run("INSERT INTO item (id, v) VALUES (3, 0);")
    log.ask("retry", "early")
    log.unit("fix", *noted("fix", insert(2, 2)), kind=UnitKind.CORRECTION)
    log.unit("T-3", *noted("T-3", update(1, 3)))
    log.unit("unwanted", *noted("unwanted", update(1, 4)))
    assert log.ask("discard", "unwanted") == "asked"
    apply_until_done(world, fate, consistency)
    apply_until_done(world, Fate(), consistency)
    return world.items(), world.journal(), {uow: status.value for uow, status in log.statuses().items()}


@pytest.mark.parametrize("consistency", Consistency)
@pytest.mark.parametrize("half", ["before", "after"])
def test_wherever_the_job_dies_each_unit_is_applied_once_and_in_order(
    tmp_path: Path, half: str, consistency: Consistency
) -> None:
    whole = Fate()
    expected = history(fresh(tmp_path / "whole"), whole, consistency)
    assert expected == ({1: 3, 2: 5, 3: 1}, ["T-1", "T-2", "T-3", "behind", "early", "fix"], {})
    assert {"after commit", "before put_batch", "after trim", "before truncate"} <= set(whole.names)

    for at in (at for at, name in enumerate(whole.names) if name.startswith(half)):
        fate = Fate(at)
        assert history(fresh(tmp_path / str(at)), fate, consistency) == expected, (
            f"died {whole.names[at]} (effect {at})"
        )
        assert fate.dead


@pytest.mark.parametrize("half", ["before", "after"])
def test_wherever_the_job_dies_a_unit_is_discarded_or_applied_and_never_both(tmp_path: Path, half: str) -> None:
    """Kills the job with the unit in its hands; a person discards the unit then; the next job dies too."""
    whole = Fate()
    assert discarded_after(fresh(tmp_path / "whole"), whole, Fate()) == (True, "gone")
    found = set()
    for at in (at for at, name in enumerate(whole.names) if name.startswith(half)):
        again = Fate()
        for then in (None, *range(0, 40, 3)):
            again = Fate(then)
            applied, status = discarded_after(fresh(tmp_path / f"{at}-{then}"), Fate(at), again)
            found.add((applied, status))
            if not again.dead and then is not None:
                break
    assert found == {(True, "gone"), (True, "committed"), (False, "discarded")}


def discarded_after(world: World, first: Fate, second: Fate) -> tuple[bool, str]:
    """Returns whether the unit was applied, and what the log says of it; ``gone``: it was resolved before."""
    log = world.log
    log.unit("T", *noted("T", insert(1)))
    die_and_end(world, first)
    with_outcome = bool(stored(world))
    asked = log.ask("discard", "T") if not with_outcome else "ok"
    die_and_end(world, second)
    die_and_end(world, Fate())
    (status,) = {one.status for one in stored(world) if one.status in (UnitStatus.COMMITTED, UnitStatus.DISCARDED)}
    log.take_outcomes()
    assert log.statuses() == {}
    applied = world.journal() == ["T"]
    assert applied == (status is UnitStatus.COMMITTED), "the log says what the target has"
    return applied, "gone" if asked == "ok" else status.value


def die_and_end(world: World, fate: Fate) -> None:
    store, target = MortalStore(world.store, fate), MortalTarget(world.target, fate)
    settings = ApplySettings(lease=60.0, idle=0.01)
    parts = ApplyEnvironment(settings, store, "0", "a job", target, InlineRunner(store, "0", target), "log/0")
    with contextlib.suppress(KilledError):
        ApplyJob(parts, world.stop).run(once=True)


def stored(world: World) -> tuple[Outcome, ...]:
    return outcomes_of(stored_batches(world.store, "0"), 0)


def fresh(folder: Path) -> World:
    folder.mkdir()
    return World(MemoryStore(), f"sqlite:///{folder}/target.db")


def test_a_dead_job_changes_nothing_more(tmp_path: Path) -> None:
    # Tests the harness itself: a job that dies before its first effect changes nothing.
    world = fresh(tmp_path / "world")
    world.log.unit("T-1", *noted("T-1", insert(1)))
    fate = Fate(0)
    store, target = MortalStore(world.store, fate), MortalTarget(world.target, fate)
    parts = ApplyEnvironment(ApplySettings(), store, "0", "a job", target, InlineRunner(store, "0", target), "log/0")
    with pytest.raises(KilledError):
        ApplyJob(parts, world.stop).run(once=True)

    assert world.store.read_head("0:outcomes") is None
    with sqlite3.connect(tmp_path / "world" / "target.db") as connection:
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (0,)
    connection.close()
