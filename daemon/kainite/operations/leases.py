"""Operations on one lease: its child is restarted, or the lease is moved to another worker.

The request stands on the lease's item, where its holder finds it (:mod:`kainite.leases.table.request` has the states,
and what a crash leaves). The caller waits until it has ended. A request that nobody has taken up in time is withdrawn,
so that nothing happens later of which nobody thinks any more; so is one whose caller is interrupted.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from kainite.base.checkpoint import SHARD_END
from kainite.base.errors import KainiteError
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.table.request import LeaseRequest, RequestKind, RequestState
from kainite.log.format.entry import OperationKind, OperationResult
from kainite.operations.operation import LeaseOperation, MoveLease, OperationOutcome, Preview, RestartChild

LOOK_S: Final = 0.25
"""Seconds between two looks at the lease."""

TAKEN_UP_S: Final = 5.0
"""Seconds more, beyond the failover times, within which a request is taken up."""


@dataclass(frozen=True, slots=True)
class AnswerPatience:
    """How long the answer to a request is waited for.

    Attributes:
        taken_up: seconds until somebody begins to carry it out.
        carried_out: seconds from then on.
    """

    taken_up: float
    carried_out: float


def patience(operation: LeaseOperation, failover: float, grace: float) -> AnswerPatience:
    """Returns how long an answer may take.

    Args:
        operation: what is asked.
        failover: seconds: a holder renews three times in it, a worker looks for leases each two of it.
        grace: seconds that a child has to end.
    """
    times = 1 if isinstance(operation, RestartChild) else 3
    return AnswerPatience(times * failover + TAKEN_UP_S, grace + 2 * failover + TAKEN_UP_S)


def preview_lease(table: LeaseTable, operation: LeaseOperation) -> Preview:
    """Returns what an operation on a lease would do now.

    Raises:
        LeaseTableError: the lease cannot be read.
    """
    lease = table.get(operation.shard)
    refused = _refusal(lease, operation)
    if refused is not None or lease is None:
        return Preview(f"nothing: {refused}", asks=False)
    if isinstance(operation, RestartChild):
        return Preview(
            f"end the child of {operation.shard} at worker {lease.owner} as in a crash, and start another one at once: "
            f"it goes on after checkpoint {lease.checkpoint}, and gets the records since then again"
        )
    return Preview(
        f"let worker {lease.owner} end the child of {operation.shard} in good order and give the lease to worker "
        f"{operation.worker}, where it stays until it is moved again or that worker goes"
    )


def kind_and_lease(operation: LeaseOperation) -> tuple[OperationKind, str]:
    """Returns the kind of an operation on a lease, and what it is about, for its record."""
    if isinstance(operation, RestartChild):
        return OperationKind.RESTART_CHILD, operation.shard
    return OperationKind.MOVE_LEASE, f"{operation.shard} to {operation.worker}"


def change_lease(table: LeaseTable, operation: LeaseOperation, who: str, limits: AnswerPatience) -> OperationOutcome:
    """Has an operation on a lease carried out; returns what has become of it.

    Raises:
        LeaseTableError: the table cannot be read or written; the request may stand there.
    """
    lease = table.get(operation.shard)
    if (refused := _refusal(lease, operation)) is not None:
        return OperationOutcome(OperationResult.REFUSED, refused)
    kind, to = (RequestKind.MOVE, operation.worker) if isinstance(operation, MoveLease) else (RequestKind.RESTART, "")
    request = LeaseRequest(uuid4().hex, kind, who, to)
    asked = table.requests.ask(operation.shard, request)
    if asked is None:
        return OperationOutcome(OperationResult.REFUSED, f"shard {operation.shard} has no lease any more")
    try:
        return _WaitedRequest(table, asked, request, limits).outcome()
    except BaseException:
        with contextlib.suppress(KainiteError):
            _withdraw(table, operation.shard, request.id)
        raise


def _refusal(lease: Lease | None, operation: LeaseOperation) -> str | None:
    """Returns why nobody can be asked; None where somebody can."""
    shard = operation.shard
    if lease is None:
        return f"shard {shard} has no lease: see kainite leases"
    if lease.checkpoint == SHARD_END:
        return f"shard {shard} is finished: nobody reads it any more"
    if lease.checkpoint_owner is not None:
        return f"shard {shard} is being handed over from {lease.checkpoint_owner} to {lease.owner}: ask again later"
    if lease.owner is None:
        return f"no worker has shard {shard}: any worker that looks for leases takes it"
    if isinstance(operation, MoveLease) and operation.worker == lease.owner:
        return f"worker {lease.owner} has shard {shard} already"
    return None


def _withdraw(table: LeaseTable, shard: str, request_id: str) -> bool:
    """Withdraws a request that nobody carries out yet; returns whether that was so."""
    while (lease := table.get(shard)) is not None and (now := lease.request) is not None and now.id == request_id:
        if now.state not in (RequestState.ASKED, RequestState.ACCEPTED):
            return False
        if table.requests.answer(shard, now, None) is not None:
            return True
    return False


class _WaitedRequest:
    """A request that is waited for."""

    def __init__(self, table: LeaseTable, lease: Lease, request: LeaseRequest, limits: AnswerPatience) -> None:
        self._table = table
        self._first = lease
        self._request = request
        self._limits = limits

    def outcome(self) -> OperationOutcome:
        """Waits for the request's end."""
        deadline, begun = time.monotonic() + self._limits.taken_up, False
        while True:
            lease = self._table.get(self._first.key)
            now = lease.request if lease is not None else None
            if lease is None or now is None or now.id != self._request.id:
                return self._replaced(lease, now)
            if now.ended:
                done = now.state is RequestState.DONE
                return OperationOutcome(OperationResult.DONE if done else OperationResult.REFUSED, now.said)
            if not begun and now.state in (RequestState.WORKING, RequestState.HANDED):
                deadline, begun = time.monotonic() + self._limits.carried_out, True
            if time.monotonic() > deadline:
                if begun:
                    return OperationOutcome(OperationResult.ASKED, self._under_way(lease, now))
                if _withdraw(self._table, lease.key, now.id):
                    return OperationOutcome(OperationResult.REFUSED, self._not_taken_up(lease, now))
            time.sleep(LOOK_S)

    def _replaced(self, lease: Lease | None, now: LeaseRequest | None) -> OperationOutcome:
        if lease is None:
            said = "the lease is gone: its shard is finished"
        elif now is None:
            said = "the request was withdrawn"
        else:
            said = f"{now.by} has made another request in place of this one"
        return OperationOutcome(OperationResult.REFUSED, f"{said}; it may have been carried out in part")

    def _under_way(self, lease: Lease, now: LeaseRequest) -> str:
        if now.what is RequestKind.RESTART:
            return f"worker {lease.owner} has ended the child, and the next one is not ready yet: it goes on by itself"
        if now.state is RequestState.HANDED:
            return (
                f"worker {self._first.owner} has given the lease away, and {now.to} has not taken it yet: any worker "
                "takes it when it expires"
            )
        return f"worker {self._first.owner} is still ending the child of {lease.key}; the lease goes to {now.to} then"

    def _not_taken_up(self, lease: Lease, now: LeaseRequest) -> str:
        seconds = f"{self._limits.taken_up:g} s"
        if lease.owner is None:
            return f"no worker has the lease any more: {self._first.owner} has released it"
        if lease.counter == self._first.counter:
            return f"worker {lease.owner} has not renewed the lease for {seconds}: it is dead, or stands still"
        if now.what is RequestKind.MOVE and now.state is RequestState.ASKED:
            return (
                f"worker {now.to} has not answered within {seconds}: it does not run, or is no Kainite daemon of "
                "this application"
            )
        return (
            f"worker {lease.owner} renews the lease and has not taken the request up within {seconds}: it is a Java "
            "worker, which knows no such requests"
        )
