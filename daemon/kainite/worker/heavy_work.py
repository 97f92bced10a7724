"""Runs work on the event loop where it is short, and off the loop where it is long.

Leases are renewed on the loop, so nothing may keep the loop for long. A child may emit a line of 64 MiB: to parse it,
to check and to sign its deltas takes many seconds of Python. Such work goes to a thread. The interpreter then shares
its time between that thread and the loop, in turns of milliseconds, as long as there are few such threads: so there is
one at a time in the whole daemon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

OFF_LOOP_BYTES: Final = 64 * 1024
"""From this size on, work goes to a thread. Lines below it take about 10 ms; a thread costs a fraction of one."""


class HeavyWork:
    """Runs pieces of work; the long ones run on threads, one after another."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Returns what ``work`` returns.

        A cancellation does not end work that has begun on a thread: what the work changes must not be used afterwards.

        Args:
            size: the bytes that the work reads.
            work: the work, which must not change anything that the loop looks at meanwhile.
        """
        if size < OFF_LOOP_BYTES:
            return work()
        async with self._turn:
            return await asyncio.to_thread(work)
