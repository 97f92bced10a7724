from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from kainite.worker.aws_threads import aws_threads, leave_unanswered_calls


async def test_calls_run_in_threads_of_their_own_name() -> None:
    with aws_threads():
        assert (await asyncio.to_thread(threading.current_thread)).name.startswith("kainite")
    assert not (await asyncio.to_thread(threading.current_thread)).name.startswith("kainite")


async def test_more_calls_than_processors_run_at_the_same_time() -> None:
    together = threading.Barrier(64)
    with aws_threads():
        calls = [asyncio.to_thread(together.wait, 20) for _ in range(64)]
        assert sorted(await asyncio.gather(*calls)) == list(range(64))


async def test_an_unanswered_call_is_not_waited_for() -> None:
    answer, begun = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        answer.wait(20)

    with aws_threads():
        calling = asyncio.create_task(asyncio.to_thread(call))
        assert await asyncio.to_thread(begun.wait, 20)
    assert not calling.done()
    answer.set()
    await calling


END = """
import sys, threading
from kainite.worker import aws_threads
aws_threads.LAST_CALLS_S = 0.01
threading.Thread(target=threading.Event().wait, daemon=sys.argv[1] == "daemon").start()
aws_threads.leave_unanswered_calls(7)
sys.exit(3)
"""


@pytest.mark.parametrize(("kind", "status"), [("unanswered", 7), ("daemon", 3)])
def test_the_process_ends_though_a_call_is_unanswered(kind: str, status: int) -> None:
    assert subprocess.run([sys.executable, "-c", END, kind], timeout=60, check=False).returncode == status


def test_without_calls_the_process_goes_on() -> None:
    leave_unanswered_calls(7)
