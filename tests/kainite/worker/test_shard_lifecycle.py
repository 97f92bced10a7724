"""A shard from one child to the next: splits and merges, hand-overs, changed settings, figures."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.shard_source import polling
from kainite.kinesis.shards import Shard
from kainite.leases.keeper import Gained, HeldLease, LeaseKeeper
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.observe.metric import Metric
from kainite.settings import ChildSettings
from kainite.worker.consumer_states import ConsumerState
from kainite.worker.shard_consumer import ConsumerParts, ShardConsumer
from support.daemon_world import LIMIT, World, scripted, transcript_actions
from support.kinesis_double import KinesisDouble
from support.waiting import until

SHARD = "shardId-000000000000"
CHECKPOINT = ["write", '{"action":"checkpoint"}\n']
AT_THE_END = {"shardEnded": [CHECKPOINT, "read", "status"]}


class Figures:
    """Keeps all that is measured."""

    def __init__(self) -> None:
        self.seen: list[tuple[Metric, float, str | None]] = []

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        self.seen.append((metric, value, shard))

    def values(self, metric: Metric) -> list[float]:
        return [value for seen, value, shard in self.seen if seen is metric and shard == SHARD]


def events(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, Any]]:
    return [record.kainite_fields for record in caplog.records if record.getMessage() == name]  # type: ignore[attr-defined]


class Worker:
    """The consumers of all shards that a keeper gains; ``parts`` may be replaced."""

    def __init__(self, parts: ConsumerParts) -> None:
        self.parts = parts
        self.consumers: list[ShardConsumer] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                match await self.parts.keeper.next_event():
                    case Gained(lease):
                        consumer = ShardConsumer(lease, lambda: self.parts)
                        self.consumers.append(consumer)
                        group.create_task(consumer.run())


@asynccontextmanager
async def working(world: World, child: ChildSettings) -> AsyncIterator[Worker]:
    stream = StreamClient(world.kinesis, world.name)
    async with world.keeper(stream) as keeper:
        worker = Worker(
            ConsumerParts(polling(stream, render=render_process_records), keeper, world.stream_settings, child)
        )
        task = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            task.cancel()
            await asyncio.wait({task})


async def test_children_of_splits_and_merges_start_when_their_parents_are_done(
    ending: World, double: KinesisDouble
) -> None:
    """Uses one journal for all shards: its lines stand in the order in which they were written."""
    journal = ending.tmp / "journal"
    program = ending.tmp / "child.sh"
    python, scripted_program, script = scripted(AT_THE_END)
    (ending.tmp / "script.json").write_text(script)
    program.write_text(
        f'echo "start $KCL_SHARD_ID" >> {journal}\n'
        f'{python} {scripted_program} "$(cat {ending.tmp}/script.json)"\necho "end $KCL_SHARD_ID" >> {journal}\n'
    )

    def lines() -> list[str]:
        return journal.read_text().splitlines() if journal.exists() else []

    async with working(ending, ending.child_settings(("sh", str(program)))):
        await until(lambda: lines() == [f"start {SHARD}"])
        left, right = double.split(SHARD)
        await until(lambda: {f"start {left}", f"start {right}"} <= set(lines()))
        child = double.merge(left, right)
        await until(lambda: f"start {child}" in lines())
    order = lines()
    assert order.index(f"end {SHARD}") < min(order.index(f"start {left}"), order.index(f"start {right}"))
    assert max(order.index(f"end {left}"), order.index(f"end {right}")) < order.index(f"start {child}")
    assert len(order) == len(set(order)) == 7, "a shard was given to two children"


async def test_a_child_that_never_checkpoints_at_the_end_is_tried_ever_more_slowly(
    ending: World, double: KinesisDouble, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Holds although each new child first gets the same records again."""
    double.put(b"a")
    transcript = tmp_path / "transcript"
    async with ending.consumer(scripted({}, transcript)):
        await until(lambda: "processRecords" in transcript_actions(transcript))
        double.split(SHARD)
        await until(lambda: len(events(caplog, "shard failed")) >= 4)
    failures = events(caplog, "shard failed")[:4]
    assert [failure["pause"] for failure in failures] == [0.01, 0.02, 0.05, 0.05]
    assert "call checkpoint() without a sequence number in shardEnded" in str(failures[0]["error"])
    assert transcript_actions(transcript)[:6] == ["initialize", "processRecords", "shardEnded"] * 2
    assert not events(caplog, "poison batch")


async def test_a_shard_end_whose_first_leases_wait_for_the_log_is_tried_again(
    ending: World, double: KinesisDouble, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Holds a daemon up while the log has no owner: a merge's other parent may need a first lease."""
    really, left = LeaseKeeper.shard_ended, [LogUnavailableError("the log did not note when reading begins")]

    async def shard_ended(keeper: LeaseKeeper, held: HeldLease, children: Sequence[Shard]) -> None:
        if left:
            raise left.pop()
        await really(keeper, held, children)

    monkeypatch.setattr(LeaseKeeper, "shard_ended", shard_ended)
    async with ending.consumer(scripted(AT_THE_END)) as (consumer, task):
        double.split(SHARD)
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
        assert consumer.state is ConsumerState.COMPLETE
    assert ending.stored_checkpoint() == "SHARD_END"
    assert "did not note" in str(events(caplog, "shard failed")[0]["error"])


async def test_a_lease_lost_while_the_shard_ends_is_no_fault_of_the_child(
    ending: World, double: KinesisDouble, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    transcript, go = tmp_path / "transcript", tmp_path / "go"
    script = {"shardEnded": [["wait for", str(go)], CHECKPOINT, "read", "status"]}
    async with ending.consumer(scripted(script, transcript)) as (_, task):
        await until(lambda: transcript_actions(transcript) == ["initialize"])
        double.split(SHARD)
        await until(lambda: transcript_actions(transcript)[-1] == "shardEnded")
        ending.dynamodb.update_item(
            TableName=ending.name,
            Key={"leaseKey": {"S": SHARD}},
            UpdateExpression="SET leaseOwner = :other ADD leaseCounter :some",
            ExpressionAttributeValues={":other": {"S": "another"}, ":some": {"N": "100"}},
        )
        go.touch()
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
    reply = json.loads(transcript.read_text().splitlines()[-1])
    assert (reply["action"], reply["error"]) == ("checkpoint", "ShutdownException")
    assert not events(caplog, "shard failed")


async def test_a_hand_over_ends_the_child_in_peace_and_lets_the_lease_go(
    ending: World, double: KinesisDouble, tmp_path: Path
) -> None:
    sequence = double.put(b"a")
    transcript = tmp_path / "transcript"
    script = {"shutdownRequested": [CHECKPOINT, "read", "status"]}
    async with ending.consumer(scripted(script, transcript)) as (consumer, task):
        await until(lambda: "processRecords" in transcript_actions(transcript))
        consumer.hand_over()
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
        item = ending.dynamodb.get_item(TableName=ending.name, Key={"leaseKey": {"S": SHARD}}, ConsistentRead=True)
    assert transcript_actions(transcript)[2:] == ["shutdownRequested", "checkpoint", "leaseLost"]
    assert ending.stored_checkpoint() == str(sequence)
    assert "checkpointOwner" not in item["Item"]


async def test_changed_settings_hold_for_the_next_child(ending: World, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    settings = ending.child_settings(scripted({}, before))
    async with working(ending, settings) as worker:
        await until(lambda: transcript_actions(before) == ["initialize"])
        worker.parts = replace(worker.parts, child_settings=replace(settings, command=scripted({}, after)))
        pid = worker.consumers[0].status().pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: transcript_actions(after) == ["initialize"])
    assert transcript_actions(before) == ["initialize"]


async def test_a_program_that_vanishes_is_tried_again_until_it_is_back(ending: World, tmp_path: Path) -> None:
    program, transcript = tmp_path / "processor", tmp_path / "transcript"
    async with ending.consumer((str(program),)) as (consumer, _):
        await until(lambda: consumer.status().failures > 1)
        python, scripted_program, script, _ = scripted({}, transcript)
        hidden = tmp_path / "hidden"
        hidden.write_text(f"#!/bin/sh\nexec {python} {scripted_program} '{script}' {transcript}\n")
        hidden.chmod(0o755)
        hidden.rename(program)
        await until(lambda: consumer.state is ConsumerState.PROCESSING)
    assert transcript_actions(transcript)[0] == "initialize"


async def test_what_a_shard_measures_and_tells_of_itself(ending: World, double: KinesisDouble, tmp_path: Path) -> None:
    double.put(b"12345")
    double.put(b"")
    figures, go, died = Figures(), tmp_path / "go", tmp_path / "died"
    script = {"processRecords": [["die once", str(died)], ["wait for", str(go)], "status"], **AT_THE_END}
    async with ending.consumer(scripted(script), meter=Meter(figures)) as (consumer, task):
        # The second child's call: the first child may be seen in its call too, before it dies.
        await until(lambda: consumer.status().failures == 1 and consumer.status().action == "processRecords")
        status = consumer.status()
        assert (status.shard, status.state, status.failures, status.last_record) == (SHARD, "PROCESSING", 1, None)
        assert status.pid
        assert status.silent is not None
        go.touch()
        await until(lambda: consumer.status().last_record is not None)
        status = consumer.status()
        assert (status.action, status.silent, status.failures, status.behind_ms) == (None, None, 0, 0)
        double.split(SHARD)
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
    assert figures.values(metric.RECORDS_PROCESSED) == [2]
    assert figures.values(metric.DATA_BYTES_PROCESSED) == [5]
    assert figures.values(metric.CHILD_FAILURES) == [1]
    counts = {m: len(figures.values(m)) for m in (metric.INITIALIZE_TIME, metric.PROCESS_RECORDS_TIME)}
    assert counts == {metric.INITIALIZE_TIME: 2, metric.PROCESS_RECORDS_TIME: 2}
    assert len(figures.values(metric.SHUTDOWN_TIME)) == 1


async def test_a_call_that_takes_long_is_told_once(
    ending: World, double: KinesisDouble, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    double.put(b"a")
    go = tmp_path / "go"
    script = {"processRecords": [CHECKPOINT, "read", ["wait for", str(go)], "status"]}
    async with ending.consumer(scripted(script), warn_after=0.2) as (consumer, _):
        await until(lambda: any(e["action"] == "processRecords" for e in events(caplog, "call takes long")))
        go.touch()
        await until(lambda: consumer.status().last_record is not None)
    slow = [told for told in events(caplog, "call takes long") if told["action"] == "processRecords"]
    assert slow == [{"shard": SHARD, "action": "processRecords", "seconds": 0.2}]
