"""One run of a command: its words, its limits, and how it goes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from kainite.child.piped_process import Program
from kainite.conform.exchange.child_run import ChildGone, ChildRun

LIMIT = 30.0


@asynccontextmanager
async def running(script: str) -> AsyncIterator[tuple[ChildRun, Callable[[], bytes]]]:
    """Runs a script of the shell; gives the run, and what the script has written so far."""
    output = bytearray()
    child = ChildRun(Program(("sh", "-c", script), "shard"), output.extend, lambda: None)
    try:
        yield child, lambda: bytes(output)
    finally:
        await child.close(0.0)


async def test_what_is_said_and_heard_is_kept() -> None:
    async with running("read -r line; echo got $line; read -r more") as (child, written):
        child.write(b"hello\n")

        assert await child.until(lambda: written() or None, LIMIT) == b"got hello\n"
        assert child.output_bytes == len(b"got hello\n")
        assert [line.split(maxsplit=1)[1] for line in child.transcript.lines()] == ["→ hello", "← got hello"]


async def test_a_wait_ends_at_its_limit() -> None:
    async with running("read -r line") as (child, written):
        assert await child.until(lambda: written() or None, 0.01) is None


@pytest.mark.parametrize(
    ("script", "how", "words"),
    [
        ("echo 'no such table' >&2; exit 3", "ended with status 3", "no such table"),
        ("printf 'Error: at first\\n  at line 1\\nlater\\n' >&2; exit 1", "ended with status 1", "Error: at first"),
        ("kill -9 $$", "ended with signal SIGKILL", ""),
    ],
)
async def test_a_child_that_goes_tells_how(script: str, how: str, words: str) -> None:
    async with running(script) as (child, _):
        with pytest.raises(ChildGone) as gone:
            await child.until(lambda: None, LIMIT)

    assert (gone.value.how, gone.value.words) == (how, words)
    said = f"its last words on stderr: {words}" if words else "without a word on stderr"
    assert gone.value.told("a cycle") == f"{how} in a cycle; {said}"


async def test_the_end_of_a_request_is_held_back() -> None:
    request = b"x" * 40 + b"\n"
    early = "head -c 1 >/dev/null; echo early; read -r rest"
    async with running(early) as (child, written):
        assert await child.write_held(request, lambda: written() or None, LIMIT) == b"early\n"
        assert sum(len(line) for line in child.transcript.lines() if "→" in line) < 40
    async with running("read -r line; echo whole; read -r more") as (child, written):
        assert await child.write_held(request, lambda: written() or None, 0.05) is None
        assert await child.until(lambda: written() or None, LIMIT) == b"whole\n"


@pytest.mark.parametrize(
    ("script", "ends"), [("read -r line", True), ("trap '' TERM; while :; do sleep 1; done", False)]
)
async def test_the_end_of_the_input_ends_a_child_in_time_or_not(script: str, ends: bool) -> None:
    async with running(script) as (child, _):
        took = await child.ends(LIMIT if ends else 0.1)

        assert (took is not None) is ends
