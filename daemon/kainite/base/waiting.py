"""Waits for an event, for a limited time."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def wait_until_set(event: asyncio.Event, seconds: float) -> bool:
    """Waits until ``event`` is set, for at most ``seconds``; returns whether it is set."""
    # Not wait_for: in Python 3.11 it loses a cancellation that comes as the wait ends.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
