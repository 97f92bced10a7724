"""People who ask for a child's restart or a lease's move, and what must hold of it.

A request is left on the lease's item, as the command leaves it; the command does not wait here. Every one must end,
whatever goes wrong: it is carried out, or refused. And a lease is given away only when its child has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kainite.base.checkpoint import SHARD_END
from kainite.leases.table.lease import from_item
from kainite.leases.table.request import REQUEST, LeaseRequest, RequestKind, RequestState, request_of
from simulation.child import SimPipes

if TYPE_CHECKING:
    from simulation.expressions import Item
    from simulation.lease_items import SimTable
    from simulation.plan import Incident

NOBODY = "nobody"
"""A worker that does not exist: whoever is asked to give it a lease must refuse."""


class LeaseAsking:
    """The requests about leases.

    Args:
        table: the lease table.
        broken: ends the run, with what is wrong.
    """

    def __init__(self, table: SimTable, broken: Callable[[str], None]) -> None:
        self._table = table
        self._broken = broken
        self._asked = 0

    def ask(self, incident: Incident, workers: list[str]) -> None:
        """Leaves a request about a lease that a worker has and whose shard is not finished."""
        leases = sorted(key for key, item in self._table.items.items() if _is_read(item))
        if not leases:
            return
        self._asked += 1
        key, targets = leases[incident.whom % len(leases)], [*workers, NOBODY]
        to = targets[incident.whom // 7 % len(targets)] if incident.what == "move lease" else ""
        kind = RequestKind.MOVE if to else RequestKind.RESTART
        request = LeaseRequest(f"request {self._asked}", kind, "somebody", to)
        self._table.update(key, f"SET {REQUEST} = :r", "attribute_exists(leaseKey)", {":r": _text(request)}, {})

    def is_open(self) -> bool:
        """Tells whether a request has not ended, of a shard that is still read."""
        return any(not request.ended for item in self._table.items.values() if (request := _request(item)) is not None
                   and from_item(item).checkpoint != SHARD_END)  # fmt: skip

    def judge(self, process: str, before: Item, after: Item) -> None:
        """Judges a write to a lease: what ``process`` has changed."""
        old, new = _request(before), _request(after)
        if new is None or new == old or old is None:
            return
        key = after["leaseKey"]["S"]
        if new.state is RequestState.HANDED and (process, key) in SimPipes.living:
            self._broken(f"{process} gives the lease of {key} away while its child is at work")
        if new.state is RequestState.DONE and new.what is RequestKind.MOVE and from_item(after).owner != new.to:
            self._broken(f"the lease of {key} is said to be at {new.to}, and {from_item(after).owner} has it")


def _is_read(item: Any) -> bool:
    lease = from_item(item)
    return lease.owner is not None and lease.checkpoint != SHARD_END


def _request(item: Any) -> LeaseRequest | None:
    return request_of(item[REQUEST]["S"]) if REQUEST in item else None


def _text(request: LeaseRequest) -> dict[str, str]:
    return {"S": request.as_text()}
