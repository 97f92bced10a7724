"""The log that the shards' requests go to: the owner here, a connection to the owner elsewhere, or nobody for a while.

A request that the present log cannot finish (it was fenced, it stopped, the connection was cut) is made again at the
next one. That is safe for any number of times and owners: the table in :mod:`kainite.peers.sharing.conversation`
says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kainite.base.errors import LogFencedError, LogUnavailableError
from kainite.log.client import LogClient

T = TypeVar("T")


class PresentLog:
    """The present log of one process, or none.

    Args:
        clock: returns seconds since boot.
        lease: the lease in seconds; a process that does not reach a live owner for two leases counts as cut off.
    """

    def __init__(self, clock: Callable[[], float], lease: float) -> None:
        self._clock = clock
        self._lease = lease
        self.log: LogClient | None = None
        """The present log; None while there is none."""
        self._there = asyncio.Event()
        self._reached_at = clock()
        self._left_at = clock()
        self.held_elsewhere = False
        """Whether the last look at HEAD, since the last present log ended, showed a live owner."""

    async def ask(self, request: Callable[[LogClient], Awaitable[T]]) -> T:
        """Makes a request to the present log, again at each next one until a log answers; returns the answer."""
        while True:
            await self._there.wait()
            if (log := self.log) is None:
                continue  # the log was present, and was dropped before this task had its turn
            try:
                return await request(log)
            except (LogFencedError, LogUnavailableError):
                self.drop(log)

    def put(self, log: LogClient) -> None:
        """Makes a log the present one."""
        self.log = log
        self._reached_at = self._clock()
        self._there.set()

    def drop(self, log: LogClient) -> None:
        """Removes a log, if it is the present one."""
        if self.log is log:
            self.log = None
            self._there.clear()
            self._left_at, self.held_elsewhere = self._clock(), False

    async def reached(self) -> None:
        """Waits until there is a log."""
        await self._there.wait()

    @property
    def is_reached(self) -> bool:
        """Returns whether there is a log."""
        return self._there.is_set()

    @property
    def is_cut_off(self) -> bool:
        """Returns whether the log's owner lives and was not reached for two leases."""
        waited = self._clock() - self._left_at
        return not self.is_reached and self.held_elsewhere and waited >= 2 * self._lease

    @property
    def settled_for(self) -> float:
        """Returns for how many seconds the log has been at its present owner; 0 while no owner is reached."""
        return self._clock() - self._reached_at if self.is_reached else 0.0
