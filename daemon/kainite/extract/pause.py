"""A pause that a wish to stop ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def pause(seconds: float, stop: asyncio.Event) -> None:
    """Waits so many seconds, or until ``stop`` is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
