"""The messages of a call are on the output stream before the call's checkpoint is written, or none is written.

Then real daemons and workers: two stages after one another, and a daemon that is killed between put and checkpoint.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.base.errors import ChildProtocolError, StreamError
from kainite.base.position import Position
from kainite.base.retry import Backoff
from kainite.child.events import Action, CheckpointRequested, Rejected, Span
from kainite.child.markers.emit_line import emit_line
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.record_batch import RecordBatch
from kainite.kinesis.write.open_shards import OpenShards
from kainite.leases.keeper import HeldLease
from kainite.leases.table.lease import Lease
from kainite.settings import ExtractSpread, load
from kainite.worker.emit_budget import EmitBudget
from kainite.worker.output_stream import MAX_MESSAGE, OutputStream, ShardOutput
from kainite.worker.shard_call import ShardCalls
from kainite.worker.supervisor import supervise
from support.daemon_world import CHILDREN, World
from support.names import unique
from support.waiting import eventually, until

THROTTLED = "ProvisionedThroughputExceededException"
WHOLE = {"StartingHashKey": "0", "EndingHashKey": str(2**128 - 1)}


def refused(code: str) -> ClientError:
    """Returns an answer of Kinesis that refuses a call."""
    return ClientError({"Error": {"Code": code, "Message": code}}, "PutRecords")


@dataclass
class Journal:
    """The output stream and the lease table as one child's calls see them; the stream answers as it is told.

    An answer is an error, or the number of records that are refused.
    """

    answers: list[Exception | int] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    meta: Mock = field(default_factory=Mock)

    def list_shards(self, **_: Any) -> dict[str, Any]:
        sequence = {"StartingSequenceNumber": "1"}
        return {"Shards": [{"ShardId": "s", "HashKeyRange": WHOLE, "SequenceNumberRange": sequence}]}

    def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        answer = self.answers.pop(0) if self.answers else 0
        if isinstance(answer, Exception):
            self.entries.append("put !")
            raise answer
        taken = Records[: len(Records) - answer]
        self.entries.append("put " + b" ".join(record["Data"] for record in taken).decode())
        left = [{"ErrorCode": THROTTLED, "ErrorMessage": "slow down"}] * answer
        return {"Records": [*({"SequenceNumber": "1", "ShardId": "s"} for _ in taken), *left]}

    async def checkpoint(self, lease: HeldLease, checkpoint: Checkpoint) -> None:
        self.entries.append(f"write {checkpoint}")
        lease.lease = replace(lease.lease, checkpoint=checkpoint)


def calls_of(journal: Journal) -> tuple[ShardCalls, OutputStream]:
    kinesis: Any = journal
    shards = OpenShards(StreamClient(kinesis, "next"), ExtractSpread.UNIT, refresh=60)
    stream = OutputStream(kinesis, "next", shards, EmitBudget(), Backoff((0.0,)))
    lease = HeldLease(Lease("shard", "w", checkpoint=TRIM_HORIZON), 0.0)
    return ShardCalls(lease, journal, None, stream.of_shard()), stream


async def begin(calls: ShardCalls, first: int, last: int, *messages: bytes) -> None:
    batch = RecordBatch((), last - first + 1, Position(first), Position(last), 0, 0)
    await calls.begin(Action.PROCESS_RECORDS, batch)
    for message in messages:
        assert calls.emitted(emit_line(message)) is None


async def test_all_messages_of_a_call_are_put_before_its_checkpoint_is_written() -> None:
    journal = Journal()
    calls, _ = calls_of(journal)
    await begin(calls, 1, 3, b"a", b"no JSON", b"c")
    assert await calls.answer(CheckpointRequested("3")) is None
    assert journal.entries == ["put a no JSON c", "write 3"]
    await calls.finish()
    assert journal.entries == ["put a no JSON c", "write 3"]


async def test_what_is_on_its_way_is_no_reason_for_other_shards_to_hold_more() -> None:
    class Watched(Journal):
        def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
            self.entries.append(f"appending {room.appending}")
            return super().put_records(StreamName, Records)

    kinesis: Any = Watched()
    budget = EmitBudget()
    room = budget.share()
    shards = OpenShards(StreamClient(kinesis, "next"), ExtractSpread.UNIT, refresh=60)
    output = ShardOutput(OutputStream(kinesis, "next", shards, budget, Backoff((0.0,))), room)
    assert output.take(emit_line(b"a")) is None
    await output.put("shard")
    assert kinesis.entries == ["appending True", "put a"]
    assert not room.appending


async def test_a_checkpoint_within_a_call_waits_for_the_calls_put() -> None:
    journal = Journal()
    calls, _ = calls_of(journal)
    await begin(calls, 1, 3, b"a")
    assert await calls.answer(CheckpointRequested("2")) is None
    assert journal.entries == []
    await calls.finish()
    assert journal.entries == ["put a", "write 2"]


async def test_a_call_without_a_checkpoint_is_put_before_the_next_one_begins() -> None:
    journal = Journal()
    calls, _ = calls_of(journal)
    for number, message in ((1, b"a"), (2, b"b")):
        await begin(calls, number, number, message)
        await calls.finish()
    assert journal.entries == ["put a", "put b"]


async def test_a_call_that_writes_nothing_puts_nothing() -> None:
    journal = Journal()
    calls, _ = calls_of(journal)
    await begin(calls, 1, 1)
    calls.rejected(Rejected(Span(Position(1), Position(1)), "bad", b""))
    await calls.answer(CheckpointRequested("1"))
    await calls.finish()
    assert journal.entries == ["write 1"]


async def test_refused_messages_alone_are_put_again() -> None:
    journal = Journal([1, refused(THROTTLED)])
    calls, stream = calls_of(journal)
    await begin(calls, 1, 1, b"a", b"b")
    await calls.answer(CheckpointRequested("1"))
    assert journal.entries == ["put a", "put !", "put b", "write 1"]
    assert stream.trouble == ""


async def test_without_the_stream_no_checkpoint_is_written_and_the_messages_are_dropped() -> None:
    journal = Journal([refused("ResourceNotFoundException")])
    calls, stream = calls_of(journal)
    await begin(calls, 1, 1, b"a")
    with pytest.raises(StreamError, match="next"):
        await calls.answer(CheckpointRequested("1"))
    assert stream.trouble.startswith("output stream next takes no records")
    calls.abandon()
    await begin(calls, 1, 1, b"again")
    await calls.answer(CheckpointRequested("1"))
    assert journal.entries == ["put !", "put again", "write 1"]
    assert stream.trouble == ""


async def test_what_a_child_wrote_before_it_died_is_not_put() -> None:
    journal = Journal()
    calls, _ = calls_of(journal)
    await begin(calls, 1, 2, b"a")
    calls.abandon()
    await calls.finish()
    assert journal.entries == []


async def test_a_message_that_no_stream_takes_fails_the_child() -> None:
    journal = Journal()
    calls, _ = calls_of(journal)
    await begin(calls, 1, 2, b"x" * MAX_MESSAGE)
    with pytest.raises(ChildProtocolError, match=f"{MAX_MESSAGE + 1} bytes"):
        calls.emitted(emit_line(b"x" * (MAX_MESSAGE + 1)))
    calls.abandon()
    assert journal.entries == []


# Real children: each answers a message by the same message.


def properties(world: World, endpoint: str, source: str, output: str, **keys: str) -> Path:
    lines = {
        "applicationName": f"{world.name}-{source}",
        "streamName": source,
        "output": f"stream:{output}",
        "regionName": "us-east-1",
        "kinesisEndpoint": endpoint,
        "dynamoDBEndpoint": endpoint,
        "initialPositionInStream": "TRIM_HORIZON",
        "idleTimeBetweenReadsInMillis": "50",
        "executableName": f"{sys.executable} {CHILDREN / 'markers_worker.py'} {world.tmp / f'{source}.notes'}",
        "childProtocol": "markers",
        "metricsLevel": "NONE",
        **keys,
    }
    path = world.tmp / f"{source}.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    return path


def payloads(kinesis: Any, stream: str) -> list[str]:
    """Returns the records of a stream, shard by shard."""
    found: list[str] = []
    for shard in kinesis.list_shards(StreamName=stream)["Shards"]:
        iterator = kinesis.get_shard_iterator(
            StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        found += [record["Data"].decode() for record in kinesis.get_records(ShardIterator=iterator)["Records"]]
    return found


def run_and_kill(file: Path, condition: Callable[[], bool]) -> None:
    """Runs a daemon as a process of its own until the condition holds, then kills it."""
    with subprocess.Popen([sys.executable, "-m", "kainite", "run", "-p", str(file)]) as daemon:
        try:
            eventually(condition)
        finally:
            daemon.kill()


@pytest.fixture
def world(kinesis: Any, dynamodb: Any, tmp_path: Path) -> World:
    """Returns a world whose stream has one shard."""
    world = World(kinesis, dynamodb, unique("first"), tmp_path)
    world.create_stream()
    return world


async def test_two_stages_after_one_another(world: World, moto_endpoint: str) -> None:
    second, third = unique("second"), unique("third")
    for stream in (second, third):
        world.kinesis.create_stream(StreamName=stream, ShardCount=2)
    messages = [f"message {number}" for number in range(20)]
    world.put(*messages)
    stop = asyncio.Event()
    files = (
        properties(world, moto_endpoint, world.name, second),
        properties(world, moto_endpoint, second, third),
    )
    running = [asyncio.create_task(supervise(load(file), stop)) for file in files]
    try:
        await until(lambda: any(task.done() for task in running) or len(payloads(world.kinesis, third)) >= 20)
    finally:
        stop.set()
        await asyncio.gather(*running)
    assert sorted(payloads(world.kinesis, third)) == sorted(messages)


async def test_a_daemon_killed_between_put_and_checkpoint_puts_again_and_loses_nothing(
    world: World, moto_endpoint: str
) -> None:
    second = unique("second")
    world.kinesis.create_stream(StreamName=second, ShardCount=1)
    world.put("one", "two", "three")
    keys = {"workerId": "w", "failoverTimeMillis": "1000"}
    late = {"markersCheckpoint": "interval", "markersCheckpointMillis": "3600000"}  # none before the kill
    file = properties(world, moto_endpoint, world.name, second, **keys, **late)
    await asyncio.to_thread(run_and_kill, file, lambda: len(payloads(world.kinesis, second)) == 3)
    file = properties(world, moto_endpoint, world.name, second, **keys)
    stop = asyncio.Event()
    running = asyncio.create_task(supervise(load(file), stop))
    try:
        world.put("four")
        await until(lambda: running.done() or "four" in payloads(world.kinesis, second))
    finally:
        stop.set()
        await running
    assert Counter(payloads(world.kinesis, second)) == {"one": 2, "two": 2, "three": 2, "four": 1}
