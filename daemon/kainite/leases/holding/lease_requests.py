"""Carries out what people ask about the leases that this worker holds (:mod:`kainite.leases.table.request`).

The renewer looks after each renewal; the request came with the renewal's answer, or a checkpoint's. The shard's
consumer carries it out: :class:`~.held_leases.RestartWanted` and :class:`~.held_leases.HandingOver` tell it so.

A move ends with one write, the hand-off, after the child has ended and the lease is none of this worker's leases any
more. It is written only if the lease and its request are as this worker has them. Otherwise, and where it is not
answered, the lease is left as it is: in another worker's name, since it was lost; in the target's, which takes it; or
in this worker's, which takes it again and says so. A hand-off that arrives behind that take does nothing, since the
take has raised the counter. A release would not be safe in that way, so there is none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kainite.base.logs import event
from kainite.leases.holding.held_leases import CurrentSettings, HandingOver, HeldLease, HeldLeases, RestartWanted
from kainite.leases.holding.writing import writing
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.table.request import LeaseRequest, RequestKind, RequestState

logger = logging.getLogger(__name__)

SILENT_TIMES = 3
"""After how many failover times a move is refused whose target has not answered: its rounds are two of them apart."""


class LeaseRequests:
    """What is asked about the held leases.

    Args:
        table: the lease table.
        held_leases: the leases.
        settings: the settings in use.
        clock: the same as that of ``held_leases``.
    """

    def __init__(
        self, table: LeaseTable, held_leases: HeldLeases, settings: CurrentSettings, clock: Callable[[], float]
    ) -> None:
        self._table = table
        self._held_leases = held_leases
        self._settings = settings
        self._clock = clock
        self._waits: dict[str, tuple[str, float]] = {}  # by shard: the move that waits for its target, and since when

    async def look(self, held: HeldLease) -> None:
        """Carries out the next step of what is asked about a lease.

        Raises:
            LeaseTableError: the table was not written; the next look tries again, if the error is retryable.
        """
        request = held.lease.request
        if request is None or request.ended:
            self._waits.pop(held.shard_id, None)
        elif held.verdict is not None and held.verdict.id == request.id:
            await self._write(held, request, held.verdict)
        elif request.id == held.found:
            await self._write(held, request, self._found(held, request))
        elif request.what is RequestKind.RESTART:
            await self._restart(held, request)
        else:
            await self._move(held, request)

    async def hand_off(self, held: HeldLease) -> None:
        """Gives a lease to the worker that a person moves it to; the lease's consumer has ended.

        Nothing happens when the lease is lost already.

        Raises:
            LeaseTableError: the table was not written.
        """
        moving = held.moving
        assert moving is not None
        async with writing(self._held_leases, held):
            if not self._held_leases.begin_release(held):
                return
            after = moving.now(RequestState.HANDED, counter=held.lease.counter + 1)
            try:
                moved = await asyncio.to_thread(self._table.requests.move, held.lease, moving, after)
            finally:
                self._held_leases.end_release(held.shard_id)
        event(
            logger, logging.INFO, "lease moved",
            shard=held.shard_id, to=moving.to, by=moving.by, checkpoint=held.checkpoint, handed=moved is not None,
        )  # fmt: skip

    async def _restart(self, held: HeldLease, request: LeaseRequest) -> None:
        if not held.started:
            refused = "no child is at work: the shard waits for its parents to be read"
            await self._write(held, request, request.now(RequestState.REFUSED, refused))
            return
        working = await self._working(held, request)
        if working is not None and held.begun != working.id:
            held.begun = working.id
            self._held_leases.events.put_nowait(RestartWanted(held, working))

    async def _move(self, held: HeldLease, request: LeaseRequest) -> None:
        mine = self._settings.leases.worker_id
        if request.to == mine:
            await self._write(held, request, request.now(RequestState.DONE, f"worker {mine} holds the lease already"))
        elif held.hand_over_by is not None:
            refused = f"the fleet's leader is moving the lease to {held.lease.owner}"
            await self._write(held, request, request.now(RequestState.REFUSED, refused))
        elif request.state is not RequestState.ASKED:
            working = await self._working(held, request)
            if working is not None and held.moving is None:
                await self._begin(held, working)
        elif self._is_silent(held.shard_id, request):
            refused = f"worker {request.to} does not answer: it does not run, or is no Kainite daemon"
            await self._write(held, request, request.now(RequestState.REFUSED, refused))

    async def _working(self, held: HeldLease, request: LeaseRequest) -> LeaseRequest | None:
        """Notes that the holder has begun; returns the request then.

        A request that reads so already was noted by this worker, which has not seen the write's answer.
        """
        if request.state is RequestState.WORKING:
            return request
        return await self._write(held, request, request.now(RequestState.WORKING))

    async def _begin(self, held: HeldLease, working: LeaseRequest) -> None:
        held.moving = working
        event(logger, logging.INFO, "lease is moved", shard=held.shard_id, to=working.to, by=working.by)
        if held.started:
            self._held_leases.events.put_nowait(HandingOver(held))
        else:
            await self.hand_off(held)

    def _is_silent(self, shard_id: str, request: LeaseRequest) -> bool:
        """Returns whether the target has had its time, by this host's clock."""
        waits_for, since = self._waits.get(shard_id, ("", 0.0))
        if waits_for != request.id:
            self._waits[shard_id] = request.id, self._clock()
            return False
        leases = self._settings.leases
        return self._clock() - since > max(SILENT_TIMES * leases.failover, 2 * (leases.assignment_interval or 0.0))

    def _found(self, held: HeldLease, request: LeaseRequest) -> LeaseRequest:
        """Returns the answer to a request that the lease had when it was taken."""
        mine = self._settings.leases.worker_id
        if request.what is RequestKind.RESTART:
            said = f"worker {mine} has taken the lease meanwhile, and starts a child of its own"
            return request.now(RequestState.DONE, said)
        if request.to == mine:
            return request.now(RequestState.DONE, f"worker {mine} holds the lease, from checkpoint {held.checkpoint}")
        said = f"worker {mine} has taken the lease before {request.to} had it; ask again if it is still to be moved"
        return request.now(RequestState.REFUSED, said)

    async def _write(self, held: HeldLease, request: LeaseRequest, after: LeaseRequest) -> LeaseRequest | None:
        """Changes a request; returns None when it is another one by now, or the lease is another worker's."""
        async with writing(self._held_leases, held):
            if held not in self._held_leases:
                return None
            stored = await asyncio.to_thread(
                self._table.requests.answer, held.shard_id, request, after, held.lease.owner
            )
            if held.verdict is after:
                held.verdict = None
            held.lease = held.lease.with_request(stored.request if stored else None)
        return None if stored is None else after
