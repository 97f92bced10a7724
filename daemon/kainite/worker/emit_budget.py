"""Bounds the memory of what children emit, over all shards of the daemon.

What a child emits in a call is kept until the call's append is durable. One call may emit 256 MiB, so many shards
together could fill any memory. The budget has a limit in bytes of emit lines (``emit_bytes``). A shard whose next line
does not fit waits, and its child waits with it, since nobody reads what it writes.

Waiting shards keep what they hold. If all shards waited, no shard could end its call and release its part. So one shard
at a time is *overdrawn*: it takes what it needs beyond the limit, until its call ends. The first shard that finds no
room is overdrawn; when its call has ended, the shard that has waited longest is.

*Why there is no deadlock.* The overdrawn shard waits for nothing that this budget holds: its lines are taken at once,
its append needs only the catalogue and the log. Its call ends by the child's answer, by the child's death, or with the
lease. Each of these ends releases what the shard holds and wakes the next shard. A child that hangs does not end its
call: after :data:`PATIENCE_S` a waiting shard is overdrawn in its place.

The shards together hold at most the limit and one call's lines, and one call's lines more for each child that hangs.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable
from typing import Final

PATIENCE_S: Final = 60.0
"""Seconds that the child of an overdrawn shard has for its call while others wait."""


class EmitBudget:
    """The bytes that all shards together may hold.

    Args:
        limit: the budget of all shards together, bytes.
        patience: seconds after which a waiting shard is overdrawn in place of a shard whose child still has its call.
    """

    def __init__(self, limit: int = 256 * 2**20, patience: float = PATIENCE_S) -> None:
        self._limit = limit
        self._patience = patience
        self._overdrawn: EmitShare | None = None
        self._overdrawn_at = 0.0
        self._waiting: deque[tuple[EmitShare, int, asyncio.Future[None]]] = deque()
        self.held = 0
        """Bytes that all shards hold."""

    def share(self) -> EmitShare:
        """Returns what another shard takes its part through."""
        return EmitShare(self)

    def take(self, share: EmitShare, size: int) -> Awaitable[None] | None:
        """Takes room for a shard; returns an awaitable when the shard must wait for the room first, otherwise None."""
        if self._admit(share, size):
            return None
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((share, size, admitted))
        return self._wait(share, size, admitted)

    def give_back(self, share: EmitShare) -> None:
        """Releases all that a shard holds, and admits those that have waited longest."""
        self.held -= share.held
        share.held = 0
        share.appending = False
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
            # One shard must be able to end its call, or all wait for each other. A second one would only add lines.
            if self._overdrawn not in (None, share):
                return False
            self._overdraw(share)
        self._hold(share, size)
        return True

    def _overdraw(self, share: EmitShare) -> None:
        if self._overdrawn is not share:
            self._overdrawn, self._overdrawn_at = share, time.monotonic()

    def _patience_left(self) -> float:
        """Returns for how many more seconds the waiting shards leave the overdrawn shard alone."""
        # No child hangs while lines are appended: the log takes no more, most likely because the target is away and the
        # backlog is full. Another shard's append would wait there too, and its lines would be held in addition.
        if self._overdrawn is not None and self._overdrawn.appending:
            return self._patience
        return max(self._overdrawn_at + self._patience - time.monotonic(), 0.0)

    def _hold(self, share: EmitShare, size: int) -> None:
        self.held += size
        share.held += size

    async def _wait(self, share: EmitShare, size: int, admitted: asyncio.Future[None]) -> None:
        try:
            while not admitted.done() and (left := self._patience_left()) > 0:
                await asyncio.wait((admitted,), timeout=left)
            if not admitted.done():
                # The overdrawn shard's child has had its time: it hangs, and its call may never end.
                self._overdraw(share)
                self._hold(share, size)
        finally:
            admitted.cancel()


class EmitShare:
    """One shard's part of the budget.

    Attributes:
        held: bytes that the shard holds.
        appending: whether they are on their way to the log or the output stream; their release ends that.
    """

    def __init__(self, budget: EmitBudget) -> None:
        self._budget = budget
        self.held = 0
        self.appending = False

    def take(self, size: int) -> Awaitable[None] | None:
        """Takes room for a line; returns an awaitable when the shard must wait for the room first, otherwise None."""
        return self._budget.take(self, size)

    def give_back(self) -> None:
        """Releases everything: what was taken for is durable or dropped."""
        self._budget.give_back(self)
