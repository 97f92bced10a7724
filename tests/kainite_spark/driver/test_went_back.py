"""A target that is set back to an earlier state of its own: refused before anything is written to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kainite.base.errors import TargetWentBackError
from kainite.log.format.entry import UnitStatus
from kainite.store.memory import MemoryStore
from kainite_spark.driver import outcome_writer
from kainite_spark.driver.job import ApplyJob
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from support.apply_world import World, insert, noted, update
from support.chaos import Fate, MortalTarget
from support.inline_runner import InlineRunner


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(MemoryStore(), f"sqlite:///{tmp_path}/target.db")


@pytest.fixture
def postgresql(postgres: str) -> World:
    return World(MemoryStore(), postgres)


@dataclass
class Moments(Fate):
    """Keeps the target's state after each change of it; nobody dies."""

    path: str = ""
    states: list[bytes] = field(default_factory=list)

    def _tick(self, name: str) -> None:
        if name.startswith("after"):
            self.states.append(Path(self.path).read_bytes())


def path_of(world: World) -> str:
    return world.database.url.removeprefix("sqlite:///")


def journal_in(state: bytes) -> list[str]:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(state)
    found = sorted(what for (what,) in connection.execute("SELECT what FROM journal"))
    connection.close()
    return found


@pytest.mark.parametrize("tidied", [True, False])
@pytest.mark.parametrize("copied", [True, False])
def test_every_earlier_state_that_lacks_a_committed_unit_is_refused_and_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, tidied: bool, copied: bool
) -> None:
    monkeypatch.setattr(outcome_writer, "TIDY_EVERY", 1 if tidied else 1_000)
    moments = Moments(path=path_of(world))
    for first in (0, 3):
        for n in range(first, first + 3):
            world.log.unit(f"T-{n}", *noted(f"T-{n}", insert(n)))
        job = world.job(max_units=2)
        target = MortalTarget(world.target, moments)
        runner = replace(world.runner(), target=target)
        environment = replace(job._environment, target=target, runner=runner)  # noqa: SLF001
        ApplyJob(environment, world.stop).run(once=True)
        if copied:
            world.log.take_outcomes()
    whole = [f"T-{n}" for n in range(6)]
    refused = accepted = 0
    for state in moments.states:
        Path(path_of(world)).write_bytes(state)
        if journal_in(state) != whole:
            with pytest.raises(TargetWentBackError):
                world.job().run(once=True)
            assert Path(path_of(world)).read_bytes() == state, "evidence is kept: the next start refuses too"
            refused += 1
        else:
            world.job().run(once=True)
            accepted += 1
        assert world.journal() == journal_in(state), "nothing is applied again"
    assert (refused > 8, accepted >= 1) == (True, True)


def keeping(world: World) -> tuple[Callable[[], None], Callable[[], None]]:
    """Returns what notes the state of a PostgreSQL target, and what brings it back."""
    tables = ("item", "journal", "kainite_applied", "kainite_fence")

    def note_state() -> None:
        world.database.run("".join(f"CREATE TABLE old_{name} AS SELECT * FROM {name};" for name in tables))

    def set_back() -> None:
        world.database.run(
            "".join(f"DELETE FROM {name}; INSERT INTO {name} SELECT * FROM old_{name};" for name in tables)
        )

    return note_state, set_back


@pytest.mark.parametrize("moment", ["before it begins", "in it"])
def test_a_failover_while_the_job_runs_ends_it_at_the_next_micro_batch(postgresql: World, moment: str) -> None:
    world = postgresql
    note_state, set_back = keeping(world)
    for n in range(4):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", insert(n)))

    class FailsOver(InlineRunner):
        def run(self, batch: MicroBatch) -> list[TaskResult]:
            if len(self.ran) == 1 and moment == "before it begins":
                set_back()  # the tasks meet an older fence than theirs
            if len(self.ran) == 0 and moment == "before it begins":
                note_state()
            if len(self.ran) == 1 and moment == "in it":
                note_state()  # with the fence of this micro-batch, and without its units
            results = super().run(batch)
            if len(self.ran) == 2 and moment == "in it":
                set_back()
            return results

    with pytest.raises(TargetWentBackError):
        world.job(FailsOver(world.store, "0", world.target), max_units=1).run(once=True)
    with pytest.raises(TargetWentBackError, match="--adopt-target"):
        world.apply()
    assert world.journal() == ([] if moment == "before it begins" else ["T-0"])


def test_another_target_for_a_log_with_committed_units_is_refused_and_can_be_adopted(world: World) -> None:
    world.log.unit("T-1", *noted("T-1", insert(1)))
    world.apply()
    empty = World(MemoryStore(), f"sqlite:///{path_of(world)}.other")
    present = world.job()._environment  # noqa: SLF001
    environment = replace(present, target=empty.target, runner=InlineRunner(world.store, "0", empty.target))
    with pytest.raises(TargetWentBackError, match="has no mark of this log"):
        ApplyJob(environment, world.stop).run(once=True)
    empty.database.run("INSERT INTO item (id, v) VALUES (1, 0);")
    world.log.unit("T-2", *noted("T-2", update(1, 2)))
    job = ApplyJob(replace(environment, adopts=True), world.stop)
    job.run(once=True)
    assert job.summary.outcomes == {UnitStatus.COMMITTED: 1}
    assert empty.journal() == ["T-2"]
    ApplyJob(environment, world.stop).run(once=True)


def test_a_target_without_units_is_no_reason(world: World) -> None:
    world.apply()
    world.database.run("DELETE FROM kainite_fence;")
    world.log.unit("bad", insert(1, -1))
    world.apply()
    world.database.run("DELETE FROM kainite_fence;")
    world.apply()
    assert world.log.statuses() == {"bad": UnitStatus.FAILED}
