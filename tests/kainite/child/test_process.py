"""Real child processes: the protocol's cases (see test_multilang_cases), and children that misbehave."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from kainite.base.errors import ChildExitedError, ChildProtocolError, ChildTimeoutError
from kainite.child import breather
from kainite.child.events import CheckpointRequested, Rejected
from kainite.child.process import ChildProcess
from kainite.settings import ChildProtocol, ChildSettings

CHILDREN = Path(__file__).parents[2] / "children"
RECORD = {
    "data": "VC0x",
    "partitionKey": "k",
    "sequenceNumber": "49590338271490256608559692538361571095921575989136588898",
    "approximateArrivalTimestamp": 1700000000000,
    "subSequenceNumber": 0,
    "action": "record",
}


def batch(*records: dict[str, Any]) -> bytes:
    message = {"action": "processRecords", "records": records, "millisBehindLatest": 0}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def command(script: dict[str, Any], transcript: Path | None = None) -> tuple[str, ...]:
    arguments = [str(transcript)] if transcript else []
    return (sys.executable, str(CHILDREN / "scripted.py"), json.dumps(script), *arguments)


class Caller:
    """The daemon's side of one child: answers every checkpoint with ``error``, keeps all that came."""

    def __init__(self, child: ChildProcess) -> None:
        self.child = child
        self.error: str | None = None
        self.requests: list[CheckpointRequested] = []
        self.emitted: list[bytes] = []
        self.rejected: list[Rejected] = []

    async def initialize(self) -> None:
        await self.perform(self.child.dialect.initialize("shardId-0", "TRIM_HORIZON", 0))

    async def process(self, *records: dict[str, Any]) -> None:
        await self.perform(*self.child.dialect.process_records((batch(*records),)))

    async def perform(self, *request: bytes) -> None:
        emitted, rejected = self.emitted.append, self.rejected.append
        self.child.send(*request)
        await self.child.serve(answer=self._answer, emitted=emitted, rejected=rejected)

    async def _answer(self, request: CheckpointRequested) -> str | None:
        self.requests.append(request)
        return self.error


@asynccontextmanager
async def started(
    script: dict[str, Any], transcript: Path | None = None, *, reply_timeout: float | None = 10, kill_after: float = 5
) -> AsyncIterator[Caller]:
    settings = ChildSettings(command(script, transcript), reply_timeout=reply_timeout, kill_after=kill_after)
    child = ChildProcess.start("shardId-0", settings)
    try:
        yield Caller(child)
    finally:
        await child.close(5)
        assert not psutil.pid_exists(child.pid)


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_case_1_a_whole_life(tmp_path: Path) -> None:
    async with started({}, tmp_path / "transcript") as caller:
        await caller.initialize()
        await caller.process(RECORD)
        await caller.process()
        await caller.perform(caller.child.dialect.shutdown_requested() or b"")
        await caller.perform(caller.child.dialect.lease_lost())
        assert (tmp_path / "transcript").read_bytes().splitlines() == [
            b'{"action":"initialize","shardId":"shardId-0","sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0}',
            batch(RECORD).strip(),
            batch().strip(),
            b'{"action":"shutdownRequested"}',
            b'{"action":"leaseLost"}',
        ]


async def test_case_2_a_status_for_another_action_fails() -> None:
    async with started({"initialize": [["write", '{"action":"status","responseFor":"processRecords"}\n']]}) as caller:
        with pytest.raises(ChildProtocolError, match="answered 'processRecords', but was asked 'initialize'"):
            await caller.initialize()


async def test_case_3_a_status_without_its_action_fails() -> None:
    async with started({"initialize": [["write", '{"action":"status"}\n']]}) as caller:
        with pytest.raises(ChildProtocolError, match="answered None"):
            await caller.initialize()


@pytest.mark.parametrize("steps", [["first", "read", "last", "read"], ["first", "last", "read", "read"]])
async def test_cases_4_and_5_checkpoints_are_answered_in_order(tmp_path: Path, steps: list[str]) -> None:
    requests = {
        "first": ["write", '\n{"action": "checkpoint", "sequenceNumber": "7", "subSequenceNumber": null}\n'],
        "last": ["write", '{"action":"checkpoint"}\n'],
    }
    script = {"processRecords": [*(requests.get(step, step) for step in steps), "status"]}
    async with started(script, tmp_path / "transcript") as caller:
        caller.error = "ThrottlingException"
        await caller.initialize()
        await caller.process(RECORD)
        assert caller.requests == [CheckpointRequested("7"), CheckpointRequested(None)]
        assert (tmp_path / "transcript").read_bytes().splitlines()[2:] == [
            b'{"action":"checkpoint","sequenceNumber":"7","subSequenceNumber":null,"error":"ThrottlingException"}',
            b'{"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":"ThrottlingException"}',
        ]


async def test_case_7_no_answer_in_time() -> None:
    async with started({"initialize": ["hang"]}, reply_timeout=0.3, kill_after=0.1) as caller:
        with pytest.raises(ChildTimeoutError, match=r"did not answer initialize in 0\.3 s"):
            await caller.initialize()
        await caller.child.close(0)


async def test_case_7_junk_is_no_answer_but_an_emit_line_is() -> None:
    script = {
        "initialize": ["status"],
        "processRecords": [["emit", {"deltas": []}], ["write", "junk\n"], "hang"],
    }
    async with started(script, reply_timeout=3, kill_after=0.1) as caller:
        await caller.initialize()
        with pytest.raises(ChildTimeoutError, match=r"in 3 s, and wrote what is no message: it wrote 'junk'"):
            await caller.process(RECORD)
        assert caller.emitted == [b'{"action": "emit", "deltas": []}']
        await caller.child.close(0)


async def test_case_8_junk_is_skipped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with started({"initialize": [["write", "Loading model\n"], ["bytes", "fffe0a"], "status"]}) as caller:
        await caller.initialize()
    lines = [record.kainite_fields["line"] for record in caplog.records if "skipped" in record.getMessage()]  # type: ignore[attr-defined]
    assert lines == ["Loading model", "\ufffd\ufffd"]


@pytest.mark.parametrize(
    ("step", "how"),
    [
        (["exit", 3], "ended with status 3"),
        ("die", "ended with signal SIGKILL"),
        (["close", 1], "closed its standard output"),
    ],
)
async def test_case_9_the_end_before_the_status_fails(step: Any, how: str) -> None:
    async with started({"initialize": [step, "hang"]}, kill_after=0.1) as caller:
        with pytest.raises(ChildExitedError, match=how):
            await caller.initialize()
        await caller.child.close(0)


async def test_case_10_writing_to_a_closed_pipe_fails() -> None:
    async with started({"initialize": [["close", 0], "status", "hang"]}, kill_after=0.1) as caller:
        await caller.initialize()
        with pytest.raises(ChildExitedError, match="closed its standard input"):
            await caller.process(RECORD)
        await caller.child.close(0)


async def test_a_status_before_a_sudden_end_counts() -> None:
    async with started({"processRecords": ["status", ["exit", 0]]}) as caller:
        await caller.initialize()
        await caller.process(RECORD)
        assert "status 0" in str(await caller.child.broken)


async def test_case_14_a_flood_after_the_end_of_input_is_drained() -> None:
    async with started({"eof": [["flood", 200_000, "x" * 79 + "\n"], ["exit", 0]]}) as caller:
        await caller.initialize()
        await caller.perform(caller.child.dialect.lease_lost())
        await caller.child.close(10)
        assert "status 0" in str(caller.child.broken.result())


async def test_an_end_while_idle_is_noticed() -> None:
    async with started({}) as caller:
        await caller.initialize()
        os.kill(caller.child.pid, signal.SIGKILL)
        assert "signal SIGKILL" in str(await asyncio.wait_for(caller.child.broken, 5))


async def test_a_child_that_writes_a_lot_before_it_reads_does_not_lock_up() -> None:
    emit = '{"action":"emit","deltas":[{"uow":"T-1"}]}\n'
    script = {"initialize": ["status", ["flood", 100_000, emit]]}
    async with started(script) as caller:
        await caller.initialize()
        await caller.process(*[RECORD] * 20_000)
        assert len(caller.emitted) == 100_000


async def test_huge_lines_pass_both_ways(tmp_path: Path) -> None:
    script = {"processRecords": [["emit", {"deltas": [], "x": "y" * 5_000_000}], "status"]}
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script))
    loader = (
        f"import sys; sys.argv[1] = open({str(path)!r}).read(); exec(open({str(CHILDREN / 'scripted.py')!r}).read())"
    )
    settings = ChildSettings((sys.executable, "-c", loader, "", str(tmp_path / "transcript")))
    child = ChildProcess.start("shardId-0", settings)
    caller = Caller(child)
    await caller.initialize()
    await caller.process(dict(RECORD, data="A" * 5_000_000))
    assert len(caller.emitted[0]) > 5_000_000
    assert len((tmp_path / "transcript").read_bytes()) > 5_000_000
    await child.close(5)


async def test_idle_chatter_is_read_and_logged_so_that_it_cannot_block_the_child(tmp_path: Path) -> None:
    flag = tmp_path / "done"
    script = {"initialize": ["status", ["flood", 50_000, "tick " * 10 + "\n"], ["spawn", str(flag)]]}
    async with started(script) as caller:
        await caller.initialize()
        await asyncio.to_thread(wait_until, flag.exists)
        await caller.process(RECORD)


async def test_stderr_is_logged_line_by_line_once_and_a_long_line_in_pieces(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    script = {"initialize": [["stderr", "first\nsecond\n" + "x" * 20_000 + "\nlast"], "status"]}
    async with started(script) as caller:
        await caller.initialize()
    lines = [record.kainite_fields["line"] for record in caplog.records if record.getMessage() == "child stderr"]  # type: ignore[attr-defined]
    assert lines == ["first", "second", *["x" * 8_000 + "…"] * 2, "x" * 4_000, "last"]
    assert list(caller.child.stderr_tail) == lines


async def test_a_child_that_ignores_the_end_of_input_and_term_is_killed_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    pid_file = tmp_path / "pid"
    script = {"initialize": [["ignore", signal.SIGTERM], ["spawn", str(pid_file)], "status"], "eof": ["hang"]}
    async with started(script, kill_after=0.2) as caller:
        await caller.initialize()
        await caller.child.close(0.2)
        assert "SIGKILL" in str(caller.child.broken.result())
        await asyncio.to_thread(wait_until, lambda: is_gone(int(pid_file.read_text())))


async def test_what_a_dead_child_started_is_ended_too(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    async with started({"initialize": [["spawn", str(pid_file)], "die"]}) as caller:
        with pytest.raises(ChildExitedError):
            await caller.initialize()
        await asyncio.to_thread(wait_until, lambda: is_gone(int(pid_file.read_text())))


async def test_a_cancelled_close_kills_at_once() -> None:
    async with started({"eof": ["hang"]}) as caller:
        await caller.initialize()
        closing = asyncio.create_task(caller.child.close(1000))
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert not psutil.pid_exists(caller.child.pid)


async def test_the_child_runs_in_a_group_of_its_own_and_knows_its_shard() -> None:
    async with started({}) as caller:
        await caller.initialize()
        assert os.getpgid(caller.child.pid) == caller.child.pid != os.getpgrp()
        assert psutil.Process(caller.child.pid).environ()["KCL_SHARD_ID"] == "shardId-0"


async def test_a_program_that_is_not_there() -> None:
    with pytest.raises(ChildExitedError, match=r"cannot start 'no-such-program' for s: No such file.*executableName"):
        ChildProcess.start("s", ChildSettings(("no-such-program",)))


async def test_an_answer_of_many_messages_leaves_the_loop_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breather, "LONGEST_S", 0.0)  # each message takes too long
    talkative = (sys.executable, "-c", "print('{}\\n' * 10_000, end=chr(0), flush=True); input()")
    settings = ChildSettings(talkative, protocol=ChildProtocol.MARKERS, reply_timeout=60)
    caller = Caller(ChildProcess.start("shardId-0", settings))
    turns: list[int] = []

    async def take_turns() -> None:
        while True:
            turns.append(len(caller.emitted))
            await asyncio.sleep(0)

    other = asyncio.create_task(take_turns())
    try:
        await caller.initialize()
        await caller.perform(*caller.child.dialect.process_records((b"1 0 \n",)))
    finally:
        other.cancel()
        await caller.child.close(0)
    assert len(caller.emitted) == 10_000
    assert len(set(turns)) > 1_000, "messages of one answer, between which others had their turn"
