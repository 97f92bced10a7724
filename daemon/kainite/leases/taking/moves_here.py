"""Answers the moves whose target is this worker (:mod:`kainite.leases.table.request`), in each round of the taker.

The holder of a lease gives it away only when the target has said that it will take it. So nobody has to know from afar
whether a worker is alive: a worker that has no lease yet, such as a spare one, shows it by its answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from kainite.base.logs import event
from kainite.base.words import counted
from kainite.leases.holding.held_leases import CurrentSettings, HeldLeases
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.table.request import LeaseRequest, RequestKind, RequestState

logger = logging.getLogger(__name__)

EXPECTED_S: Final = 60.0
"""For how many seconds after its acceptance a lease is looked for at short intervals."""

UNDER_WAY: Final = (RequestState.ACCEPTED, RequestState.WORKING, RequestState.HANDED)


class MovesHere:
    """The moves to this worker.

    Args:
        table: the lease table.
        held_leases: the leases of this worker.
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
        self._accepted: dict[str, float] = {}  # by a request's id: until when its lease is expected
        self._expects = False

    @property
    def rest(self) -> float | None:
        """Returns the seconds until the next look for a lease that is being moved here; None while none is."""
        return min(1.0, self._settings.leases.failover / 6) if self._expects else None

    async def answer(self, leases: Sequence[Lease], refusal: str | None) -> None:
        """Accepts each move to this worker, or refuses it.

        Args:
            leases: a scan of the table.
            refusal: why this worker takes no lease; None when it does.

        Raises:
            LeaseTableError: an answer could not be written; the next round gives it again.
        """
        now = self._clock()
        self._accepted = {id_: until for id_, until in self._accepted.items() if until > now}
        self._expects = False
        for lease in leases:
            request = self._to_this_worker(lease)
            if request is not None and request.state is RequestState.ASKED:
                await self._answer(lease, request, refusal or self._not_read(lease) or self._no_room())
            self._expects |= request is not None and request.state in UNDER_WAY and request.id in self._accepted

    def _to_this_worker(self, lease: Lease) -> LeaseRequest | None:
        request, mine = lease.request, self._settings.leases.worker_id
        if request is None or request.what is not RequestKind.MOVE or request.to != mine:
            return None
        return None if lease.key in self._held_leases.keys else request

    def _not_read(self, lease: Lease) -> str | None:
        return None if lease.stream in self._settings.streams else f"it does not read the stream {lease.stream}"

    def _no_room(self) -> str | None:
        most, held = self._settings.leases.max_leases, len(self._held_leases.keys)
        full = most is not None and held >= most
        return f"it holds {counted(held, 'lease')}, and maxLeasesForWorker is {most}" if full else None

    async def _answer(self, lease: Lease, request: LeaseRequest, refusal: str | None) -> None:
        said = f"worker {request.to} does not take the lease: {refusal}" if refusal else ""
        after = request.now(RequestState.REFUSED if refusal else RequestState.ACCEPTED, said)
        written = await asyncio.to_thread(self._table.requests.answer, lease.key, request, after)
        if written is None:
            return  # withdrawn, or another request by now
        event(logger, logging.INFO, "move of a lease answered", shard=lease.key, by=request.by, refused=refusal)
        if refusal is None:
            self._accepted[request.id] = self._clock() + EXPECTED_S
            self._expects = True
