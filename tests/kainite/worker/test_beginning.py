"""Where reading begins at LATEST with units of work, over crashes of the whole daemon."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, cast

import pytest

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST
from kainite.base.errors import LogUnavailableError
from kainite.log.client import LogClient
from kainite.store.memory import MemoryStore
from kainite.worker.beginning import noted, warn_if_kept
from kainite.worker.shard_consumer import ShardConsumer
from support.daemon_world import World, delta, scripted, units_in
from support.names import unique
from support.waiting import until

EMITTING = {"processRecords": [["emit", delta("T-1")], "checkpoint last", "status"]}


@pytest.fixture
def world(kinesis: Any, dynamodb: Any, tmp_path: Path) -> World:
    world = World(kinesis, dynamodb, unique("stream"), tmp_path, latest=True)
    world.create_stream()
    return world


def reads(consumer: ShardConsumer) -> bool:
    return consumer.reading.millis_behind_latest is not None


async def test_records_that_come_while_no_daemon_runs_are_read(world: World) -> None:
    store, idle = MemoryStore(), scripted({})
    for _ in range(2):  # daemons that die before the first record
        async with world.log(store) as log, world.consumer(idle, log=log) as (consumer, _task):
            await until(lambda: reads(consumer))
    (sequence,) = world.put("a")
    async with world.log(store) as log, world.consumer(scripted(EMITTING), log=log):
        await until(lambda: world.stored_checkpoint() == sequence)
    assert units_in(store) == ["T-1"]


async def test_the_note_is_durable_before_the_first_read(world: World) -> None:
    store = MemoryStore()
    async with world.log(store) as log:
        gate = asyncio.Event()
        begin = log.begin

        async def begin_late(at_ms: int, stream: str = "") -> int:
            await gate.wait()
            return await begin(at_ms, stream)

        log.begin = begin_late  # type: ignore[method-assign]
        async with world.consumer(scripted({}), log=log) as (consumer, _):
            await until(lambda: world.stored_checkpoint() == str(LATEST))
            assert not reads(consumer)
            assert log.state.started_ms is None
            gate.set()
            await until(lambda: reads(consumer))
            assert log.state.started_ms is not None


async def test_a_log_without_an_owner_does_not_hold_up_the_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    class NobodyOwns:
        async def begin(self, at_ms: int) -> int:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("kainite.worker.beginning.NOTE_S", 0.01)
    with pytest.raises(LogUnavailableError, match="did not note"):
        await noted(cast(LogClient, NobodyOwns()), lambda: 5.0, LATEST, None)


async def test_leases_wait_for_the_beginning_that_the_log_has(world: World) -> None:
    async with world.log(MemoryStore()) as log:
        assert await noted(log, lambda: 500.0, LATEST, None) == 499.0
        assert await noted(log, lambda: 900.0, LATEST, None) == 499.0
        assert await noted(log, lambda: 900.0, AT_TIMESTAMP, 100.0) == 499.0


def test_a_time_in_the_settings_that_comes_too_late_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_if_kept(AT_TIMESTAMP, 5_000, 5_000, "s0")
        warn_if_kept(LATEST, 9_000, 5_000, "s0")
        assert not caplog.records
        warn_if_kept(AT_TIMESTAMP, 9_000, 5_000, "s0")
    (record,) = caplog.records
    assert "leases reset --at" in record.getMessage()
