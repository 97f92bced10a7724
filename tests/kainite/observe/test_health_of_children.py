"""Hung children, stalled and quiet shards, told apart by what real children and a stream do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from kainite.base.retry import Backoff
from kainite.observe.health import Health, HealthLimits, judge_shard
from kainite.worker.shard_consumer import ShardConsumer
from support.daemon_world import World, scripted
from support.kinesis_double import KinesisDouble
from support.names import unique
from support.waiting import until

LIMITS = HealthLimits(hung_after=0.1, poison_tries=3, unreached_after=60)


@pytest.fixture
def world(kinesis: Any, dynamodb: Any, tmp_path: Path) -> World:
    world = World(kinesis, dynamodb, unique("stream"), tmp_path)
    world.create_stream()
    return world


@pytest.fixture
def double() -> Iterator[KinesisDouble]:
    double = KinesisDouble()
    yield double
    double.close()


@pytest.fixture
def unready(double: KinesisDouble, dynamodb: Any, tmp_path: Path) -> Iterator[World]:
    """Yields a world whose stream does what a test says."""
    config = Config(retries={"total_max_attempts": 1})
    kinesis = boto3.client("kinesis", endpoint_url=double.endpoint, region_name="us-east-1", config=config)
    yield World(kinesis, dynamodb, unique("stream"), tmp_path)
    kinesis.close()


def health(consumer: ShardConsumer) -> Health:
    return judge_shard(consumer.status(), LIMITS).health


def told(consumer: ShardConsumer) -> str:
    """Returns why a shard is stalled; empty while it is not: a slow machine tells another cause at first."""
    judged = judge_shard(consumer.status(), LIMITS)
    return judged.why if judged.health is Health.STALLED else ""


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


async def test_a_child_that_prints_without_end_and_answers_nothing_hangs(world: World) -> None:
    world.put("r")
    script = {"processRecords": [["stderr", "retrying\n"], ["flood", 10**9, "still there\n"]]}
    async with world.consumer(scripted(script)) as (consumer, _):
        await until(lambda: health(consumer) is Health.HUNG)
        await until(lambda: consumer.status().stderr == "retrying")


async def test_a_shard_whose_iterator_stands_still_is_stalled_and_one_without_records_is_quiet(
    double: KinesisDouble, unready: World
) -> None:
    async with unready.consumer(scripted({})) as (consumer, _):
        await until(lambda: health(consumer) is Health.QUIET)
        for _ in range(40):
            double.answer("GetRecords", b'{"Records":[],"MillisBehindLatest":9000,"NextShardIterator":"gone"}')
        await until(lambda: "replies bring no record, though the newest one is 9 s ahead" in told(consumer))
        await until(lambda: health(consumer) is Health.QUIET)


async def test_a_shard_whose_reading_fails_for_long_is_stalled(double: KinesisDouble, unready: World) -> None:
    double.fail("GetRecords", "InternalFailure", times=10_000, status=500)
    async with unready.consumer(scripted({})) as (consumer, _):
        await until(lambda: "reading fails: An error occurred (InternalFailure)" in told(consumer))


async def test_a_shard_that_is_read_and_throttled_for_long_is_throttled(
    double: KinesisDouble, unready: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kainite.kinesis.read.polling.AWS_BACKOFF", Backoff((0.001,)))
    double.fail("GetRecords", "ProvisionedThroughputExceededException")
    async with unready.consumer(scripted({})) as (consumer, _):
        await until(lambda: health(consumer) is Health.THROTTLED)
