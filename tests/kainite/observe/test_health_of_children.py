"""A hung child and a quiet shard, told apart by what real children do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kainite.observe.health import Health, HealthLimits, judge_shard
from kainite.worker.shard_consumer import ShardConsumer
from support.daemon_world import World, scripted
from support.names import unique
from support.waiting import until

LIMITS = HealthLimits(hung_after=0.1, poison_tries=3, unreached_after=60)


@pytest.fixture
def world(kinesis: Any, dynamodb: Any, tmp_path: Path) -> World:
    world = World(kinesis, dynamodb, unique("stream"), tmp_path)
    world.create_stream()
    return world


def health(consumer: ShardConsumer) -> Health:
    return judge_shard(consumer.status(), LIMITS).health


async def test_a_shard_without_records_is_quiet_until_its_child_is_given_one_and_hangs(world: World) -> None:
    async with world.consumer(scripted({"processRecords": ["hang"]})) as (consumer, _):
        await until(lambda: health(consumer) is Health.QUIET)
        world.put("r")
        await until(lambda: health(consumer) is Health.HUNG)

        judged = judge_shard(consumer.status(), LIMITS)
        assert "the child has not answered processRecords for" in judged.why
        assert judged.status.pid is not None


async def test_a_shard_whose_children_die_one_after_the_other_is_failing(world: World) -> None:
    world.put("r")
    async with world.consumer(scripted({"processRecords": ["die"]})) as (consumer, _):
        await until(lambda: health(consumer) is Health.FAILING)
