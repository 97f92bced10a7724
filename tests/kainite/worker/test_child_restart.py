"""A restart of a child that a person asks for: at a hung child, in a pause, at one that fails again; and the states."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import ChildExitedError
from kainite.store.memory import MemoryStore
from kainite.worker.child_restart import ChildRestart
from kainite.worker.consumer_states import ConsumerState
from kainite.worker.shard_consumer import ShardConsumer
from support.daemon_world import World, delta, scripted, transcript_actions, units_in
from support.names import unique
from support.waiting import until

Told = list[tuple[bool, str]]


@pytest.fixture
def world(kinesis: Any, dynamodb: Any, tmp_path: Path) -> World:
    world = World(kinesis, dynamodb, unique("stream"), tmp_path)
    world.create_stream()
    return world


def names(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def restart(consumer: ShardConsumer) -> Told:
    told: Told = []
    consumer.restart(lambda done, said: told.append((done, said)))
    return told


async def test_a_hung_child_is_ended_and_the_next_one_gets_its_records_again_and_nothing_is_blamed(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A pause of 100 s after failures would be noticed, and so would a batch that is poison at once."""
    caplog.set_level(logging.INFO)
    store, hung, transcript = MemoryStore(), tmp_path / "hung", tmp_path / "transcript"
    script = {
        "processRecords": [
            ["stderr", "one\ntwo\n"],
            ["emit", delta("u")],
            ["wait for", str(hung)],
            "checkpoint last",
            "status",
        ]
    }
    (number,) = world.put("a")
    async with world.log(store) as owner, world.consumer(
        scripted(script, transcript), log=owner, restart_backoff=100, restart_backoff_max=100, poison_tries=1
    ) as (consumer, _):  # fmt: skip
        await until(lambda: transcript_actions(transcript)[-1:] == ["processRecords"])
        first = consumer.status().pid
        told = restart(consumer)
        await until(lambda: bool(told))
        hung.touch()
        await until(lambda: world.stored_checkpoint() == number)
        await until(lambda: units_in(store) == ["u"])
        assert consumer.status().failures == 0
        assert consumer.status().stderr_lines == ("one", "two")
    assert told == [(True, f"child {first} was ended, child {_second(caplog)} has begun after checkpoint TRIM_HORIZON")]
    assert transcript_actions(transcript)[:4] == ["initialize", "processRecords"] * 2
    assert "child ended by a person" in names(caplog)
    assert not {"shard failed", "poison batch"} & set(names(caplog))


def _second(caplog: pytest.LogCaptureFixture) -> int:
    started = [record for record in caplog.records if record.getMessage() == "child started"]
    pid: int = started[1].kainite_fields["pid"]  # type: ignore[attr-defined]
    return pid


async def test_a_restart_ends_the_pause_after_a_failure(world: World, tmp_path: Path) -> None:
    mended = tmp_path / "mended"
    program = ("sh", "-c", f"test -e {mended} || exit 3; exec " + " ".join(f"'{word}'" for word in scripted({})))
    async with world.consumer(program, restart_backoff=100, restart_backoff_max=100) as (consumer, _):
        await until(lambda: consumer.state is ConsumerState.BACKING_OFF)
        mended.touch()
        told = restart(consumer)
        await until(lambda: consumer.state is ConsumerState.PROCESSING)
        assert told == [
            (True, f"no child was at work, child {consumer.status().pid} has begun after checkpoint TRIM_HORIZON")
        ]


async def test_a_child_that_fails_after_the_restart_is_a_failure_that_is_told(world: World, tmp_path: Path) -> None:
    once = tmp_path / "once"
    program = ("sh", "-c", f"mkdir {once} || exit 3; exec " + " ".join(f"'{word}'" for word in scripted({})))
    async with world.consumer(program, restart_backoff=100, restart_backoff_max=100) as (consumer, _):
        await until(lambda: consumer.state is ConsumerState.PROCESSING)
        pid = consumer.status().pid
        told = restart(consumer)
        await until(lambda: bool(told))
        assert consumer.status().failures == 1
    ((done, said),) = told
    assert done
    assert said.startswith(f"child {pid} was ended, and the next one has failed: child ")
    assert "status 3" in said


async def test_a_shard_that_is_given_up_has_no_child_to_restart(world: World) -> None:
    async with world.consumer(scripted({})) as (consumer, task):
        await until(lambda: consumer.state is ConsumerState.PROCESSING)
        consumer.stop()
        assert restart(consumer) == [(False, "the shard is being given up, and its child is ending anyway")]
        await asyncio.wait_for(task, 20)


def test_a_child_that_was_ready_just_before_its_end_is_not_the_next_one() -> None:
    told: Told = []
    policy = ChildRestart()
    policy.ask(1, lambda done, said: told.append((done, said)))
    policy.begun(1, Checkpoint("5"))
    assert not told
    assert policy.takes()
    assert not policy.takes(), "a second end is a failure"
    policy.begun(2, Checkpoint("5"))
    assert told == [(True, "child 1 was ended, child 2 has begun after checkpoint 5")]


def test_another_failure_meanwhile_is_no_part_of_the_restart_and_the_next_child_tells() -> None:
    told: Told = []
    policy = ChildRestart()
    policy.ask(1, lambda done, said: told.append((done, said)))
    policy.failed(ChildExitedError("the stream is away"))
    policy.begun(2, Checkpoint("5"))
    assert told == [(True, "child 1 was ended, child 2 has begun after checkpoint 5")]


def test_without_a_restart_nothing_is_taken_for_one() -> None:
    policy = ChildRestart()
    assert not policy.takes()
    policy.failed(ChildExitedError("died"))
    policy.begun(2, Checkpoint("5"))
