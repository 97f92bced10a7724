"""Writes the requests of people about leases, and the hand-off that a move ends with (:mod:`.request`)."""

from __future__ import annotations

from typing import Any

from kainite.aws.dynamodb import ConditionFailedError, number, text
from kainite.leases.table.calls import TableCalls
from kainite.leases.table.lease import Lease, from_item
from kainite.leases.table.request import MOVED_TO, REQUEST, LeaseRequest

EXISTS = "attribute_exists(leaseKey)"


class RequestCalls:
    """The calls of one lease table that are about requests; each blocks.

    Raises (every call):
        LeaseTableUnavailableError: the same call may be made again.
        LeaseTableError: the table is missing, or access is denied.
    """

    def __init__(self, calls: TableCalls) -> None:
        self._calls = calls

    def ask(self, key: str, request: LeaseRequest) -> Lease | None:
        """Leaves a request for the lease's holder, in place of any other one; returns None when the lease is gone."""
        return self._try(key, f"SET {REQUEST} = :request", EXISTS, {":request": text(request.as_text())})

    def answer(
        self, key: str, request: LeaseRequest, after: LeaseRequest | None, owner: str | None = None
    ) -> Lease | None:
        """Changes a request, or withdraws it; returns None when it does not read as it was read any more.

        Args:
            key: the lease's.
            request: as it was read.
            after: as it is from now on; None to withdraw it.
            owner: only if the lease has this owner; None: whoever owns it.
        """
        condition = f"{REQUEST} = :before"
        values = {":before": text(request.as_text())}
        update = f"REMOVE {REQUEST}" if after is None else f"SET {REQUEST} = :after"
        if after is not None:
            values[":after"] = text(after.as_text())
        if owner is not None:
            condition += " AND leaseOwner = :owner"
            values[":owner"] = text(owner)
        return self._try(key, update, condition, values)

    def move(self, lease: Lease, request: LeaseRequest, after: LeaseRequest) -> Lease | None:
        """Gives a lease to the worker that ``request`` names; its holder has ended its work on it.

        Returns None when the lease was written, or its request has changed, since they were read. The counter is part
        of the condition: a write that arrives when its sender waits no more, and has taken the lease again, does
        nothing.

        Args:
            lease: as last written by its holder.
            request: as it was read.
            after: as it is from now on.
        """
        condition, values = as_read(lease)
        values |= {
            ":new": text(request.to), ":one": number(1),
            ":before": text(request.as_text()), ":after": text(after.as_text()),
        }  # fmt: skip
        update = (
            f"SET leaseOwner = :new, {MOVED_TO} = :new, {REQUEST} = :after"
            " ADD leaseCounter :one, ownerSwitchesSinceCheckpoint :one"
        )
        return self._try(lease.key, update, f"{condition} AND {REQUEST} = :before", values)

    def _try(self, key: str, update: str, condition: str, values: dict[str, Any]) -> Lease | None:
        try:
            return from_item(self._calls.update(key, update, condition, values))
        except ConditionFailedError:
            return None


def owners_as_read(lease: Lease) -> tuple[str, dict[str, Any]]:
    """Returns the condition that a lease's owners are as they were read, and its values."""
    terms, values = [EXISTS], {}
    for name, placeholder, owner in (
        ("leaseOwner", ":owner", lease.owner),
        ("checkpointOwner", ":checkpointOwner", lease.checkpoint_owner),
    ):
        terms.append(f"{name} = {placeholder}" if owner else f"attribute_not_exists({name})")
        if owner:
            values[placeholder] = text(owner)
    return " AND ".join(terms), values


def as_read(lease: Lease) -> tuple[str, dict[str, Any]]:
    """Returns the condition that nobody has written a lease since it was read, and its values."""
    condition, values = owners_as_read(lease)
    return f"{condition} AND leaseCounter = :counter", {**values, ":counter": number(lease.counter)}
