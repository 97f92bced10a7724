"""Two log partitions of one table that are applied to one target, each by an apply job of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from kainite.log.format.entry import UnitStatus
from kainite.settings import ApplySettings, Consistency
from kainite.store.memory import MemoryStore
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job import ApplyJob
from support.apply_world import World, insert, noted, update
from support.chaos import Fate, KilledError, MortalStore, MortalTarget
from support.inline_runner import InlineRunner

Logs: TypeAlias = tuple[World, World]


@contextmanager
def two_logs(url: str) -> Iterator[Logs]:
    """Gives the log partitions 0 and 1 of one store, and closes their targets, which are one database."""
    store = MemoryStore()
    with ExitStack() as opened:
        logs = World(store, url), World(store, url, ledger="log/1", partition="1", create=False)
        for log in logs:
            opened.enter_context(closing(log.target))
        yield logs


@pytest.fixture(params=["sqlite", "postgresql"])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Logs]:
    url = f"sqlite:///{tmp_path}/target.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    with two_logs(url) as opened:
        yield opened


def test_units_of_two_logs_with_one_name_and_one_id_are_two_units(logs: Logs) -> None:
    """Shows each is applied once, and acknowledged under its own log; a job that starts again applies none again."""
    for number, world in enumerate(logs):
        world.log.unit("T-1", *noted(f"{number}: T-1", insert(number)))
        world.log.unit("T-2", *noted(f"{number}: T-2", update(number, 7)))
    assert logs[0].log.tid("T-2") == logs[1].log.tid("T-2")
    for _ in range(2):
        for world in logs:
            world.apply()
    assert logs[0].items() == {0: 7, 1: 7}
    assert logs[0].journal() == ["0: T-1", "0: T-2", "1: T-1", "1: T-2"]
    assert [world.log.statuses() for world in logs] == [{}, {}]


def test_a_failed_unit_holds_back_those_of_its_own_log_alone(logs: Logs) -> None:
    """Shows what docs/scale.md warns of: a unit of another log that touches the same row goes on."""
    logs[0].log.unit("broken", insert(1, -1))
    logs[0].log.unit("behind", update(1, 5))
    logs[1].log.unit("elsewhere", insert(1, 1))
    for world in logs:
        world.apply()
    assert logs[0].log.statuses() == {"broken": UnitStatus.FAILED, "behind": UnitStatus.BLOCKED}
    assert logs[1].log.statuses() == {}
    assert logs[0].items() == {1: 1}


def test_what_a_person_decides_is_about_one_log(logs: Logs) -> None:
    for world in logs:
        world.log.unit("broken", insert(1, -1))
        world.apply()
    assert logs[0].log.ask("discard", "broken") == "ok"
    for world in logs:
        world.apply()
    assert logs[0].log.statuses() == {}
    assert logs[1].log.statuses() == {"broken": UnitStatus.FAILED}


def run(world: World, fate: Fate, consistency: Consistency) -> None:
    """Runs an apply job that may die; then the log copies its outcomes."""
    store, target = MortalStore(world.store, fate), MortalTarget(world.target, fate)
    settings = ApplySettings(lease=60.0, idle=0.01, max_units=3, group_units=2, consistency=consistency)
    runner = InlineRunner(store, world.partition, target)
    parts = ApplyEnvironment(settings, store, world.partition, "a job", target, runner, world.ledger)
    with contextlib.suppress(KilledError):
        ApplyJob(parts, world.stop).run(once=True)
    world.log.take_outcomes()


def history(logs: Logs, fate: Fate, consistency: Consistency) -> tuple[dict[int, int], list[str], list[object]]:
    """Applies units of both logs: the first one's job dies, the other one's works before it is started again."""
    first, second = logs
    for number, world in enumerate(logs):
        for place in range(4):
            delta = update(number, place) if place else insert(number)
            world.log.unit(f"T-{place}", *noted(f"{number}: T-{place}", delta))
        world.log.unit("broken", *noted(f"{number}: broken", insert(10 + number, -1)))
        world.log.unit("last", *noted(f"{number}: last", update(number, 9)))
    run(first, fate, consistency)
    run(second, Fate(), consistency)
    run(first, Fate(), consistency)
    run(second, Fate(), consistency)
    return first.items(), first.journal(), [world.log.statuses() for world in logs]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("consistency", Consistency)
def test_wherever_one_log_s_job_dies_both_logs_are_applied_once_and_in_order(
    tmp_path: Path, consistency: Consistency
) -> None:
    whole = Fate()
    with two_logs(f"sqlite:///{tmp_path}/whole.db") as logs:
        expected = history(logs, whole, consistency)
    names = [f"{number}: {uow}" for number in range(2) for uow in ("T-0", "T-1", "T-2", "T-3", "last")]
    assert expected == ({0: 9, 1: 9}, names, [{"broken": UnitStatus.FAILED}] * 2)
    assert {"after commit", "before put_batch", "after trim"} <= set(whole.names)

    for at, name in enumerate(whole.names):
        fate = Fate(at)
        with two_logs(f"sqlite:///{tmp_path}/{at}.db") as logs:
            assert history(logs, fate, consistency) == expected, f"died {name} (effect {at})"
        assert fate.dead
