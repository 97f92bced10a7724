"""The cases of KCL's multi-language protocol that concern children and checkpoints, and where each is tested.

====  ==========================================  ====================================================================
case  what                                        tests (paths are relative to ``tests/kainite``)
====  ==========================================  ====================================================================
1     each request and its status                 child/json_lines/test_dialect test_case_1…,
                                                  child/test_process test_case_1…
2     a status for another action                 child/json_lines/test_dialect test_case_2…,
                                                  child/test_process test_case_2…
3     a status that names none                    child/json_lines/test_dialect test_case_3…,
                                                  child/test_process test_case_3…
4     two checkpoints, then the status            child/json_lines/test_dialect test_case_4…,
                                                  child/test_process test_cases_4…
5     a checkpoint that cannot be stored          here,
                                                  child/test_process test_cases_4_and_5…
6     a checkpoint in initialize or leaseLost     here
7     no answer in time                           child/test_process test_case_7…
8     junk before the status                      child/json_lines/test_dialect test_case_8…,
                                                  child/test_process test_case_8…
9     the end before the status                   child/test_process test_case_9…
10    writing on a closed pipe                    child/test_process test_case_10…
11    a record without data                       child/json_lines/test_records test_nulls_are_written
12    partition keys beyond ASCII                 child/json_lines/test_records test_any_partition_key…,
                                                  test_real_children
13    the lease lost before initialize            here
14    output flooded after the end of input       child/test_process test_case_14…
21    the end of an empty shard                   here,
                                                  leases/holding/test_checkpoint_requests
22    SHARD_END by name                           here,
                                                  leases/holding/test_checkpoint_requests test_shard_end_by_name…
23    numbers out of range, and equal ones        here,
                                                  leases/holding/test_checkpoint_requests test_what_lies_outside…
24    a place inside an aggregate                 here,
                                                  leases/holding/test_checkpoint_requests test_a_record_inside…
25    a shard's end without a checkpoint          test_shard_consumer test_a_shard_end_without_checkpoint…
26    a merge                                     leases/shard_sync/test_create_leases test_a_merged_childs…,
                                                  test_shard_lifecycle
27    a split                                     leases/shard_sync/test_create_leases test_a_split_on_moto…,
                                                  test_shard_lifecycle
28    an aggregate that straddles the range       kinesis/test_aggregation test_an_aggregate_that_reaches_beyond…
====  ==========================================  ====================================================================

The defect of KCL issue 211 (the last record's number again at the shard's end) is in
leases/holding/test_checkpoint_requests, test_at_the_end…; the first form of the protocol in
child/json_lines/test_messages, child/json_lines/test_dialect and test_real_children.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kainite.base.checkpoint import SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import KainiteError, LeaseLostError, LeaseTableError, LeaseTableUnavailableError
from kainite.base.record import RawRecord
from kainite.child.events import Action, CheckpointRequested
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.read.record_batch import make_batch
from kainite.leases.keeper import HeldLease
from kainite.leases.table.lease import Lease
from kainite.worker.consumer_states import ConsumerState
from kainite.worker.shard_call import ShardCalls
from support.daemon_world import LIMIT, World, scripted, transcript_actions
from support.kinesis_double import KinesisDouble
from support.kpl import User, aggregate
from support.waiting import until

SHARD = "shardId-000000000000"
ASK = ["write", '{"action":"checkpoint"}\n']


def ask(sequence: str, sub: int | None = None) -> list[str]:
    """Returns a scripted child's step that asks for a checkpoint at a place."""
    request = {"action": "checkpoint", "sequenceNumber": sequence, "subSequenceNumber": sub}
    return ["write", json.dumps(request) + "\n"]


def replies(transcript: Path) -> list[str | None]:
    """Returns the errors of all checkpoint replies."""
    lines = [json.loads(line) for line in transcript.read_text().splitlines()]
    return [line["error"] for line in lines if line["action"] == "checkpoint"]


class Table:
    """Stores checkpoints of one lease, or fails."""

    def __init__(self) -> None:
        self.error: KainiteError | None = None
        self.stored: list[Checkpoint] = []

    async def checkpoint(self, lease: HeldLease, checkpoint: Checkpoint) -> None:
        if self.error:
            raise self.error
        self.stored.append(checkpoint)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (LeaseLostError("gone"), "ShutdownException"),
        (LeaseTableUnavailableError("throttled"), "ThrottlingException"),
        (LeaseTableError("no such table"), "InvalidStateException"),
    ],
)
async def test_case_5_a_checkpoint_that_cannot_be_stored_is_answered_with_the_error_and_the_call_goes_on(
    error: KainiteError, told: str
) -> None:
    table = Table()
    calls = ShardCalls(HeldLease(Lease(SHARD, checkpoint=TRIM_HORIZON), 0.0), table, None)
    records = [RawRecord("7", "k", "")]
    await calls.begin(Action.PROCESS_RECORDS, make_batch(records, 0, render_process_records))
    table.error = error
    assert await calls.answer(CheckpointRequested(None)) == told
    table.error = None
    assert await calls.answer(CheckpointRequested(None)) is None
    await calls.finish()
    assert table.stored == [Checkpoint("7")]


async def test_case_6_a_checkpoint_in_initialize_or_lease_lost_is_refused_and_the_wait_goes_on(
    ending: World, double: KinesisDouble, tmp_path: Path
) -> None:
    double.put(b"a")
    transcript = tmp_path / "transcript"
    script = {"initialize": [ASK, "read", "status"], "leaseLost": [ASK, "read", "status"]}
    async with ending.consumer(scripted(script, transcript)) as (consumer, task):
        await until(lambda: "processRecords" in transcript_actions(transcript))
        consumer.lose()
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
    assert transcript_actions(transcript) == ["initialize", "checkpoint", "processRecords", "leaseLost", "checkpoint"]
    assert replies(transcript) == ["InvalidStateException"] * 2


@pytest.mark.parametrize("how", ["lose", "stop"])
async def test_case_13_a_lease_lost_before_initialize_starts_no_child(how: str, ending: World, tmp_path: Path) -> None:
    transcript = tmp_path / "transcript"
    async with ending.consumer(scripted({}, transcript)) as (consumer, task):
        getattr(consumer, how)()  # the consumer's task has not run yet
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
        assert consumer.state is ConsumerState.COMPLETE
    assert not transcript.exists()


async def test_case_21_an_empty_shards_end_is_checkpointed_as_shard_end(
    ending: World, double: KinesisDouble, tmp_path: Path
) -> None:
    script = {"shardEnded": [ASK, "read", "status"]}
    async with ending.consumer(scripted(script, tmp_path / "transcript")) as (consumer, task):
        await until(lambda: consumer.state is ConsumerState.PROCESSING)
        double.split(SHARD)
        await asyncio.wait_for(asyncio.shield(task), LIMIT)
    assert ending.stored_checkpoint() == str(SHARD_END)
    assert replies(tmp_path / "transcript") == [None]


async def test_cases_22_and_23_what_a_child_may_ask_for_while_it_processes(
    ending: World, double: KinesisDouble, tmp_path: Path
) -> None:
    first, last = double.put(b"a"), double.put(b"b")
    wishes: list[Any] = [str(last), str(last), str(first), str(last + 1), "SHARD_END", "TRIM_HORIZON", "-1", "x", ""]
    steps = [step for wish in wishes for step in (ask(wish), "read")]
    transcript = tmp_path / "transcript"
    async with ending.consumer(scripted({"processRecords": [*steps, "status"]}, transcript)):
        await until(lambda: len(transcript_actions(transcript)) == 2 + len(wishes))
    assert replies(transcript) == [None, None] + ["IllegalArgumentException"] * (len(wishes) - 2)
    assert ending.stored_checkpoint() == str(last)


async def test_case_24_after_a_checkpoint_inside_an_aggregate_only_the_later_records_come_again(
    ending: World, double: KinesisDouble, tmp_path: Path
) -> None:
    sequence = str(double.put(aggregate([User(b"a"), User(b"b"), User(b"c")])))
    first, second = tmp_path / "first", tmp_path / "second"
    async with ending.consumer(scripted({"processRecords": [ask(sequence, 1), "read", "hang"]}, first), kill_after=0):
        await until(lambda: first.exists() and replies(first) == [None])
    async with ending.consumer(scripted({}, second)):
        await until(lambda: "processRecords" in transcript_actions(second))
    begun, call = (json.loads(line) for line in second.read_text().splitlines())
    assert (begun["sequenceNumber"], begun["subSequenceNumber"]) == (sequence, 1)
    assert [(r["sequenceNumber"], r["subSequenceNumber"], r["data"]) for r in call["records"]] == [
        (sequence, 2, "Yw==")
    ]
