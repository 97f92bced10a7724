"""The consumers of a daemon, with a real lease keeper and real children."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from kainite.base.checkpoint import TRIM_HORIZON
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.shard_source import polling
from kainite.leases.keeper import Gained, HeldLease, LeaseEvent, LeaseKeeper
from kainite.leases.table.lease import Lease
from kainite.worker import consumers as consumers_module
from kainite.worker.consumers import Consumers
from kainite.worker.retrieval_mode import RENDER
from kainite.worker.shard_consumer import ConsumerParts
from support.daemon_world import LIMIT, World, scripted, transcript_actions
from support.names import unique
from support.waiting import until

FIRST, SECOND = "shardId-000000000000", "shardId-000000000001"
CHECKPOINT = ["write", '{"action":"checkpoint"}\n']


@pytest.fixture
def world(kinesis: Any, dynamodb: Any, tmp_path: Path) -> World:
    world = World(kinesis, dynamodb, unique("stream"), tmp_path)
    world.create_stream(shards=2)
    return world


@dataclass
class Running:
    """Consumers at work, and the task that follows the leases."""

    consumers: Consumers
    group: asyncio.TaskGroup

    def pids(self) -> dict[str, int]:
        """Returns the process ids of the children by shard."""
        return {status.shard: status.pid for status in self.consumers.statuses() if status.pid is not None}

    async def all_initialized(self) -> None:
        await until(lambda: [s.state for s in self.consumers.statuses()] == ["PROCESSING"] * 2)


@asynccontextmanager
async def running(world: World, script: dict[str, Any], transcript: Path, **changes: Any) -> AsyncIterator[Running]:
    child = replace(world.child_settings(scripted(script, transcript)), **changes)
    stream = StreamClient(world.kinesis, world.name)
    async with world.keeper(stream) as keeper, asyncio.TaskGroup() as group:
        parts = ConsumerParts(polling(stream, render=RENDER[child.protocol]), keeper, world.stream_settings, child)
        consumers = Consumers(keeper, lambda _: parts, group)
        following = group.create_task(consumers.follow_leases())
        try:
            yield Running(consumers, group)
            await consumers.stop()
        finally:
            following.cancel()


def lose(world: World, shard: str) -> None:
    """Gives the lease of a shard to another worker."""
    world.dynamodb.update_item(
        TableName=world.name,
        Key={"leaseKey": {"S": shard}},
        UpdateExpression="SET leaseOwner = :other ADD leaseCounter :one",
        ExpressionAttributeValues={":other": {"S": "another"}, ":one": {"N": "1"}},
    )


async def test_each_lease_has_one_consumer(world: World, tmp_path: Path) -> None:
    async with running(world, {}, tmp_path / "transcript") as daemon:
        await daemon.all_initialized()
        assert {status.shard for status in daemon.consumers.statuses()} == {FIRST, SECOND}
        assert len(set(daemon.pids().values())) == 2


async def test_a_lease_that_is_held_and_has_no_consumer_is_told(world: World) -> None:
    async with world.keeper(stream := StreamClient(world.kinesis, world.name)) as keeper:
        child = world.child_settings(scripted({}))
        parts = ConsumerParts(polling(stream, render=RENDER[child.protocol]), keeper, world.stream_settings, child)
        async with asyncio.TaskGroup() as group:
            consumers = Consumers(keeper, lambda _: parts, group)  # which follows no leases: a defect
            await until(lambda: len(consumers.statuses()) == 2)
            await until(lambda: all(s.standstill and s.standstill.seconds > 0.05 for s in consumers.statuses()))
            assert {(s.shard, s.state) for s in consumers.statuses()} == {(FIRST, "HELD"), (SECOND, "HELD")}


async def test_a_stop_ends_every_child_and_gains_no_lease(world: World, tmp_path: Path) -> None:
    transcript = tmp_path / "transcript"
    async with running(world, {"shutdownRequested": [CHECKPOINT, "read", "status"]}, transcript) as daemon:
        await daemon.all_initialized()
        pids = daemon.pids().values()
        await daemon.consumers.stop()
        assert daemon.consumers.statuses() == ()
        assert not any(psutil.pid_exists(pid) for pid in pids)
    assert transcript_actions(transcript).count("shutdownRequested") == 2


async def test_a_lost_lease_ends_its_own_consumer(world: World, tmp_path: Path) -> None:
    transcript = tmp_path / "transcript"
    async with running(world, {}, transcript) as daemon:
        await daemon.all_initialized()
        lose(world, FIRST)
        await until(lambda: [status.shard for status in daemon.consumers.statuses()] == [SECOND])
        assert transcript_actions(transcript) == ["initialize", "initialize", "leaseLost"]


async def test_a_child_that_does_not_end_in_time_is_killed(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = {"shutdownRequested": ["hang"], "eof": ["hang"]}
    async with running(world, script, tmp_path / "transcript", shutdown_grace=0.1, kill_after=0.1) as daemon:
        await daemon.all_initialized()
        pids = daemon.pids().values()
        with caplog.at_level(logging.WARNING):
            await asyncio.wait_for(daemon.consumers.stop(), LIMIT)
        assert not any(psutil.pid_exists(pid) for pid in pids)
    assert [record.getMessage() for record in caplog.records].count("child did not end in time") == 2


@pytest.mark.parametrize("part", ["shutdownRequested", "eof"])
async def test_a_child_that_outlives_the_grace_is_terminated_before_it_is_killed(
    world: World, tmp_path: Path, part: str
) -> None:
    noted = tmp_path / "terminated"
    note = ["note", signal.SIGTERM, str(noted)]
    async with running(
        world,
        {"initialize": [note, "status"], part: ["hang"]},
        tmp_path / "transcript",
        shutdown_grace=0.1,
        kill_after=LIMIT,
    ) as daemon:
        await daemon.all_initialized()
        await asyncio.wait_for(daemon.consumers.stop(), LIMIT)
    assert noted.read_text() == "SIGTERM\n" * 2


async def test_a_kill_ends_every_child_at_once(world: World, tmp_path: Path) -> None:
    async with running(world, {"eof": ["hang"]}, tmp_path / "transcript") as daemon:
        await daemon.all_initialized()
        pids = daemon.pids().values()
        daemon.consumers.kill()
        assert not any(psutil.pid_exists(pid) for pid in pids)


class Leases:
    """A lease keeper without a table."""

    def __init__(self) -> None:
        self.held: tuple[HeldLease, ...] = ()
        self.events: asyncio.Queue[LeaseEvent] = asyncio.Queue()

    def gain(self, shard: str) -> HeldLease:
        lease = HeldLease(Lease(shard, "w", 1, TRIM_HORIZON), 0.0)
        self.held = (*self.held, lease)
        self.events.put_nowait(Gained(lease))
        return lease

    def collects(self, shard: str) -> bool:
        return shard != "plain"

    async def next_event(self) -> LeaseEvent:
        return await self.events.get()

    async def release(self, lease: HeldLease) -> None:
        self.held = tuple(other for other in self.held if other is not lease)


class Consumer:
    """A consumer that was told to end, and ends when the test lets it."""

    def __init__(self, lease: HeldLease, parts: Any) -> None:
        self.lease = lease
        self.told = asyncio.Event()
        self.may_end = asyncio.Event()
        MADE[lease.shard_id] = self

    async def run(self) -> None:
        await self.told.wait()
        await self.may_end.wait()

    def hand_over(self) -> None:
        self.told.set()


MADE: dict[str, Consumer] = {}


@asynccontextmanager
async def without_children(monkeypatch: pytest.MonkeyPatch, world: World) -> AsyncIterator[tuple[Leases, Consumers]]:
    MADE.clear()
    monkeypatch.setattr(consumers_module, "ShardConsumer", Consumer)
    child = replace(world.child_settings(["true"]), shutdown_grace=LIMIT)
    leases = Leases()
    async with asyncio.TaskGroup() as group:
        parts = ConsumerParts(cast(Any, None), cast(LeaseKeeper, leases), world.stream_settings, child)
        consumers = Consumers(cast(LeaseKeeper, leases), lambda _: parts, group)
        following = group.create_task(consumers.follow_leases())
        yield leases, consumers
        following.cancel()
        for consumer in MADE.values():
            consumer.told.set()
            consumer.may_end.set()


async def test_shards_without_units_of_work_are_not_given_back(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    async with without_children(monkeypatch, world) as (leases, consumers):
        leases.gain(FIRST)
        plain = leases.gain("plain")
        await until(lambda: {FIRST, "plain"} <= MADE.keys())
        MADE[FIRST].may_end.set()
        await asyncio.wait_for(consumers.give_back(), LIMIT)
        assert leases.held == (plain,)
        assert not MADE["plain"].told.is_set()


async def test_a_consumer_that_starts_while_leases_are_given_back_keeps_its_lease_until_it_is_told_to_end(
    monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    async with without_children(monkeypatch, world) as (leases, consumers):
        leases.gain(FIRST)
        await until(lambda: FIRST in MADE)
        giving = asyncio.create_task(consumers.give_back())
        await until(lambda: MADE[FIRST].told.is_set())
        second = leases.gain(SECOND)
        await until(lambda: SECOND in MADE)
        MADE[FIRST].may_end.set()
        await asyncio.wait_for(giving, LIMIT)
        assert leases.held == (second,)
        MADE[SECOND].may_end.set()
        await asyncio.wait_for(consumers.give_back(), LIMIT)
        assert MADE[SECOND].told.is_set()
        assert not leases.held


async def test_a_lease_that_was_released_before_its_gain_is_heard_gets_no_consumer(
    monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    async with without_children(monkeypatch, world) as (leases, _):
        await leases.release(leases.gain(FIRST))
        leases.gain(SECOND)
        await until(lambda: SECOND in MADE)
        assert FIRST not in MADE
