"""Tables of (what the child does, what the log and the lease answer) to (what is appended, granted, refused, in order).

Each row plays the calls of one child, or of two after one another. A call is what the child is asked, the records that
it is given, and what it then does:

===================  ====================================================================================
``emit T-1``         emits a delta of the unit T-1
``reject 2``         does not process record 2
``checkpoint``       asks for a checkpoint without a sequence number
``checkpoint 2``     asks for a checkpoint at record 2
``checkpoint 2.1``   asks for a checkpoint at record 2 and sub-sequence number 1
``die``              fails; a new child is then initialized
===================  ====================================================================================

The journal holds what the log and the lease were asked, in order, and the replies that the child got:

===================  ====================================================================================
``append 1-3 T-1``   the log was asked to append the records 1 to 3 and fragments of T-1; ``!`` when it refused
``write 3``          the lease was asked to store the checkpoint; ``!`` when it refused
``ok``, or a name    the reply to a checkpoint request
===================  ====================================================================================
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, TRIM_HORIZON, Checkpoint
from kainite.base.errors import (
    ChildProtocolError,
    KainiteError,
    LeaseLostError,
    LeaseTableError,
    LeaseTableUnavailableError,
    LogFencedError,
    LogUnavailableError,
)
from kainite.base.position import Position
from kainite.child.events import Action, CheckpointRequested, Rejected, Span
from kainite.kinesis.read.record_batch import RecordBatch
from kainite.leases.keeper import HeldLease
from kainite.leases.table.lease import Lease
from kainite.log.client import ReadingReport
from kainite.uow.admission import Admission
from kainite.uow.fragment import Fragment
from kainite.uow.signing import Signing
from kainite.worker import shard_call
from kainite.worker.emit_budget import EmitBudget
from kainite.worker.heavy_work import OFF_LOOP_BYTES
from kainite.worker.shard_call import ShardCalls
from kainite.worker.units_of_work import UnitsOfWork
from support.daemon_world import delta

SHARD = "shardId-000000000000"


@dataclass
class Journal:
    """The log and the lease table as one child's calls see them; both answer as they are told."""

    reached: int | None = None
    log_answers: list[KainiteError] = field(default_factory=list)
    lease_answers: list[KainiteError] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    begun_ms: int | None = None
    hold_ms: int | None = None
    afters: list[Position | None] = field(default_factory=list)

    async def position(self, shard_id: str) -> Position | None:
        return None if self.reached is None else Position(self.reached)

    async def begin(self, at_ms: int, stream: str = "") -> int:
        self._answer(f"begin {at_ms}", self.log_answers)
        return self.begun_ms or at_ms

    async def append(
        self,
        shard_id: str,
        first: Position,
        last: Position,
        fragments: Sequence[Fragment],
        after: Position | None = None,
    ) -> None:
        self.afters.append(after)
        units = " ".join(fragment.uow for fragment in fragments)
        self._answer(f"append {first.sequence}-{last.sequence} {units}".strip(), self.log_answers)
        self.reached = last.sequence
        self.texts += [reject.cause for fragment in fragments for reject in fragment.rejects]

    def report(self, report: ReadingReport) -> None:
        pass

    async def checkpoint(self, lease: HeldLease, checkpoint: Checkpoint) -> None:
        self._answer(f"write {checkpoint}", self.lease_answers)
        lease.lease = replace(lease.lease, checkpoint=checkpoint)

    def _answer(self, asked: str, errors: list[KainiteError]) -> None:
        self.entries.append(f"{asked} !" if errors else asked)
        if errors:
            raise errors.pop(0)


@dataclass(frozen=True)
class Call:
    """One action that a child is asked, with the records from ``first`` to ``last``, and what the child does."""

    action: Action
    steps: tuple[str, ...] = ()
    first: int | None = None
    last: int | None = None

    @property
    def batch(self) -> RecordBatch | None:
        if self.first is None or self.last is None:
            return None
        return RecordBatch((), self.last - self.first + 1, Position(self.first), Position(self.last), 0, 0)


def initialize(*steps: str) -> Call:
    return Call(Action.INITIALIZE, steps)


def records(first: int, last: int, *steps: str) -> Call:
    return Call(Action.PROCESS_RECORDS, steps, first, last)


def empty_batch(*steps: str) -> Call:
    return Call(Action.PROCESS_RECORDS, steps)


def shutdown(*steps: str) -> Call:
    return Call(Action.SHUTDOWN_REQUESTED, steps)


def lease_lost(*steps: str) -> Call:
    return Call(Action.LEASE_LOST, steps)


def shard_ended(*steps: str) -> Call:
    return Call(Action.SHARD_ENDED, steps)


async def play(journal: Journal, *calls: Call, collecting: bool = True, stored: Checkpoint = TRIM_HORIZON) -> list[str]:
    lease = HeldLease(Lease(SHARD, "w", checkpoint=stored), 0.0)
    units = UnitsOfWork(journal, Admission(Signing(None))) if collecting else None
    shard_calls = ShardCalls(lease, journal, units)
    await shard_calls.begin(Action.INITIALIZE)
    await shard_calls.finish()
    for call in calls:
        await shard_calls.begin(call.action, call.batch)
        for step in call.steps:
            if step == "die":
                shard_calls.abandon()
                await shard_calls.begin(Action.INITIALIZE)
                break
            await do(step, shard_calls, journal)
        await shard_calls.finish()
    return journal.entries


async def do(step: str, calls: ShardCalls, journal: Journal) -> None:
    match step.split():
        case ["emit", unit]:
            assert calls.emitted(json.dumps({"action": "emit", **delta(unit)}).encode()) is None
        case ["reject", number]:
            place = Position(int(number))
            calls.rejected(Rejected(Span(place, place), "not good", b"payload"))
        case ["checkpoint", *place]:
            sequence, _, sub = place[0].partition(".") if place else (None, "", "")
            reply = await calls.answer(CheckpointRequested(sequence, int(sub) if sub else None))
            journal.entries.append(reply or "ok")
        case _:
            raise ValueError(step)


def events(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, object]]:
    return [record.kainite_fields for record in caplog.records if record.getMessage() == name]  # type: ignore[attr-defined]


ILLEGAL, INVALID, SHUT_DOWN = "IllegalArgumentException", "InvalidStateException", "ShutdownException"
CHECKPOINTS = {
    "a call that emits nothing appends nothing": ([records(1, 3)], []),
    "all emits of a call are one append": (
        [records(1, 3, "emit T-1", "emit T-2", "emit T-1"), records(4, 4, "emit T-2")],
        ["append 1-3 T-1 T-2", "append 4-4 T-2"],
    ),
    "last record, nothing emitted: granted at once, written at the call's end": (
        [records(1, 3, "checkpoint")],
        ["ok", "write 3"],
    ),
    "last record by its number, nothing emitted": ([records(1, 3, "checkpoint 3")], ["ok", "write 3"]),
    "last record, emitted before: appended, written, then granted": (
        [records(1, 3, "emit T-1", "checkpoint")],
        ["append 1-3 T-1", "write 3", "ok"],
    ),
    "last record, emitted after: the checkpoint waits for the append": (
        [records(1, 3, "checkpoint", "emit T-1")],
        ["ok", "append 1-3 T-1", "write 3"],
    ),
    "last record twice: the append is forced once": (
        [records(1, 3, "emit T-1", "checkpoint", "checkpoint")],
        ["append 1-3 T-1", "write 3", "ok", "ok"],
    ),
    "a record between, nothing emitted: written at once, then granted": (
        [records(1, 3, "checkpoint 2")],
        ["write 2", "ok"],
    ),
    "a record between, emitted before: granted at once, written behind the append": (
        [records(1, 3, "emit T-1", "checkpoint 2")],
        ["ok", "append 1-3 T-1", "write 2"],
    ),
    "a record between, emitted after": (
        [records(1, 3, "checkpoint 2", "emit T-1")],
        ["write 2", "ok", "append 1-3 T-1"],
    ),
    "between, then more emits, then the last record: what is owed goes with it": (
        [records(1, 3, "emit T-1", "checkpoint 2", "emit T-2", "checkpoint")],
        ["ok", "append 1-3 T-1 T-2", "write 3", "ok"],
    ),
    "two records between: the later one is owed": (
        [records(1, 4, "emit T-1", "checkpoint 2", "checkpoint 3")],
        ["ok", "ok", "append 1-4 T-1", "write 3"],
    ),
    "what is owed counts as stored: an earlier record is refused": (
        [records(1, 4, "emit T-1", "checkpoint 3", "checkpoint 2")],
        ["ok", ILLEGAL, "append 1-4 T-1", "write 3"],
    ),
    "an earlier call's record: written at once, though emits are pending": (
        [records(1, 2, "emit T-1"), records(3, 4, "emit T-2", "checkpoint 2")],
        ["append 1-2 T-1", "write 2", "ok", "append 3-4 T-2"],
    ),
    "an aggregate's record between": (
        [records(1, 3, "emit T-1", "checkpoint 2.1")],
        ["ok", "append 1-3 T-1", "write 2.1"],
    ),
    "beyond what was delivered": ([records(1, 3, "checkpoint 4")], [ILLEGAL]),
    "before what is stored": ([records(1, 3, "checkpoint 2", "checkpoint 1")], ["write 2", "ok", ILLEGAL]),
    "what is stored already: nothing is written": (
        [records(1, 3, "checkpoint 2", "checkpoint 2")],
        ["write 2", "ok", "ok"],
    ),
    "no number at all": ([records(1, 3, "checkpoint x")], [ILLEGAL]),
    "an empty batch: the last record delivered": (
        [records(1, 3, "emit T-1"), empty_batch("checkpoint")],
        ["append 1-3 T-1", "write 3", "ok"],
    ),
    "an empty batch before any record: nothing to store": ([empty_batch("checkpoint")], ["ok"]),
    "initialize has no checkpointer": ([initialize("checkpoint")], [INVALID]),
    "leaseLost has no checkpointer": ([records(1, 3), lease_lost("checkpoint")], [INVALID]),
    "shutdownRequested: the last record delivered": (
        [records(1, 3, "emit T-1"), shutdown("checkpoint")],
        ["append 1-3 T-1", "write 3", "ok"],
    ),
    "shardEnded: the shard's end": (
        [records(1, 3, "emit T-1"), shard_ended("checkpoint")],
        ["append 1-3 T-1", "write SHARD_END", "ok"],
    ),
    "shardEnded with the last record's number: the shard's end too": (
        [records(1, 3, "checkpoint"), shard_ended("checkpoint 3")],
        ["ok", "write 3", "write SHARD_END", "ok"],
    ),
    "a child that dies before the append leaves nothing": (
        [records(1, 3, "emit T-1", "die"), records(1, 3, "emit T-1")],
        ["append 1-3 T-1"],
    ),
    "a child that dies takes with it what is owed": (
        [records(1, 3, "checkpoint", "die"), records(1, 3)],
        ["ok"],
    ),
    "a child that dies after a forced append: its emits are discarded the next time": (
        [records(1, 3, "emit T-1", "checkpoint", "die"), records(1, 3, "emit T-1", "checkpoint")],
        ["append 1-3 T-1", "write 3", "ok", "ok"],
    ),
    "another child has been delivered nothing": (
        [records(1, 3, "die"), shutdown("checkpoint")],
        ["ok"],
    ),
    "a rejected message is appended with the call": (
        [records(1, 3, "emit T-1", "reject 2")],
        ["append 1-3 T-1 invalid:shardId-000000000000:2"],
    ),
    "a rejected message alone is appended, too": (
        [records(1, 3, "reject 2", "checkpoint")],
        ["append 1-3 invalid:shardId-000000000000:2", "write 3", "ok"],
    ),
}


@pytest.mark.parametrize(("calls", "expected"), CHECKPOINTS.values(), ids=CHECKPOINTS.keys())
async def test_what_is_appended_and_checkpointed_in_which_order(calls: list[Call], expected: list[str]) -> None:
    assert await play(Journal(), *calls) == expected


REDELIVERED = {
    "emits are discarded, the checkpoint is written at once": (
        [records(1, 3, "emit T-1", "checkpoint")],
        ["write 3", "ok"],
    ),
    "a record between is written at once": ([records(1, 3, "emit T-1", "checkpoint 2")], ["write 2", "ok"]),
    "emits after the last record's checkpoint are no protocol error": (
        [records(1, 3, "checkpoint", "emit T-1")],
        ["write 3", "ok"],
    ),
    "rejections were reported before": ([records(1, 3, "reject 2")], []),
    "the records after it are new": (
        [records(1, 3, "emit T-1"), records(4, 5, "emit T-2", "checkpoint")],
        ["append 4-5 T-2", "write 5", "ok"],
    ),
}


@pytest.mark.parametrize(("calls", "expected"), REDELIVERED.values(), ids=REDELIVERED.keys())
async def test_records_that_the_log_holds_already(calls: list[Call], expected: list[str]) -> None:
    assert await play(Journal(reached=3), *calls) == expected


WITHOUT_UNITS = {
    "the last record is written at once": ([records(1, 3, "emit T-1", "checkpoint")], ["write 3", "ok"]),
    "emits are allowed anywhere": (
        [initialize("emit T-1"), records(1, 3, "checkpoint", "emit T-1")],
        ["write 3", "ok"],
    ),
    "a rejected message is only reported": ([records(1, 3, "reject 2")], []),
}


@pytest.mark.parametrize(("calls", "expected"), WITHOUT_UNITS.values(), ids=WITHOUT_UNITS.keys())
async def test_units_of_work_disabled(calls: list[Call], expected: list[str]) -> None:
    assert await play(Journal(), *calls, collecting=False) == expected


NO_ANSWER = LogUnavailableError("no answer")
LOST, THROTTLED, MISSING = LeaseLostError("lost"), LeaseTableUnavailableError("later"), LeaseTableError("no table")
LEASE_ANSWERS = {
    "lease lost": ([LOST], ["write 2 !", SHUT_DOWN]),
    "throttled": ([THROTTLED], ["write 2 !", "ThrottlingException"]),
    "no table": ([MISSING], ["write 2 !", INVALID]),
    "stored": ([], ["write 2", "ok"]),
}


@pytest.mark.parametrize(("answers", "expected"), LEASE_ANSWERS.values(), ids=LEASE_ANSWERS.keys())
async def test_what_the_child_is_told_when_the_lease_is_not_written(
    answers: list[KainiteError], expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert await play(Journal(lease_answers=[*answers]), records(1, 3, "checkpoint 2")) == expected
    assert len(events(caplog, "checkpoint not written")) == len(answers)


UNWRITTEN = {
    "a forced append stays, and the next checkpoint makes up for the write": (
        [records(1, 3, "emit T-1", "checkpoint", "checkpoint")],
        ["append 1-3 T-1", "write 3 !", "ThrottlingException", "write 3", "ok"],
    ),
    "an owed checkpoint stays owed until the next call ends": (
        [records(1, 3, "checkpoint"), records(4, 5)],
        ["ok", "write 3 !", "write 3"],
    ),
    "a later checkpoint pays what is owed": (
        [records(1, 3, "checkpoint"), records(4, 5, "checkpoint 4"), records(6, 6)],
        ["ok", "write 3 !", "write 4", "ok"],
    ),
}


@pytest.mark.parametrize(("calls", "expected"), UNWRITTEN.values(), ids=UNWRITTEN.keys())
async def test_a_checkpoint_that_could_not_be_written(calls: list[Call], expected: list[str]) -> None:
    assert await play(Journal(lease_answers=[THROTTLED]), *calls) == expected


async def test_an_unavailable_log_is_tried_again_with_the_same_fragments(caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(log_answers=[NO_ANSWER, NO_ANSWER])
    assert await play(journal, records(1, 3, "emit T-1", "checkpoint")) == [
        "append 1-3 T-1 !",
        "append 1-3 T-1 !",
        "append 1-3 T-1",
        "write 3",
        "ok",
    ]
    assert [told["times"] for told in events(caplog, "append put off")] == [1]  # the second one within the minute


async def test_a_fenced_log_ends_the_calls_before_any_checkpoint() -> None:
    journal = Journal(log_answers=[LogFencedError("another owner")])
    with pytest.raises(LogFencedError):
        await play(journal, records(1, 3, "emit T-1", "checkpoint"))
    assert journal.entries == ["append 1-3 T-1 !"]


FORBIDDEN = {
    "in initialize": ([initialize("emit T-1")], "emitted during initialize"),
    "in an empty batch": ([empty_batch("emit T-1")], "emitted during processRecords"),
    "in shutdownRequested": ([records(1, 3), shutdown("emit T-1")], "emitted during shutdownRequested"),
    "in leaseLost": ([lease_lost("emit T-1")], "emitted during leaseLost"),
    "in shardEnded": ([shard_ended("emit T-1")], "emitted during shardEnded"),
    "after a forced append": ([records(1, 3, "emit T-1", "checkpoint", "emit T-2")], "emit first, then checkpoint"),
}


@pytest.mark.parametrize(("calls", "message"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
async def test_emits_that_are_a_protocol_error(calls: list[Call], message: str) -> None:
    with pytest.raises(ChildProtocolError, match=message):
        await play(Journal(), *calls)


async def test_each_rejection_is_logged_and_a_failed_unit_under_its_own_place(caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal()
    await play(journal, records(1, 400, *(f"reject {number}" for number in range(1, 301))))
    assert [fields["first"] for fields in events(caplog, "message rejected")] == [str(n) for n in range(1, 301)]
    assert journal.entries == [" ".join(["append 1-400", *(f"invalid:{SHARD}:{number}" for number in range(1, 21))])]
    assert journal.texts[0] == "record 1: not good"


@pytest.mark.parametrize("collecting", [True, False])
async def test_a_rejection_is_reported_once_however_often_its_record_is_delivered(
    collecting: bool, caplog: pytest.LogCaptureFixture
) -> None:
    twice = records(1, 3, "reject 2", "die")
    await play(Journal(), twice, twice, records(1, 3, "reject 2"), records(4, 4, "reject 4"), collecting=collecting)
    assert [fields["first"] for fields in events(caplog, "message rejected")] == ["2", "4"]


async def test_what_is_rejected_again_in_a_call_that_was_dropped_is_still_appended() -> None:
    journal = Journal()
    await play(journal, records(1, 3, "reject 2", "die"), records(1, 3, "reject 2"))
    assert journal.entries == [f"append 1-3 invalid:{SHARD}:2"]


async def test_skipped_emits_are_warned_of_once_a_child(caplog: pytest.LogCaptureFixture) -> None:
    one_child = records(1, 3, "emit T-1", "emit T-2", "die")
    await play(Journal(), one_child, one_child, collecting=False)
    warnings = [record for record in caplog.records if "deltas skipped" in record.getMessage()]
    assert [warning.levelno for warning in warnings] == [logging.WARNING] * 2


async def test_a_request_where_no_checkpoint_is_possible_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    await play(Journal(), lease_lost("checkpoint"))
    assert not events(caplog, "checkpoint refused")
    await play(Journal(), records(1, 3, "checkpoint 9"))
    assert len(events(caplog, "checkpoint refused")) == 1


def emit(unit: str, size: int = 0) -> bytes:
    return json.dumps({"action": "emit", **delta(unit)}).encode() + b" " * size


async def test_an_append_names_the_position_that_the_log_had_before_the_call() -> None:
    journal = Journal()
    lease = HeldLease(Lease(SHARD, "w", checkpoint=TRIM_HORIZON), 0.0)
    calls = ShardCalls(lease, journal, UnitsOfWork(journal, Admission(Signing(None))))
    for first in (1, 4):
        await calls.begin(Action.PROCESS_RECORDS, records(first, first + 2).batch)
        assert calls.emitted(emit(f"T-{first}", 10)) is None
        await calls.finish()
    assert journal.afters == [None, Position(3)]


async def test_a_line_waits_until_the_lines_of_other_shards_are_durable_or_dropped() -> None:
    budget, journal = EmitBudget(1_000), Journal()
    calls = [
        ShardCalls(
            HeldLease(Lease(SHARD, "w", checkpoint=TRIM_HORIZON), 0.0),
            journal,
            UnitsOfWork(journal, Admission(Signing(None)), room=budget.share()),
        )
        for _ in range(3)
    ]
    for each in calls:
        await each.begin(Action.PROCESS_RECORDS, records(1, 3).batch)
    first, second, third = calls
    assert first.emitted(emit("T-1", 2_000)) is None
    waiting = [
        asyncio.ensure_future(each.emitted(emit(unit)) or none()) for each, unit in ((second, "T-2"), (third, "T-3"))
    ]
    await asyncio.sleep(0)
    assert not any(each.done() for each in waiting)
    await first.finish()
    await asyncio.gather(*waiting)
    second.abandon()
    await third.finish()
    assert budget.held == 0
    assert journal.entries == ["append 1-3 T-1", "append 1-3 T-3"]


async def test_a_call_that_waits_for_the_log_is_no_reason_to_hold_more() -> None:
    class Full(Journal):
        async def append(self, *append: Any) -> None:
            await room.wait()
            await super().append(*append)

    room, budget, journal = asyncio.Event(), EmitBudget(1_000, patience=0.01), Full()
    first, second = (
        ShardCalls(
            HeldLease(Lease(SHARD, "w", checkpoint=TRIM_HORIZON), 0.0),
            journal,
            UnitsOfWork(journal, Admission(Signing(None)), room=budget.share()),
        )
        for _ in range(2)
    )
    for each in (first, second):
        await each.begin(Action.PROCESS_RECORDS, records(1, 3).batch)
    assert first.emitted(emit("T-1", 2_000)) is None
    finishing = asyncio.create_task(first.finish())
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(second.emitted(emit("T-2")) or none())
    assert not (await asyncio.wait([waiting], timeout=0.2))[0]
    room.set()
    await asyncio.wait_for(asyncio.gather(finishing, waiting), 30)
    second.abandon()
    assert budget.held == 0


async def none() -> None:
    pass


async def test_a_long_line_is_admitted_off_the_loop_and_appended_with_its_call() -> None:
    threads: list[int] = []

    class Watched(Admission):
        def feed(self, line: bytes) -> None:
            threads.append(threading.get_ident())
            super().feed(line)

    journal = Journal()
    calls = ShardCalls(
        HeldLease(Lease(SHARD, "w", checkpoint=TRIM_HORIZON), 0.0),
        journal,
        UnitsOfWork(journal, Watched(Signing(None))),
    )
    await calls.begin(Action.PROCESS_RECORDS, records(1, 3).batch)
    for line in (json.dumps({"action": "emit", **delta(unit)}).encode() for unit in ("T-1", "T-2")):
        taking = calls.emitted(line + b" " * (OFF_LOOP_BYTES if b"T-1" in line else 0))
        if taking is not None:
            await taking
    await calls.finish()
    assert journal.entries == ["append 1-3 T-1 T-2"]
    assert threads[0] != threading.get_ident() == threads[1]


@pytest.mark.parametrize(
    ("checkpoint", "proposed", "begun_ms", "begun"),
    [
        (LATEST, 99_000, None, 99.0),  # the time of Kinesis, less the margin
        (LATEST, 99_000, 5_500, 5.5),  # another daemon was first, or this one in an earlier life
        (AT_TIMESTAMP, 55_000, None, 55.0),
        (AT_TIMESTAMP, 55_000, 5_500, 5.5),
        (TRIM_HORIZON, None, 5_500, None),
        (Checkpoint("5"), None, 5_500, None),
    ],
)
async def test_reading_begins_where_the_log_does_and_that_is_durable_before(
    checkpoint: Checkpoint, proposed: int | None, begun_ms: int | None, begun: float | None
) -> None:
    journal = Journal(log_answers=[LogUnavailableError("away")], begun_ms=begun_ms)
    units = UnitsOfWork(journal, Admission(Signing(None)), stream_time=lambda: 100.0)
    calls = ShardCalls(HeldLease(Lease(SHARD, "w", checkpoint=checkpoint), 0.0), journal, units)
    assert await calls.log_begun(55.0005) == begun
    assert journal.entries == ([] if proposed is None else [f"begin {proposed} !", f"begin {proposed}"])


async def test_without_units_of_work_no_beginning_is_noted() -> None:
    calls = ShardCalls(HeldLease(Lease(SHARD, "w", checkpoint=LATEST), 0.0), Journal(), None)
    assert await calls.log_begun(55.0) is None


async def test_a_shard_that_is_too_far_ahead_waits_until_the_others_have_come_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shard_call, "TURN_S", 0.0)
    journal = Journal(hold_ms=100)
    lease = HeldLease(Lease(SHARD, "w", checkpoint=TRIM_HORIZON), 0.0)
    units = UnitsOfWork(journal, Admission(Signing(None)))
    calls = ShardCalls(lease, journal, units)
    async with asyncio.timeout(30):
        await calls.turn(None)
        await calls.turn(100)
        ahead = asyncio.create_task(calls.turn(101))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not ahead.done()
        journal.hold_ms = 101
        await ahead
        journal.hold_ms = 0
        ahead = asyncio.create_task(calls.turn(101))
        await asyncio.sleep(0)
        journal.hold_ms = None
        await ahead
