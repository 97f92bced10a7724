from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import CatalogueError, LogCorruptError, LogRequestError, StoppedError
from kainite.base.position import Position
from kainite.base.process_identity import ProcessIdentity
from kainite.kinesis.client import StreamClient
from kainite.owner.mount import mount
from kainite.settings import Settings, examine
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.catalogue.file import write_catalogue
from kainite.worker.units_of_work import open_units_of_work
from support.daemon_world import LIMIT
from support.kinesis_double import KinesisDouble, stream_of
from support.log_builders import batch, fragment
from support.names import unique
from support.names_of_all import table_names
from support.owned_log import owned_log
from support.tables import SHOP

SHARD = "shardId-000000000000"


def nobody(shard: str) -> None:
    """Reads who holds a lease: nobody does."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "app.properties"
    path.write_text(
        f"applicationName={unique('app')}\nstreamName=orders\nexecutableName=python child.py\nunitsOfWork=true\n"
    )
    return examine(path, environment={}).settings_or_raise()


async def test_disabled_units_of_work_touch_nothing(settings: Settings, dynamodb: Any) -> None:
    disabled = replace(settings, log=replace(settings.log, enabled=False))
    async with (
        asyncio.TaskGroup() as group,
        open_units_of_work(disabled, dynamodb, group, asyncio.Event(), nobody) as units,
    ):
        assert units is None
    assert settings.log.table not in table_names(dynamodb)


async def test_each_shard_has_its_own_admission_to_one_log(settings: Settings, dynamodb: Any) -> None:
    async with (
        asyncio.TaskGroup() as group,
        open_units_of_work(settings, dynamodb, group, asyncio.Event(), nobody) as units,
    ):
        assert units is not None
        one, other = units(), units()
        assert one.log is other.log
        assert one.admission is not other.admission
        await one.log.append(SHARD, Position(1), Position(2), [fragment("T-1", [1], count=1)])
        assert await other.log.position(SHARD) == Position(2)


async def collect(settings: Settings, dynamodb: Any, stream: StreamClient) -> None:
    """Collects record 5 of the stream, unless the log has it."""
    async with (
        asyncio.TaskGroup() as group,
        open_units_of_work(settings, dynamodb, group, asyncio.Event(), nobody, stream=stream) as units,
    ):
        assert units is not None
        if await units().log.position(SHARD) is None:
            await units().log.append(SHARD, Position(5), Position(5), [])


async def test_a_stream_that_replaced_the_logs_own_is_refused_until_it_is_adopted(
    settings: Settings, dynamodb: Any, kinesis: Any, moto_endpoint: str
) -> None:
    name = unique("stream")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    stream = StreamClient(kinesis, name)
    for _ in range(2):
        await collect(settings, dynamodb, stream)
    kinesis.delete_stream(StreamName=name)
    kinesis.create_stream(StreamName=name, ShardCount=1)
    with pytest.raises(LogRequestError, match=r"choose another logPartition, or .* kainite log adopt-stream"):
        raise_first_of(await failing(collect(settings, dynamodb, stream)))
    store = DynamoDBStore(dynamodb, settings.log.table)
    async with owned_log(store, settings.log, settings.uow) as owner:
        assert await owner.position(SHARD) == Position(5)
        await owner.collect_from(str(stream.identity()), adopt=True)
        assert await owner.position(SHARD) is None
    await collect(settings, dynamodb, stream)


async def failing(call: Coroutine[Any, Any, None]) -> BaseExceptionGroup[BaseException]:
    with pytest.raises(BaseExceptionGroup) as raised:
        await call
    return raised.value


def raise_first_of(errors: BaseExceptionGroup[BaseException]) -> None:
    raise errors.exceptions[0]


async def test_a_stream_that_nobody_may_identify_is_collected(
    settings: Settings, dynamodb: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(KinesisDouble()) as double, stream_of(double) as stream:
        double.fail("DescribeStreamSummary", "LimitExceededException")
        double.fail("DescribeStreamSummary", "AccessDeniedException")
        await collect(settings, dynamodb, stream)
    assert "waiting" in caplog.text
    assert "a stream that replaces it will not be noticed" in caplog.text


async def test_the_log_is_mounted_once_more_after_it_was_released(settings: Settings, dynamodb: Any) -> None:
    generations = []
    for _ in range(2):
        async with asyncio.TaskGroup() as group, open_units_of_work(settings, dynamodb, group, asyncio.Event(), nobody):
            head = DynamoDBStore(dynamodb, settings.log.table).read_head("0")
            assert head is not None
            generations.append(head.generation)
    assert generations[0] < generations[1]


async def test_a_catalogue_that_cannot_be_used_is_an_error(settings: Settings, dynamodb: Any, tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue.json"
    write_catalogue(SHOP, catalogue)
    catalogue.write_bytes(catalogue.read_bytes()[:-20])
    broken = replace(settings, uow=replace(settings.uow, catalogue_file=catalogue))
    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.TaskGroup() as group, open_units_of_work(broken, dynamodb, group, asyncio.Event(), nobody):
            pass
    assert raised.group_contains(CatalogueError)


async def test_an_append_survives_an_owner_in_between(settings: Settings, dynamodb: Any) -> None:
    store, end = DynamoDBStore(dynamodb, settings.log.table), asyncio.Event()
    async with asyncio.TaskGroup() as group, open_units_of_work(settings, dynamodb, group, end, nobody) as units:
        assert units is not None
        head = store.read_head("0")
        assert head is not None
        between = await asyncio.to_thread(mount, store, "0", "another", settings.log.lease, gone=head.generation)
        await asyncio.to_thread(between.release)
        await asyncio.wait_for(units().log.append(SHARD, Position(1), Position(1), [fragment("T-1", [1])]), LIMIT)
        head = store.read_head("0")
        assert head is not None
        assert head.generation == between.generation + 1


async def test_a_log_that_cannot_be_read_fails_the_group(settings: Settings, dynamodb: Any) -> None:
    store = DynamoDBStore(dynamodb, settings.log.table)
    store.create()
    held = mount(store, "0", "another", settings.log.lease)
    assert store.put_batch("0", batch(held.first_id, held.generation), "n") is None
    held.release()
    key = {"p": {"S": "0#L"}, "s": {"S": f"{held.first_id:020}"}}
    dynamodb.update_item(
        TableName=settings.log.table,
        Key=key,
        UpdateExpression="SET i = :i",
        ExpressionAttributeValues={":i": {"B": b""}},
    )
    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.TaskGroup() as group, open_units_of_work(settings, dynamodb, group, asyncio.Event(), nobody):
            pass
    assert raised.group_contains(LogCorruptError)


async def test_a_wish_to_stop_ends_the_wait_for_another_owners_log(settings: Settings, dynamodb: Any) -> None:
    store, stop = DynamoDBStore(dynamodb, settings.log.table), asyncio.Event()
    store.create()
    mount(store, "0", "another", settings.log.lease, process=ProcessIdentity("another"))
    stop.set()
    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.TaskGroup() as group, open_units_of_work(settings, dynamodb, group, stop, nobody):
            pass
    assert raised.group_contains(StoppedError)
