"""The lease table: KCL's operations with KCL's conditions (docs/kcl.md, *Leases*).

A lease changes hands by its counter. Each take, renewal and checkpoint is one UpdateItem that raises the counter, on
the condition that it still has the value that the writer saw last. A writer that meets another value has lost the
lease. A crash between two writes leaves a whole item. Its owner goes on with it, or another worker takes it when the
counter has stood still for the failover time.

A graceful hand-over (KCL 3) leaves the counter unchanged: ``leaseOwner`` becomes the next worker and
``checkpointOwner`` the present one. The present one sees that at its next renewal. It still renews and checkpoints,
until it writes :meth:`LeaseTable.assign` or the leader does so for it.

Differences from KCL:

* A write whose answer was lost is recognised for checkpoints too, not only for renewals.
* Scans are strongly consistent.
* A release, and the end of a hand-over, have the counter in their condition: one that arrives late neither frees a
  lease that was taken again, nor ends a later hand-over between the same two workers while the former owner reads.
* A counter that moved by one under the same owner counts as such a write only when an answer was in fact lost. KCL
  always assumes so, and two workers under one id then go on side by side for ever.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from kainite.aws.dynamodb import ConditionFailedError, decimal, number, pages, text, texts
from kainite.base.checkpoint import Checkpoint
from kainite.kinesis.shards import HashRange
from kainite.leases.table.calls import TableCalls
from kainite.leases.table.collected_into import COLLECTED_INTO, LogNote
from kainite.leases.table.create import create_table
from kainite.leases.table.lease import Lease, from_item, is_lease, shard_ids, to_item
from kainite.leases.table.request import MOVED_TO
from kainite.leases.table.request_calls import EXISTS, RequestCalls, as_read

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

PENDING = "pendingCheckpoint, pendingCheckpointSubSequenceNumber, pendingCheckpointState"


class LeaseTable:
    """Operations on the lease table ``name``. All calls block; threads may share the object.

    Args:
        dynamodb: a client.
        name: the table's.
        log: as the attribute.

    Attributes:
        requests: what people ask of the leases' holders.
        log: the log into which the worker that takes and renews leases collects units of work; empty where it collects
            none.

    Raises (every call):
        LeaseTableUnavailableError: the same call may be made again.
        LeaseTableError: the table is missing, access is denied, or an item is not one of KCL's.
    """

    def __init__(self, dynamodb: DynamoDBClient, name: str, log: str = "") -> None:
        self.name = name
        self.log = log
        self._dynamodb = dynamodb
        self._calls = TableCalls(dynamodb, name)
        self.requests = RequestCalls(self._calls)

    def create(self, *, deletion_protection: bool = False, point_in_time_recovery: bool = False) -> None:
        """Creates the table where it is missing, and waits until it is usable."""
        create_table(
            self._calls, deletion_protection=deletion_protection, point_in_time_recovery=point_in_time_recovery
        )

    def scan(self) -> tuple[Lease, ...]:
        """Returns all leases; KCL 3.5's other items in the table are passed over."""
        request: dict[str, Any] = {"TableName": self.name, "ConsistentRead": True}

        def scan(**request: Any) -> Any:
            return self._calls.call("Scan", lambda: self._dynamodb.scan(**request))

        return tuple(from_item(item) for page in pages(scan, request) for item in page["Items"] if is_lease(item))

    def get(self, key: str) -> Lease | None:
        """Returns the lease ``key``; None when there is none."""
        item = self._calls.call(
            "GetItem",
            lambda: self._dynamodb.get_item(TableName=self.name, Key={"leaseKey": text(key)}, ConsistentRead=True),
        ).get("Item")
        return from_item(item) if item and is_lease(item) else None

    def holder(self, key: str) -> str | None:
        """Returns the worker that may renew and checkpoint the lease ``key``; None when there is none."""
        lease = self.get(key)
        return lease.actual_owner if lease else None

    def put_new(self, lease: Lease) -> bool:
        """Creates a lease; returns False when it exists already."""
        try:
            self._calls.call(
                "PutItem",
                lambda: self._dynamodb.put_item(
                    TableName=self.name,
                    Item=to_item(lease),
                    ConditionExpression="attribute_not_exists(leaseKey)",
                ),
            )
        except ConditionFailedError:
            return False
        return True

    def take(self, lease: Lease, worker: str) -> Lease | None:
        """Makes ``worker`` the owner; returns None when the lease has been written since it was read."""
        switched = lease.owner is not None and lease.owner != worker
        noted, values = self._note(worker)
        update = f"SET leaseOwner = :worker, leaseCounter = :next{noted} REMOVE checkpointOwner"
        if lease.moved_to not in (None, worker):
            update += f", {MOVED_TO}"  # it stays with the worker that it was moved to, not with any other one
        if lease.log_note is not None and not noted:
            update += f", {COLLECTED_INTO}"
        values |= {":worker": text(worker), **_counters(lease)}
        if switched:
            update += " ADD ownerSwitchesSinceCheckpoint :one"
            values[":one"] = number(1)
        return self._try(lease.key, update, "leaseCounter = :counter", values)

    def renew(self, lease: Lease, *, doubtful: bool = True, throughput: float | None = None) -> Lease | None:
        """Raises the counter; returns None when the lease is lost.

        A hand-over that has begun is adopted: the returned lease then has this worker as its ``checkpoint_owner``.

        Args:
            lease: as last read or written.
            doubtful: the answer to an earlier write may have been lost.
            throughput: the shard's load, KB/s, for KCL 3's leader; None leaves the stored value.
        """
        try:
            return self._renew(lease, throughput)
        except ConditionFailedError as failed:
            stored = self._found(lease, failed)
            unsure = doubtful or failed.retried
        if stored is None or not _still_ours(lease, stored, unsure):
            return None
        if stored.checkpoint_owner == lease.checkpoint_owner:
            return stored if stored.counter == lease.counter + 1 else None
        try:
            return self._renew(stored, throughput)
        except ConditionFailedError:
            return None

    def checkpoint(self, lease: Lease, checkpoint: Checkpoint, *, doubtful: bool = True) -> Lease | None:
        """Stores a checkpoint, which also renews the lease; returns None when the lease is lost.

        An earlier write of the same owner whose answer was never seen (the connection broke, or the caller stopped
        waiting) does not count as a loss. The checkpoint is then stored on top of that write, but never below it: the
        call that nobody waits for any more may be the one that arrives last.

        Args:
            lease: as last read or written.
            checkpoint: the new checkpoint.
            doubtful: the answer to an earlier write may have been lost.
        """
        try:
            return self._store(lease, checkpoint)
        except ConditionFailedError as failed:
            stored = self._found(lease, failed)
            unsure = doubtful or failed.retried
        if stored is None or stored.counter != lease.counter + 1 or not _still_ours(lease, stored, unsure):
            return None
        if checkpoint <= stored.checkpoint:
            return stored if stored.checkpoint == checkpoint else None
        try:
            return self._store(stored, checkpoint)
        except ConditionFailedError:
            return None

    def evict(self, lease: Lease) -> bool:
        """Releases a lease so that anybody may take it at once; returns False when it was written by now.

        During a hand-over the next owner may take it, also when the hand-over began after the lease was read. The
        counter is part of the condition: a release that arrives when its sender waits no more, and has taken the lease
        again, does nothing. A renewal whose answer was lost leaves the lease to expire.
        """
        try:
            self._evict(lease)
        except ConditionFailedError as failed:
            stored = self._found(lease, failed)
            if stored is None or lease.owner is None or lease.checkpoint_owner:
                return False
            begun = stored.checkpoint_owner == lease.owner and stored.counter == lease.counter
            return begun and self.evict(stored)
        return True

    def handoff(self, lease: Lease, worker: str) -> Lease | None:
        """Begins a graceful hand-over to ``worker`` (the leader does that); returns None when the owner has changed."""
        update = "SET leaseOwner = :new, checkpointOwner = :owner"
        condition = f"{EXISTS} AND leaseOwner = :owner AND attribute_not_exists(checkpointOwner)"
        values = {":new": text(worker), ":owner": text(lease.owner or "")}
        return self._try(lease.key, update, condition, values)

    def assign(self, lease: Lease, worker: str) -> Lease | None:
        """Makes ``worker`` the owner and ends a hand-over; returns None when the lease was written since it was read.

        A renewal whose answer was lost counts as such a write: renew once more before.
        """
        condition, values = as_read(lease)
        values |= {":new": text(worker), ":one": number(1)}
        update = "SET leaseOwner = :new REMOVE checkpointOwner ADD leaseCounter :one, ownerSwitchesSinceCheckpoint :one"
        return self._try(lease.key, update, condition, values)

    def set_children(self, lease: Lease, children: Collection[str]) -> bool:
        """Stores the shards that follow this one, given by their keys; returns False when the lease is gone."""
        values = {":children": texts(shard_ids(children))}
        return self._try(lease.key, "SET childShardIds = :children", EXISTS, values) is not None

    def set_hash_range(self, key: str, keys: HashRange) -> bool:
        """Stores the shard's hash keys, which KCL 1 and early KCL 2 left out; returns False when the lease is gone."""
        update = "SET startingHashKey = :start, endingHashKey = :end"
        return self._try(key, update, EXISTS, _hash_keys(keys)) is not None

    def delete(self, key: str) -> None:
        """Deletes the lease ``key``, whoever holds it."""
        self._calls.call(
            "DeleteItem", lambda: self._dynamodb.delete_item(TableName=self.name, Key={"leaseKey": text(key)})
        )

    def delete_unchanged(self, lease: Lease) -> bool:
        """Deletes a lease; returns False when it was taken or written since it was read, or is gone."""
        request: dict[str, Any] = {
            "TableName": self.name,
            "Key": {"leaseKey": text(lease.key)},
            "ConditionExpression": "leaseCounter = :counter",
            "ExpressionAttributeValues": {":counter": number(lease.counter)},
        }
        try:
            self._calls.call("DeleteItem", lambda: self._dynamodb.delete_item(**request))
        except ConditionFailedError:
            return False
        return True

    def _renew(self, lease: Lease, throughput: float | None) -> Lease:
        noted, values = self._note(lease.actual_owner or "")
        update, condition = f"SET leaseCounter = :next{noted}", "leaseCounter = :counter"
        values |= _counters(lease)
        if lease.checkpoint_owner is None:
            condition += " AND attribute_not_exists(checkpointOwner)"
        if throughput is not None:
            update += ", throughputKBps = :throughput"
            values[":throughput"] = decimal(throughput)
        return from_item(self._calls.update(lease.key, update, condition, values))

    def _store(self, lease: Lease, checkpoint: Checkpoint) -> Lease:
        update = (
            "SET leaseCounter = :next, #checkpoint = :checkpoint, checkpointSubSequenceNumber = :sub,"
            " ownerSwitchesSinceCheckpoint = :zero"
        )
        values = {
            ":checkpoint": text(checkpoint.sequence),
            ":sub": number(checkpoint.sub),
            ":zero": number(0),
            **_counters(lease),
        }
        if lease.children:
            update += ", childShardIds = :children"
            values[":children"] = texts(shard_ids(lease.children))
        if lease.hash_range:
            update += ", startingHashKey = :start, endingHashKey = :end"
            values |= _hash_keys(lease.hash_range)
        update += f" REMOVE {PENDING}"
        names = {"#checkpoint": "checkpoint"}
        return from_item(self._calls.update(lease.key, update, "leaseCounter = :counter", values, names))

    def _note(self, worker: str) -> tuple[str, dict[str, Any]]:
        """Returns what an update sets beside the counter, so that other workers know this one's log; and its values."""
        if not self.log:
            return "", {}
        return f", {COLLECTED_INTO} = :log", {":log": text(LogNote(worker, self.log).as_text())}

    def _evict(self, lease: Lease) -> None:
        condition, values = as_read(lease)
        gone = "checkpointOwner" if lease.checkpoint_owner else "leaseOwner"
        self._calls.update(lease.key, f"REMOVE {gone} ADD leaseCounter :one", condition, {":one": number(1), **values})

    def _try(self, key: str, update: str, condition: str, values: dict[str, Any]) -> Lease | None:
        try:
            return from_item(self._calls.update(key, update, condition, values))
        except ConditionFailedError:
            return None

    def _found(self, lease: Lease, failed: ConditionFailedError) -> Lease | None:
        return from_item(failed.item) if failed.item else self.get(lease.key)


def _still_ours(lease: Lease, stored: Lease, unsure: bool) -> bool:
    """Returns whether only this worker has raised the counter since: by one at most, if an answer was lost."""
    raised = stored.counter - lease.counter
    return stored.actual_owner == lease.actual_owner and (raised == 0 or (unsure and raised == 1))


def _counters(lease: Lease) -> dict[str, Any]:
    return {":counter": number(lease.counter), ":next": number(lease.counter + 1)}


def _hash_keys(keys: HashRange) -> dict[str, Any]:
    return {":start": text(str(keys.start)), ":end": text(str(keys.end))}
