"""Short work runs where it is called, long work on a thread, one piece at a time."""

from __future__ import annotations

import asyncio
import threading

from kainite.worker.heavy_work import OFF_LOOP_BYTES, HeavyWork


async def test_short_work_runs_on_the_loops_thread_and_long_work_does_not() -> None:
    heavy = HeavyWork()
    assert await heavy.run(OFF_LOOP_BYTES - 1, threading.get_ident) == threading.get_ident()
    assert await heavy.run(OFF_LOOP_BYTES, threading.get_ident) != threading.get_ident()


async def test_one_long_piece_of_work_runs_at_a_time_and_the_loop_goes_on() -> None:
    heavy = HeavyWork()
    begun, may_end, running, most = threading.Event(), threading.Event(), 0, 0

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        begun.set()
        may_end.wait(30)
        running -= 1

    pieces = [asyncio.create_task(heavy.run(OFF_LOOP_BYTES, work)) for _ in range(4)]
    assert await asyncio.to_thread(begun.wait, 30)
    may_end.set()
    await asyncio.gather(*pieces)
    assert most == 1
