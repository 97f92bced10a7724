from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import psutil
import pytest

from kainite.base.errors import ChildError, ChildExitedError
from kainite.child import piped_process
from kainite.child.piped_process import STDERR_KEPT, Hooks, PipedProcess, Program, how_it_ended

LIMIT = 20.0


class Run:
    """One run of a shell script, and its output."""

    def __init__(self, script: str, environment: dict[str, str] | None = None) -> None:
        self.output = b""
        self.news = asyncio.Event()
        self.heard = asyncio.Event()
        program = Program(("sh", "-c", script), "shardId-0", environment=environment or {})
        self.process = PipedProcess.start(program, Hooks(self._on_output, lambda: None, self.news.set))

    def _on_output(self, data: bytes) -> None:
        self.output += data
        self.heard.set()

    async def hear(self, text: bytes) -> None:
        async with asyncio.timeout(LIMIT):
            while text not in self.output:
                self.heard.clear()
                await self.heard.wait()

    async def broken(self) -> ChildError:
        async with asyncio.timeout(LIMIT):
            return await asyncio.shield(self.process.broken)


@pytest.fixture
async def run() -> AsyncIterator[Callable[..., Run]]:
    runs: list[Run] = []

    def make(script: str, environment: dict[str, str] | None = None) -> Run:
        runs.append(Run(script, environment))
        return runs[-1]

    yield make
    for each in runs:
        await each.process.close(grace=0, kill_after=0)


Make = Callable[[str], Run]


@pytest.mark.parametrize(
    ("code", "described"),
    [(0, "status 0"), (3, "status 3"), (-9, "signal SIGKILL"), (-15, "signal SIGTERM"), (-99, "signal 99")],
)
def test_an_end_is_described_by_status_or_signal(code: int, described: str) -> None:
    assert how_it_ended(code) == described


async def test_a_program_gets_its_input_and_variables_and_gives_its_output(run: Callable[..., Run]) -> None:
    script = run('read line; echo "$GREETING $line"; cat', {"GREETING": "hello"})
    script.process.write(b"world\n")
    await script.hear(b"hello world\n")
    script.process.write(b"x" * 1_000_000)
    await script.hear(b"x" * 1_000_000)
    script.process.end_input()
    assert str(await script.broken()).endswith("of shardId-0 ended with status 0")


async def test_a_program_that_cannot_be_started_is_named_with_its_setting() -> None:
    hooks = Hooks(lambda data: None, lambda: None, lambda: None)
    with pytest.raises(ChildExitedError, match=r"cannot start '/no/such' for shardId-0: .*; see executableName"):
        PipedProcess.start(Program(("/no/such",), "shardId-0"), hooks)


@pytest.mark.parametrize(
    ("script", "status"), [("exit 3", 3), ("kill -9 $$", -signal.SIGKILL), ("echo last; exit 0", 0)]
)
async def test_the_end_of_a_program_is_news(run: Make, script: str, status: int) -> None:
    ended = run(script)
    error = await ended.broken()
    assert isinstance(error, ChildExitedError)
    assert how_it_ended(status) in str(error)
    assert ended.news.is_set()
    assert ended.process.status == status


async def test_output_that_a_program_left_behind_is_still_read(run: Make) -> None:
    ended = run("echo last words")
    await ended.broken()
    assert ended.output == b"last words\n"


@pytest.mark.parametrize(
    ("script", "named"),
    [("exec 0<&-; echo ready; exec sleep 1000", "input"), ("echo ready; exec 1>&-; exec sleep 1000", "output")],
)
async def test_a_closed_pipe_breaks_a_program_that_runs_on(
    run: Make, script: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piped_process, "END_PATIENCE", 0.01)
    closed = run(script)
    await closed.hear(b"ready\n")
    closed.process.write(b"more\n")  # a closed input is noticed by a write only
    assert f"closed its standard {named}" in str(await closed.broken())


async def test_the_first_reason_of_a_failure_counts(run: Make) -> None:
    script = run("cat")
    script.process.fail(ChildError("the first"))
    script.process.fail(ChildError("the second"))
    assert str(await script.broken()) == "the first"


async def test_closing_ends_a_program_that_reads_to_the_end_of_its_input(run: Make) -> None:
    script = run("cat >/dev/null; exit 5")
    await script.process.close(grace=LIMIT, kill_after=LIMIT)
    assert script.process.status == 5
    await script.process.close(grace=LIMIT, kill_after=LIMIT)


@pytest.mark.parametrize(
    ("script", "kill_after", "status"),
    [
        ("echo ready; while :; do sleep 1000; done", LIMIT, -signal.SIGTERM),
        ("trap '' TERM; echo ready; while :; do sleep 1000; done", 0.01, -signal.SIGKILL),
    ],
    ids=["terminated", "killed"],
)
async def test_closing_ends_a_program_that_does_not_obey(
    run: Make, script: str, kill_after: float, status: int
) -> None:
    stubborn = run(script)
    await stubborn.hear(b"ready\n")
    await stubborn.process.close(grace=0.01, kill_after=kill_after)
    assert stubborn.process.status == status


async def test_a_program_that_outlives_its_grace_is_left_to_be_terminated(run: Make) -> None:
    stubborn = run("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done")
    await stubborn.hear(b"ready\n")
    ending = asyncio.create_task(stubborn.process.ends(LIMIT))
    await asyncio.sleep(0)  # lets the task begin to wait
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert not await stubborn.process.ends(0.01)
    await stubborn.process.close(grace=0, kill_after=LIMIT)
    assert stubborn.process.status == 7


async def test_a_cancelled_close_kills_at_once(run: Make) -> None:
    stubborn = run("echo ready; exec sleep 1000")
    await stubborn.hear(b"ready\n")
    closing = asyncio.create_task(stubborn.process.close(grace=LIMIT, kill_after=LIMIT))
    await asyncio.sleep(0)  # lets the task begin to wait
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert stubborn.process.status == -signal.SIGKILL


async def test_the_whole_process_group_ends_with_its_program(run: Make) -> None:
    parent = run("sleep 1000 & echo $!; wait")
    await parent.hear(b"\n")
    grandchild = psutil.Process(int(parent.output))
    assert os.getpgid(grandchild.pid) == parent.process.pid != os.getpgrp()
    parent.process.kill()
    assert parent.process.status == -signal.SIGKILL
    psutil.wait_procs([grandchild], timeout=LIMIT)
    assert not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE


async def test_standard_error_goes_to_the_log_and_its_last_lines_are_kept(
    run: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    script = run('for n in $(seq 30); do echo "line $n" >&2; done; printf "no end" >&2')
    await script.broken()
    assert _lines(caplog.records) == [*(f"line {n}" for n in range(1, 31)), "no end"]
    assert list(script.process.stderr_tail) == _lines(caplog.records)[-STDERR_KEPT:]


async def test_standard_error_without_a_line_end_goes_to_the_log_in_pieces(
    run: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    script = run("head -c 20000 /dev/zero | tr '\\0' x >&2; echo done; cat")
    await script.hear(b"done\n")
    await script.process.close(grace=LIMIT, kill_after=LIMIT)
    assert [line.rstrip("…") for line in _lines(caplog.records)] == ["x" * 8_000, "x" * 8_000, "x" * 4_000]


def _lines(records: Sequence[Any]) -> list[str]:
    return [record.kainite_fields["line"] for record in records if record.getMessage() == "child stderr"]


async def test_a_paused_output_stays_in_the_pipe(run: Make) -> None:
    script = run("head -c 4000000 /dev/zero; echo done >&2")
    script.process.pause()
    assert not script.process.stderr_tail
    script.process.resume()
    await script.broken()
    assert len(script.output) == 4_000_000
    assert list(script.process.stderr_tail) == ["done"]


async def test_secrets_on_standard_error_are_in_no_line_that_others_show(run: Make) -> None:
    script = run("echo 'connecting with DB_PASS=geheim and X-Api-Key: geheim' >&2; echo fine >&2")
    await script.broken()
    assert [line for line in script.process.stderr_tail if "geheim" in line] == []
    assert script.process.stderr_tail[-1] == "fine"
