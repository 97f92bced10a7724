"""Safeguards of what people ask of a lease's holder that are switched off."""

from __future__ import annotations

from typing import Any

from simulation.mutation import Mutation, answering, value

HOLDING = "kainite.leases.holding.lease_requests"


async def _given_at_once(self: Any, held: Any, working: Any) -> None:
    """Gives the lease away without waiting for its child's end."""
    held.moving = working
    await self.hand_off(held)


def _found_by_nobody(original: Any) -> Any:
    """Answers nothing that a lease had when it was taken, and carries out what was begun elsewhere."""

    async def look(self: Any, held: Any) -> None:
        if held.lease.request is not None and held.lease.request.id == held.found:
            return
        await original(self, held)

    return look


OF_LEASES: tuple[Mutation, ...] = (
    Mutation("a lease moves when its child has ended", f"{HOLDING}:LeaseRequests._begin", value(_given_at_once), 20,
             aim="lease requests"),
    Mutation("a target that stays silent is refused", f"{HOLDING}:LeaseRequests._is_silent", answering(False), 20,
             aim="lease requests"),
    Mutation("who takes a lease answers what it finds", f"{HOLDING}:LeaseRequests.look", _found_by_nobody, 40,
             aim="lease requests"),
)  # fmt: skip
