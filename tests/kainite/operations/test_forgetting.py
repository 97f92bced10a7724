"""A stream that the settings name no more is forgotten: what is deleted, what is refused, what the log hears."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.kinesis.shards import Shard
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.format.entry import OperationResult
from kainite.log.state.loading import load_state
from kainite.operations import forgetting
from kainite.operations.carrying_out import Operations
from kainite.operations.checkpoints import observe
from kainite.operations.forgetting import delete_leases, preview_forgetting
from kainite.operations.operation import ForgetStream, OperationOutcome
from kainite.settings import load
from kainite.store.memory import MemoryStore
from support.lease_commands import LeaseCommands
from support.log_cli import LogWorld
from support.upkept_log import OwnedLog, P
from support.waiting import until

OURS, OTHER, ANEW = "1:ours:1", "1:other:1", "1:ours:2"
NAMED = (OURS,)


@pytest.fixture
def filled(table: LeaseTable) -> LeaseTable:
    for stream in (OURS, OTHER):
        for number in (0, 1):
            lease = Lease.for_shard(Shard(f"shardId-{number}").within(stream), SHARD_END)
            table.put_new(lease if number else replace(lease, checkpoint=Checkpoint("17")))
    return table


def forget(table: LeaseTable, stream: str, named: tuple[str, ...] = NAMED) -> OperationOutcome:
    return delete_leases(table, ForgetStream(stream), named, 0.2)[1]


def streams(table: LeaseTable) -> list[str]:
    return sorted(lease.stream for lease in table.scan())


@pytest.mark.parametrize("asked", ["other", OTHER])
def test_its_leases_go_and_those_of_others_stay(filled: LeaseTable, asked: str) -> None:
    does = preview_forgetting(filled, ForgetStream(asked), NAMED).does
    assert does.startswith(f"delete 2 leases of stream {OTHER}; 1 of them are not read to their end")
    assert forget(filled, asked).sentence == f"2 leases of stream {OTHER} are deleted"
    assert streams(filled) == [OURS, OURS]
    assert forget(filled, asked).result is (OperationResult.DONE if asked == OTHER else OperationResult.REFUSED)


@pytest.mark.parametrize(
    ("asked", "named", "refusal"),
    [
        ("ours", NAMED, "the settings name stream 1:ours:1"),
        (OURS, NAMED, "the settings name stream 1:ours:1"),
        ("unknown", NAMED, "stream unknown has no leases"),
        ("ours", ("1:orders:1",), "stream ours may be 1:ours:1 or 1:ours:2: name one"),
        ("", NAMED, "stream  has no leases"),
        ("other", ("",), "this application reads one stream"),
    ],
)
def test_what_is_no_former_stream_is_refused(
    filled: LeaseTable, asked: str, named: tuple[str, ...], refusal: str
) -> None:
    filled.put_new(Lease.for_shard(Shard("shardId-0").within(ANEW), SHARD_END))
    if named == NAMED:
        named = (OURS, ANEW)
    before = filled.scan()
    outcome, preview = forget(filled, asked, named), preview_forgetting(filled, ForgetStream(asked), named)
    assert (outcome.result, outcome.sentence[: len(refusal)]) == (OperationResult.REFUSED, refusal)
    assert (preview.does, preview.asks) == (f"nothing: {outcome.sentence}", False)
    assert filled.scan() == before


def test_a_stream_made_anew_under_its_name_is_another_one(filled: LeaseTable) -> None:
    assert forget(filled, "ours", (ANEW,)).result is OperationResult.DONE
    assert streams(filled) == [OTHER, OTHER]


def test_a_stream_that_a_worker_reads_is_refused(world: LeaseCommands, filled: LeaseTable) -> None:
    lease: Any = filled.take(next(one for one in filled.scan() if one.key == f"{OTHER}:shardId-0"), "w")
    with world.renewing(lease):
        outcome = delete_leases(filled, ForgetStream("other"), NAMED, 30.0)[1]
    assert outcome.sentence.startswith(f"leases of stream {OTHER} are renewed by w")
    assert len(streams(filled)) == 4
    assert forget(filled, "other").result is OperationResult.DONE, "the worker is dead"


def test_a_lease_that_is_taken_after_the_look_stays(filled: LeaseTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(table: LeaseTable, *limits: float) -> Any:
        seen = observe(table, *limits)
        assert table.take(next(one for one in seen[0] if one.key == f"{OTHER}:shardId-0"), "w")
        return seen

    monkeypatch.setattr(forgetting, "observe", taken)
    outcome = forget(filled, "other")
    assert (outcome.result, outcome.refused) == (OperationResult.REFUSED, 1)
    assert streams(filled) == [OTHER, OURS, OURS]


async def test_the_log_awaits_it_no_more_and_the_history_says_who_forgot_it(
    world: LeaseCommands, log_world: LogWorld
) -> None:
    log_world.properties.write_text(
        f"{log_world.properties.read_text()}tableName={world.table.name}\nfailoverTimeMillis=1000\nexecutableName=true\n"
        "streamNames=arn:aws:kinesis:us-east-1:123456789012:stream/ours\nstream.ours.creationEpoch=1\n"
    )
    operations = Operations(load(log_world.properties, needs=("applicationName",)))
    await log_world.owner.begin(0, OTHER)
    for said in ("the log awaits it no more", "the log did not await it"):
        outcome = await asyncio.to_thread(operations.carry_out, ForgetStream(OTHER), "ann", "moved")
        assert outcome.sentence == f"0 leases of stream {OTHER} are deleted; {said}"
    await until(lambda: not log_world.store.read_requests("0"))
    state = load_state(log_world.store, "0")
    assert state.awaited == set()
    assert [(one.what, one.about, one.who, one.result) for one in state.operations.all()] == [
        ("forget a stream", OTHER, "ann", "done")
    ] * 2


async def test_a_plain_stream_that_was_awaited_before_it_was_plain_is_awaited_no_more_and_keeps_its_leases(
    world: LeaseCommands, log_world: LogWorld, filled: LeaseTable
) -> None:
    log_world.properties.write_text(
        f"{log_world.properties.read_text()}tableName={world.table.name}\nfailoverTimeMillis=1000\nexecutableName=true\n"
        "streamNames=arn:aws:kinesis:us-east-1:123456789012:stream/ours,arn:aws:kinesis:us-east-1:123456789012:stream/b\n"
        "stream.ours.creationEpoch=1\nstream.b.creationEpoch=1\nstream.b.unitsOfWork=false\n"
    )
    operations, stream = Operations(load(log_world.properties, needs=("applicationName",))), "123456789012:b:1"
    await log_world.owner.begin(0, stream)  # by a daemon whose file did not say yet that it is plain
    before = world.table.scan()
    assert operations.preview(ForgetStream("b")).asks
    for asked in ("b", stream):
        outcome = await asyncio.to_thread(operations.carry_out, ForgetStream(asked), "ann")
        assert outcome.result is OperationResult.DONE, outcome.sentence
    assert (log_world.owner.state.awaited, world.table.scan()) == (set(), before)
    outcome = await asyncio.to_thread(operations.carry_out, ForgetStream("123456789012:ours:1"), "ann")
    assert outcome.result is OperationResult.REFUSED, "units wait for this one"


async def test_a_request_whose_answer_was_lost_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    log = OwnedLog(MemoryStore())
    request = log.store.put_request(P, {"action": "forget-stream", "stream": OTHER})
    with monkeypatch.context() as lost:
        lost.setattr(log.store, "answer_request", lambda *_: None)
        await log.run()
    await log.run()
    assert log.store.take_answer(P, request) == {"result": "ok", "message": "done before"}
