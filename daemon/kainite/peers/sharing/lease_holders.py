"""Who holds the shards' leases, as the log's owner knows it: only a lease's holder appends for its shard.

The owner reads a lease, strongly consistent, when a member first names its shard, and again when what it knows is older
than KEPT_S or names another worker. A known holder is let in without a read.

===================================  ===================================================================================
what the owner knows                 a member that names the shard
===================================  ===================================================================================
this member holds the lease          may append
nothing; another worker holds it;    waits for a read, at most one in READ_EVERY_S for a shard; then may append, or is
nobody does; it is too old           refused
the read fails                       waits for the next one: it may be the holder. It is told nothing
===================================  ===================================================================================

Crashes and zombies. Nothing here is stored, and the next owner reads for itself. The lease table moves on while the
owner's knowledge stands still, so the check is no fence, and nothing depends on its being one:

===================================================  ===================================================================
happens                                              why nothing is lost or doubled
===================================================  ===================================================================
a former holder appends before the owner has read    what it appends is what the next holder would append for the same
that the lease was taken                             records; the owner recognises either (``conversation``)
the lease is taken over between the read and the     the same
append's batch, or while the append is in flight
a former holder (it was frozen) appends after that   refused; its consumer asks for the lease again, and has lost it
a new holder appends before the owner knows it       the owner knows another one, and reads: it waits for that read
a hand-over is under way                             the worker that may checkpoint counts, as in the lease table itself
the owner changes                                    the next owner knows no holder, and reads; the append is made again
===================================================  ===================================================================

A member tells its worker id itself, and whoever has the right *daemon* may tell any. So the check holds off what is
confused, late, or not let in as a daemon, and not a daemon that lies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from kainite.base.errors import KainiteError, LogRequestError
from kainite.base.logs import event

_logger = logging.getLogger(__name__)

KEPT_S: Final = 60.0
"""Seconds for which a holder that was read counts."""

READ_EVERY_S: Final = 1.0
"""Seconds between two reads of one lease."""

MOST_KEPT: Final = 100_000
"""How many leases are known at once: a daemon may name any shard."""

ReadHolder = Callable[[str], str | None]
"""Reads who holds a shard's lease, strongly consistent; blocks. Raises KainiteError."""


class HolderCheck(Protocol):
    """Tells who holds the shards' leases."""

    async def check(self, shard: str, worker: str) -> None:
        """Returns once a worker is known to hold a shard's lease.

        Raises:
            LogRequestError: it does not hold the lease.
        """

    def is_known(self, shard: str, worker: str) -> bool:
        """Returns whether a worker is known to hold a shard's lease; may read the lease for the next time."""


@dataclass(frozen=True, slots=True)
class _Seen:
    holder: str | None
    at: float


class LeaseHolders:
    """The holders as the lease table has them; implements :class:`HolderCheck`.

    Args:
        read: reads who holds a lease.
        clock: seconds, never running backwards.
    """

    def __init__(self, read: ReadHolder, clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._failing = False

    async def check(self, shard: str, worker: str) -> None:
        asked = self._clock()
        while not self._is_holder(shard, worker):
            seen = self._seen.get(shard)
            if seen is not None and seen.at >= asked:
                raise LogRequestError(
                    f"shard {shard}: worker {worker} does not hold its lease, {seen.holder or 'nobody'} does; only the"
                    " lease's holder appends"
                )
            await asyncio.shield(self._read_soon(shard))

    def is_known(self, shard: str, worker: str) -> bool:
        known = self._is_holder(shard, worker)
        if not known:
            self._read_soon(shard)
        return known

    def _is_holder(self, shard: str, worker: str) -> bool:
        seen = self._seen.get(shard)
        if seen is None or seen.holder != worker:
            return False
        age = self._clock() - seen.at
        if age > KEPT_S / 2:
            self._read_soon(shard)  # so that nobody waits for it
        return age <= KEPT_S

    def _read_soon(self, shard: str) -> asyncio.Task[None]:
        """Returns the task that reads a lease; several wait for one."""
        task = self._reading.get(shard)
        if task is None:
            task = self._reading[shard] = asyncio.create_task(self._note(shard), name=f"holder of {shard}")
            task.add_done_callback(lambda _: self._reading.pop(shard, None))
        return task

    async def _note(self, shard: str) -> None:
        """Reads a lease once; after a read that fails, waits until the next one may be made."""
        if (seen := self._seen.get(shard)) is not None:
            await asyncio.sleep(max(0.0, seen.at + READ_EVERY_S - self._clock()))
        began = self._clock()
        try:
            holder = await asyncio.to_thread(self._read, shard)
        except KainiteError as error:
            self._tell(error)
            await asyncio.sleep(READ_EVERY_S)
            return
        self._failing = False
        self._seen[shard] = _Seen(holder, began)
        if len(self._seen) > MOST_KEPT:
            del self._seen[next(iter(self._seen))]

    def _tell(self, error: KainiteError) -> None:
        if not self._failing:
            self._failing = True
            event(_logger, logging.WARNING, "leases not read, appends of other daemons wait: the log's owner needs"
                  " dynamodb:GetItem on the lease table", error=error)  # fmt: skip
