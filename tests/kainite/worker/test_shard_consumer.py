"""One shard with real children, a real lease keeper on moto's tables, and the real log in memory."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from kainite.base.errors import LogFencedError, LogUnavailableError
from kainite.base.position import Position
from kainite.log.client import LogClient
from kainite.log.format.entry import UnitStatus
from kainite.store.memory import MemoryStore
from kainite.uow.fragment import Fragment
from kainite.worker.consumer_states import ConsumerState
from kainite.worker.shard_consumer import ShardConsumer
from support.daemon_world import CHILDREN, LIMIT, World, delta, scripted, transcript_actions, units_in
from support.kinesis_double import KinesisDouble
from support.names import unique
from support.waiting import until

SHARD = "shardId-000000000000"


@pytest.fixture
def world(kinesis: Any, dynamodb: Any, tmp_path: Path) -> World:
    world = World(kinesis, dynamodb, unique("stream"), tmp_path)
    world.create_stream()
    return world


class Log:
    """The log as the consumer sees it, with a gate before each append, and errors to raise."""

    def __init__(self, inner: LogClient) -> None:
        self.inner = inner
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self.errors: list[Exception] = []
        self.appends: list[tuple[int, int, tuple[str, ...]]] = []
        self.hold_ms: int | None = None

    async def position(self, shard_id: str) -> Position | None:
        return await self.inner.position(shard_id)

    async def begin(self, at_ms: int, stream: str = "") -> int:
        return await self.inner.begin(at_ms, stream)

    async def append(
        self,
        shard_id: str,
        first: Position,
        last: Position,
        fragments: Sequence[Fragment],
        after: Position | None = None,
    ) -> None:
        self.waiting += 1
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        await self.inner.append(shard_id, first, last, fragments, after)
        self.appends.append((first.sequence, last.sequence, tuple(fragment.uow for fragment in fragments)))


def events(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, Any]]:
    return [record.kainite_fields for record in caplog.records if record.getMessage() == name]  # type: ignore[attr-defined]


def child_pid(consumer: ShardConsumer) -> int:
    """Returns the child's process id; 0 without a child."""
    return consumer.status().pid or 0


async def test_records_become_units_and_a_checkpoint(world: World, tmp_path: Path) -> None:
    sequences = world.put("T-1", "T-2")
    store, calls = MemoryStore(), tmp_path / "calls"
    command = (sys.executable, str(CHILDREN / "kclpy_echo.py"), str(calls))
    async with world.log(store) as log, world.consumer(command, log=log) as (consumer, task):
        await until(lambda: world.stored_checkpoint() == sequences[-1])
        assert units_in(store) == ["T-1", "T-2"]
        consumer.stop()
        await asyncio.wait_for(task, LIMIT)
        assert consumer.state is ConsumerState.COMPLETE
    noted = [json.loads(line)["what"] for line in calls.read_text().splitlines()]
    assert noted == ["initialize", "processRecords", "shutdownRequested", "leaseLost"]
    assert "leaseOwner" not in world.dynamodb.get_item(TableName=world.name, Key={"leaseKey": {"S": SHARD}})["Item"]


async def test_a_child_killed_in_a_call_is_started_again_and_nothing_counts_twice(world: World, tmp_path: Path) -> None:
    world.put("r")
    store = MemoryStore()
    steps = [["emit", delta("T-1")], ["die once", str(tmp_path / "died")], "checkpoint last", "status"]
    async with world.log(store) as inner:
        log = Log(inner)
        async with world.consumer(scripted({"processRecords": steps}), log=log) as (consumer, _):
            await until(lambda: world.stored_checkpoint() == "1")
            assert consumer.state is ConsumerState.PROCESSING
        assert log.appends == [(1, 1, ("T-1",))]
        assert units_in(store) == ["T-1"]


async def test_a_child_killed_while_idle_is_started_again(world: World, tmp_path: Path) -> None:
    transcript = tmp_path / "transcript"
    async with world.consumer(scripted({}, transcript)) as (consumer, _):
        await until(lambda: transcript_actions(transcript) == ["initialize"])
        os.kill(child_pid(consumer), signal.SIGKILL)
        await until(lambda: transcript_actions(transcript) == ["initialize"] * 2)


@pytest.mark.parametrize("step", ["hang", ["close", 1], ["write", '{"action":"status","responseFor":"x"}\n']])
async def test_a_child_that_hangs_or_breaks_the_protocol_is_replaced(
    world: World, tmp_path: Path, step: Any, caplog: pytest.LogCaptureFixture
) -> None:
    world.put("r")
    transcript = tmp_path / "transcript"
    script = {"processRecords": [step, "hang"]}
    async with world.consumer(scripted(script, transcript), reply_timeout=3, kill_after=0.05):
        expected = ["initialize", "processRecords"] * 2
        await until(lambda: transcript_actions(transcript)[:4] == expected)
    assert events(caplog, "shard failed")[0]["shard"] == SHARD


async def test_a_poison_batch_is_reported_once_and_never_skipped(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = world.put("a", "b")
    transcript = tmp_path / "transcript"
    script = {"processRecords": [["stderr", "boom\n"], "die"]}
    async with world.consumer(scripted(script, transcript)):
        await until(lambda: transcript_actions(transcript).count("processRecords") >= 6)
    (report,) = events(caplog, "poison batch")
    assert report == {"shard": SHARD, "first": int(first), "last": int(second), "tries": 3, "stderr": "boom"}
    failures = events(caplog, "shard failed")
    assert len(failures) >= 5
    assert failures[0]["stderr"] == "boom"


async def test_a_checkpoint_is_written_and_answered_only_when_the_calls_emits_are_durable(
    world: World, tmp_path: Path
) -> None:
    world.put("a", "b")
    transcript = tmp_path / "transcript"
    script = {"processRecords": [["emit", delta("T-1")], "checkpoint last", "status"]}
    async with world.log(MemoryStore()) as inner:
        log = Log(inner)
        log.gate.clear()
        async with world.consumer(scripted(script, transcript), log=log):
            await until(lambda: log.waiting == 1)
            assert world.stored_checkpoint() == "TRIM_HORIZON"
            assert transcript_actions(transcript) == ["initialize", "processRecords"]
            log.gate.set()
            await until(lambda: world.stored_checkpoint() == "2")
            await until(lambda: transcript_actions(transcript)[-1] == "checkpoint")
            assert log.appends == [(1, 2, ("T-1",))]


async def test_a_checkpoint_of_an_earlier_record_is_answered_at_once_and_written_behind_the_append(
    world: World, tmp_path: Path
) -> None:
    world.put("a", "b")
    transcript = tmp_path / "transcript"
    script = {"processRecords": [["emit", delta("T-1")], "checkpoint first", ["emit", delta("T-2")], "status"]}
    async with world.log(MemoryStore()) as inner:
        log = Log(inner)
        log.gate.clear()
        async with world.consumer(scripted(script, transcript), log=log):
            await until(lambda: log.waiting == 1)
            assert json.loads(transcript.read_text().splitlines()[-1])["error"] is None
            assert world.stored_checkpoint() == "TRIM_HORIZON"
            log.gate.set()
            await until(lambda: world.stored_checkpoint() == "1")
            assert log.appends == [(1, 2, ("T-1", "T-2"))]


async def test_a_checkpoint_without_emits_is_written_at_once(world: World) -> None:
    world.put("a", "b")
    script = {"processRecords": ["checkpoint first", ["emit", delta("T-1")], "hang"]}
    async with world.log(MemoryStore()) as log, world.consumer(scripted(script), log=log, kill_after=0):
        await until(lambda: world.stored_checkpoint() == "1")


async def test_a_checkpoint_of_the_last_record_waits_for_what_may_be_emitted_after_it(
    world: World, tmp_path: Path
) -> None:
    world.put("a")
    transcript, died = tmp_path / "transcript", tmp_path / "died"
    steps = ["checkpoint last", ["emit", delta("T-1")], ["die once", str(died)], "status"]
    store = MemoryStore()
    async with world.log(store) as log, world.consumer(scripted({"processRecords": steps}, transcript), log=log):
        await until(lambda: world.stored_checkpoint() == "1")
        assert units_in(store) == ["T-1"], "the checkpoint is beyond what the log has"
    assert transcript_actions(transcript).count("processRecords") == 2


async def test_a_checkpoint_beyond_what_was_delivered_is_refused(world: World, tmp_path: Path) -> None:
    world.put("a")
    transcript = tmp_path / "transcript"
    beyond = ["write", '{"action":"checkpoint","sequenceNumber":"77"}\n']
    async with world.consumer(scripted({"processRecords": [beyond, "read", "status"]}, transcript)):
        await until(lambda: len(transcript_actions(transcript)) == 3)
        assert json.loads(transcript.read_text().splitlines()[2])["error"] == "IllegalArgumentException"
        assert world.stored_checkpoint() == "TRIM_HORIZON"


async def test_a_checkpoint_in_initialize_is_refused(world: World, tmp_path: Path) -> None:
    transcript = tmp_path / "transcript"
    async with world.consumer(
        scripted({"initialize": [["write", '{"action":"checkpoint"}\n'], "read", "status"]}, transcript)
    ):
        await until(lambda: len(transcript_actions(transcript)) == 2)
        assert json.loads(transcript.read_text().splitlines()[1])["error"] == "InvalidStateException"


async def test_records_delivered_again_are_recognised_and_new_ones_stand_alone(world: World, tmp_path: Path) -> None:
    """Plays a crash between append and checkpoint with a child that never checkpoints."""
    store, transcript = MemoryStore(), tmp_path / "transcript"
    world.put("a", "b")
    first = scripted({"processRecords": [["emit", delta("T-1")], "status"]})
    async with world.log(store) as log, world.consumer(first, log=log):
        await until(lambda: units_in(store) == ["T-1"])
    world.put("c")
    second = scripted({"processRecords": [["emit", delta("T-1")], ["emit", delta("T-2")], "status"]}, transcript)
    async with world.log(store) as inner:
        seen = Log(inner)
        async with world.consumer(second, log=seen):
            await until(lambda: len(seen.appends) == 1)
    assert units_in(store) == ["T-1", "T-2"]
    batches = [json.loads(line)["records"] for line in transcript.read_text().splitlines()[1:]]
    assert [[record["sequenceNumber"] for record in batch] for batch in batches] == [["1", "2"], ["3"]]
    assert seen.appends == [(3, 3, ("T-1", "T-2"))]


async def test_an_unavailable_log_is_tried_again(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.put("a")
    script = {"processRecords": [["emit", delta("T-1")], "checkpoint last", "status"]}
    async with world.log(MemoryStore()) as inner:
        log = Log(inner)
        log.errors = [LogUnavailableError("no answer")]
        async with world.consumer(scripted(script), log=log):
            await until(lambda: world.stored_checkpoint() == "1")
    assert len(log.appends) == 1
    assert len(events(caplog, "append put off")) == 1


async def test_a_fenced_log_ends_the_consumer_and_its_child(world: World, tmp_path: Path) -> None:
    world.put("a")
    script = {"processRecords": [["emit", delta("T-1")], "checkpoint last", "status"]}
    async with world.log(MemoryStore()) as inner:
        log = Log(inner)
        log.errors = [LogFencedError("another owner")]
        log.gate.clear()
        async with world.consumer(scripted(script), log=log) as (consumer, task):
            await until(lambda: log.waiting == 1)
            pid = child_pid(consumer)
            log.gate.set()
            with pytest.raises(LogFencedError):
                await asyncio.wait_for(asyncio.shield(task), LIMIT)
            assert not psutil.pid_exists(pid)
        assert world.stored_checkpoint() == "TRIM_HORIZON"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({"processRecords": [["emit", delta("T-1")], "checkpoint last", ["emit", delta("T-2")], "hang"]}, "emit first"),
        ({"initialize": [["emit", delta("T-1")], "status"]}, "emitted during initialize"),
    ],
)
async def test_emits_that_have_no_place_are_a_protocol_error(
    world: World, script: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.put("a")
    async with world.log(MemoryStore()) as log, world.consumer(scripted(script), log=log, kill_after=0):
        await until(lambda: bool(events(caplog, "shard failed")))
    assert message in str(events(caplog, "shard failed")[0]["error"])


async def test_a_broken_emit_line_fails_its_unit_and_nothing_else(world: World) -> None:
    world.put("a")
    broken = ["write", '{"action":"emit","deltas":[{"uow":"T-1","table":\n']
    undecodable = ["bytes", b'{"action":"emit","deltas":[{"uow":"T-3","table":"\xff"}]}\n'.hex()]
    script = {"processRecords": [broken, ["emit", delta("T-2")], undecodable, "checkpoint last", "status"]}
    async with world.log(MemoryStore()) as log:
        async with world.consumer(scripted(script), log=log):
            await until(lambda: world.stored_checkpoint() == "1")
        status = {unit.uow: unit.status for unit in log.state.units.values()}
        open_units = set(log.state.open)
    assert status["T-2"] is UnitStatus.IN_PROGRESS
    assert {"T-1", "T-3"} <= status.keys() | open_units
    assert all(status.get(name, UnitStatus.FAILED) is UnitStatus.FAILED for name in ("T-1", "T-3"))


async def test_emits_without_units_of_work_are_skipped_with_one_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.put("a")
    script = {"processRecords": [["emit", delta("T-1")], ["emit", delta("T-2")], "checkpoint last", "status"]}
    async with world.consumer(scripted(script)):
        await until(lambda: world.stored_checkpoint() == "1")
    (warning,) = [record for record in caplog.records if "deltas skipped" in record.getMessage()]
    assert warning.levelno == logging.WARNING


async def test_a_split_shard_ends_with_a_checkpoint(ending: World, double: KinesisDouble, tmp_path: Path) -> None:
    double.put(b"a")
    transcript = tmp_path / "transcript"
    script = {"shardEnded": [["write", '{"action":"checkpoint"}\n'], "read", "status"]}
    async with ending.consumer(scripted(script, transcript)) as (consumer, task):
        await until(lambda: transcript_actions(transcript) == ["initialize", "processRecords"])
        left, _ = double.split(SHARD)
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
        assert consumer.state is ConsumerState.COMPLETE
    assert transcript_actions(transcript)[2:] == ["shardEnded", "checkpoint"]
    assert ending.stored_checkpoint() == "SHARD_END"
    assert ending.stored_checkpoint(left) == "TRIM_HORIZON"


async def test_a_shard_end_without_checkpoint_is_an_error_and_tried_with_a_fresh_child(
    ending: World, double: KinesisDouble, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    transcript = tmp_path / "transcript"
    async with ending.consumer(scripted({}, transcript)):
        await until(lambda: transcript_actions(transcript) == ["initialize"])
        double.split(SHARD)
        await until(lambda: transcript_actions(transcript).count("shardEnded") >= 2)
    assert transcript_actions(transcript)[:4] == ["initialize", "shardEnded"] * 2
    assert "did not checkpoint at the shard's end" in str(events(caplog, "shard failed")[0]["error"])


async def test_a_lost_lease_is_told_and_not_released(world: World, tmp_path: Path) -> None:
    transcript = tmp_path / "transcript"
    async with world.consumer(scripted({}, transcript)) as (consumer, task):
        await until(lambda: transcript_actions(transcript) == ["initialize"])
        consumer.lose()
        await asyncio.wait_for(task, LIMIT)
    assert transcript_actions(transcript) == ["initialize", "leaseLost"]


async def test_a_stop_while_backing_off_needs_no_child(world: World) -> None:
    async with world.consumer(("no-such-program",), restart_backoff=100, restart_backoff_max=100) as (consumer, task):
        await until(lambda: consumer.state is ConsumerState.BACKING_OFF)
        consumer.stop()
        await asyncio.wait_for(task, LIMIT)


async def test_a_child_that_dies_before_its_first_checkpoint_at_latest_misses_nothing(
    world: World, tmp_path: Path
) -> None:
    transcript = tmp_path / "transcript"
    script = {"processRecords": [["die once", str(tmp_path / "died")], "status"]}
    world.latest = True
    async with world.consumer(scripted(script, transcript)):
        await until(lambda: transcript_actions(transcript) == ["initialize"])
        (sequence,) = world.put("a")
        await until(lambda: transcript_actions(transcript).count("processRecords") == 2)
    batches = [json.loads(line).get("records") for line in transcript.read_text().splitlines()]
    assert [batch[0]["sequenceNumber"] for batch in batches if batch] == [sequence] * 2


async def test_empty_batches_come_only_when_asked_for(world: World, tmp_path: Path) -> None:
    quiet, chatty = tmp_path / "quiet", tmp_path / "chatty"
    async with world.consumer(scripted({}, quiet)):
        await until(lambda: transcript_actions(quiet) == ["initialize"])
        world.put("a")
        await until(lambda: len(transcript_actions(quiet)) == 2)
    world.empty_batches = True
    async with world.consumer(scripted({}, chatty)):
        await until(lambda: len(transcript_actions(chatty)) > 3)
    assert [len(json.loads(line)["records"]) for line in quiet.read_text().splitlines()[1:]] == [1]


async def test_a_shard_whose_log_takes_nothing_is_stalled_and_its_child_does_not_hang(world: World) -> None:
    world.put("a")
    script = {"processRecords": [["emit", delta("T-1")], "checkpoint last", "status"]}
    async with world.log(MemoryStore()) as inner:
        log = Log(inner)
        log.gate.clear()
        async with world.consumer(scripted(script), log=log) as (consumer, _):
            await until(lambda: log.waiting == 1)
            await until(lambda: (stands := consumer.status().standstill) is not None and stands.seconds > 0.1)
            status = consumer.status()
            assert (status.silent, status.standstill and status.standstill.cause) == (
                None, "the log does not take what the child has answered",
            )  # fmt: skip
            log.gate.set()
            await until(lambda: world.stored_checkpoint() == "1")
            await until(lambda: (stands := consumer.status().standstill) is None or "log" not in stands.cause)
