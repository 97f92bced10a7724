"""Waits for a condition that nothing signals: rows, files, tables and processes tell nobody that they changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LIMIT_S = 60.0
_PAUSE_S = 0.01


def eventually(condition: Callable[[], object], limit: float = LIMIT_S, pause: float = _PAUSE_S) -> None:
    """Waits until ``condition`` holds, asked every ``pause`` seconds; fails after ``limit`` seconds."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"the condition did not hold within {limit:g} s"
        time.sleep(pause)


async def until(condition: Callable[[], object], limit: float = LIMIT_S) -> None:
    """Waits until ``condition`` holds while other tasks run; fails after ``limit`` seconds."""
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110 - other tasks, threads or processes change what it looks at
            await asyncio.sleep(_PAUSE_S)
