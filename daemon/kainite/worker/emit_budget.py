"""Bounds the memory of what children emit, over all shards of the daemon.

What a child emits in a call is kept until the call's append is durable. One call may emit 256 MiB, so many shards
together could fill any memory. The budget has a limit in bytes of emit lines (``emitBytes``). A shard whose next line
does not fit waits, and its child waits with it, since nobody reads what it writes.

Shards that wait keep what they hold, so they could wait for ever: each has a part, none can end its call. So one shard
at a time is *overdrawn*: it takes what it needs beyond the limit, until its call ends. The first one that finds no room
becomes it; when its call has ended, the one that has waited longest does.

*Why there is no deadlock.* The overdrawn shard waits for nothing that this budget holds: its lines are taken at once,
its append needs only the log. Its call ends by the child's answer, by the child's death, or with the lease, and each of
them releases what it holds and wakes the next. A child that hangs while it is overdrawn ends no call; therefore a shard
that has waited for :data:`PATIENCE_S` becomes overdrawn too.

So at most the limit and one call's lines are held, and one call's lines more for each child that hangs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import Final

PATIENCE_S: Final = 60.0
"""Seconds after which a shard does not wait for an overdrawn one any longer."""


class EmitBudget:
    """The bytes that all shards together may hold.

    Args:
        limit: in bytes.
        patience: seconds after which a shard that waits becomes overdrawn.
    """

    def __init__(self, limit: int = 256 * 2**20, patience: float = PATIENCE_S) -> None:
        self._limit = limit
        self._patience = patience
        self._overdrawn: EmitShare | None = None
        self._waiting: deque[tuple[EmitShare, int, asyncio.Future[None]]] = deque()
        self.held = 0
        """Bytes that all shards hold."""

    def share(self) -> EmitShare:
        """Returns what another shard takes its part through."""
        return EmitShare(self)

    def take(self, share: EmitShare, size: int) -> Awaitable[None] | None:
        """Takes room for a shard; returns what is to be awaited first, None for nothing."""
        if self._admit(share, size):
            return None
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((share, size, admitted))
        return self._wait(share, size, admitted)

    def give_back(self, share: EmitShare) -> None:
        """Releases all that a shard holds, and admits those that have waited longest."""
        self.held -= share.held
        share.held = 0
        if self._overdrawn is share:
            self._overdrawn = None
        while self._waiting:
            waiting, size, admitted = self._waiting[0]
            if not admitted.done():
                if not self._admit(waiting, size):
                    return
                admitted.set_result(None)
            self._waiting.popleft()

    def _admit(self, share: EmitShare, size: int) -> bool:
        if self.held + size > self._limit:
            if self._overdrawn not in (None, share):
                return False
            self._overdrawn = share
        self._hold(share, size)
        return True

    def _hold(self, share: EmitShare, size: int) -> None:
        self.held += size
        share.held += size

    async def _wait(self, share: EmitShare, size: int, admitted: asyncio.Future[None]) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await admitted
        except TimeoutError:
            if not admitted.done() or admitted.cancelled():
                self._overdrawn = share
                self._hold(share, size)
        finally:
            admitted.cancel()


class EmitShare:
    """One shard's part of the budget.

    Attributes:
        held: bytes that the shard holds.
    """

    def __init__(self, budget: EmitBudget) -> None:
        self._budget = budget
        self.held = 0

    def take(self, size: int) -> Awaitable[None] | None:
        """Takes room for a line; returns what is to be awaited first, None for nothing."""
        return self._budget.take(self, size)

    def give_back(self) -> None:
        """Releases everything: what was taken for is durable or dropped."""
        self._budget.give_back(self)
