"""The lease table: KCL's operations with KCL's conditions (reference/kcl_multilang.md §3).

A lease changes hands by nothing but its counter: each take, renewal and checkpoint is one
UpdateItem that raises it, on the condition that it still is what the writer saw last. Whoever
meets another counter has lost the lease. A crash between two of them leaves a whole item that
either the owner goes on with or another worker takes when the counter has stood still for the
failover time.

Where KCL differs: a write whose answer was lost is recognised for checkpoints too, not only for
renewals, and scans are strongly consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from kainite.errors import LeaseTableError, LeaseTableUnavailableError
from kainite.kinesis.failures import Failure, classify, error_code
from kainite.leases.checkpoint import Checkpoint
from kainite.leases.lease import Lease, from_item, is_lease, to_item

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

PENDING = "pendingCheckpoint, pendingCheckpointSubSequenceNumber, pendingCheckpointState"


class LeaseTable:
    """All calls block; threads may share it.

    Every call may raise :class:`LeaseTableUnavailableError` (the same call may be made again) and
    :class:`LeaseTableError` (the table is missing, access is denied, an item is none of KCL's).
    """

    def __init__(self, dynamodb: DynamoDBClient, name: str) -> None:
        self.name = name
        self._dynamodb = dynamodb

    def create(self) -> None:
        """Make the table where it is missing, and wait until it is usable."""
        if self._status() is None:
            self._call("CreateTable", self._create)
        if self._status() != "ACTIVE":
            self._call("DescribeTable", self._wait)

    def scan(self) -> tuple[Lease, ...]:
        """All leases; KCL 3.5's other items in the table are passed over."""
        leases: list[Lease] = []
        request: dict[str, Any] = {"TableName": self.name, "ConsistentRead": True}
        while True:
            page = self._call("Scan", lambda: self._dynamodb.scan(**request))
            leases += [from_item(item) for item in page["Items"] if is_lease(item)]
            if not page.get("LastEvaluatedKey"):
                return tuple(leases)
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def get(self, key: str) -> Lease | None:
        item = self._call(
            "GetItem",
            lambda: self._dynamodb.get_item(TableName=self.name, Key={"leaseKey": {"S": key}}, ConsistentRead=True),
        ).get("Item")
        return from_item(item) if item and is_lease(item) else None

    def put_new(self, lease: Lease) -> bool:
        """Create a lease; False when there is one already."""
        try:
            self._call(
                "PutItem",
                lambda: self._dynamodb.put_item(
                    TableName=self.name,
                    Item=to_item(lease),
                    ConditionExpression="attribute_not_exists(leaseKey)",
                ),
            )
        except _ConditionFailedError:
            return False
        return True

    def take(self, lease: Lease, worker: str) -> Lease | None:
        """Make ``worker`` the owner; None when the lease has moved since it was read."""
        switched = lease.owner is not None and lease.owner != worker
        update = "SET leaseOwner = :worker, leaseCounter = :next REMOVE checkpointOwner"
        values: dict[str, Any] = {":worker": {"S": worker}, **_counters(lease)}
        if switched:
            update += " ADD ownerSwitchesSinceCheckpoint :one"
            values[":one"] = {"N": "1"}
        try:
            return self._update(lease.key, update, "leaseCounter = :counter", values)
        except _ConditionFailedError:
            return None

    def renew(self, lease: Lease) -> Lease | None:
        """Raise the counter; None when the lease is lost."""
        condition = "leaseCounter = :counter AND attribute_not_exists(checkpointOwner)"
        try:
            return self._update(lease.key, "SET leaseCounter = :next", condition, _counters(lease))
        except _ConditionFailedError as failed:
            return self._if_done_after_all(lease, failed)

    def checkpoint(self, lease: Lease, checkpoint: Checkpoint) -> Lease | None:
        """Store a checkpoint, which also renews the lease; None when the lease is lost.

        An earlier write of the owner's own, whose answer it never saw (the connection broke, or it
        stopped waiting), is not taken for a loss: the checkpoint is then stored on top of it, but never
        below it: the call that nobody waits for any more may be the one that comes last.
        """
        try:
            return self._store(lease, checkpoint)
        except _ConditionFailedError as failed:
            stored = self._if_done_after_all(lease, failed)
        if stored is None or checkpoint <= stored.checkpoint:
            return stored if stored and stored.checkpoint == checkpoint else None
        try:
            return self._store(stored, checkpoint)
        except _ConditionFailedError:
            return None

    def evict(self, lease: Lease) -> bool:
        """Give a lease up so that anybody may take it at once; False when it is another's by now."""
        owned = "leaseOwner = :owner" if lease.owner else "attribute_not_exists(leaseOwner)"
        values: dict[str, Any] = {":one": {"N": "1"}}
        if lease.owner:
            values[":owner"] = {"S": lease.owner}
        try:
            self._update(
                lease.key, "REMOVE leaseOwner ADD leaseCounter :one", f"attribute_exists(leaseKey) AND {owned}", values
            )
        except _ConditionFailedError:
            return False
        return True

    def reset(self, lease: Lease, checkpoint: Checkpoint) -> Lease | None:
        """Set the checkpoint by hand, and take the lease from its owner; None when it has moved since it was read."""
        update = (
            "SET leaseCounter = :next, #checkpoint = :checkpoint, checkpointSubSequenceNumber = :sub,"
            f" ownerSwitchesSinceCheckpoint = :zero REMOVE leaseOwner, checkpointOwner, {PENDING}"
        )
        try:
            return self._update(lease.key, update, "leaseCounter = :counter", *_checkpoint_values(lease, checkpoint))
        except _ConditionFailedError:
            return None

    def set_children(self, lease: Lease, children: Collection[str]) -> bool:
        """Note the shards that go on from this one; False when the lease is gone."""
        values = {":children": {"SS": sorted(children)}}
        try:
            self._update(lease.key, "SET childShardIds = :children", "attribute_exists(leaseKey)", values)
        except _ConditionFailedError:
            return False
        return True

    def delete(self, key: str) -> None:
        self._call("DeleteItem", lambda: self._dynamodb.delete_item(TableName=self.name, Key={"leaseKey": {"S": key}}))

    def _store(self, lease: Lease, checkpoint: Checkpoint) -> Lease:
        update = (
            "SET leaseCounter = :next, #checkpoint = :checkpoint, checkpointSubSequenceNumber = :sub,"
            f" ownerSwitchesSinceCheckpoint = :zero REMOVE {PENDING}"
        )
        return self._update(lease.key, update, "leaseCounter = :counter", *_checkpoint_values(lease, checkpoint))

    def _if_done_after_all(self, lease: Lease, failed: _ConditionFailedError) -> Lease | None:
        """The lease as stored, if the refused write was ours already: its answer had been lost."""
        stored = from_item(failed.item) if failed.item else self.get(lease.key)
        done = stored is not None and stored.owner == lease.owner and stored.counter == lease.counter + 1
        return stored if done else None

    def _update(
        self,
        key: str,
        update: str,
        condition: str,
        values: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
    ) -> Lease:
        request: dict[str, Any] = {
            "TableName": self.name,
            "Key": {"leaseKey": {"S": key}},
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if names:
            request["ExpressionAttributeNames"] = names
        return from_item(self._call("UpdateItem", lambda: self._dynamodb.update_item(**request))["Attributes"])

    def _status(self) -> str | None:
        def describe() -> str | None:
            try:
                return self._dynamodb.describe_table(TableName=self.name)["Table"].get("TableStatus")
            except self._dynamodb.exceptions.ResourceNotFoundException:
                return None

        return self._call("DescribeTable", describe)

    def _create(self) -> None:
        try:
            self._dynamodb.create_table(
                TableName=self.name,
                AttributeDefinitions=[{"AttributeName": "leaseKey", "AttributeType": "S"}],
                KeySchema=[{"AttributeName": "leaseKey", "KeyType": "HASH"}],
                BillingMode="PAY_PER_REQUEST",
            )
        except self._dynamodb.exceptions.ResourceInUseException:
            return  # another worker was faster

    def _wait(self) -> None:
        waiter = self._dynamodb.get_waiter("table_exists")
        waiter.wait(TableName=self.name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})

    def _call(self, doing: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and error_code(error) == "ConditionalCheckFailedException":
                raise _ConditionFailedError(error.response.get("Item")) from error
            raise self._error(doing, error) from error

    def _error(self, doing: str, error: Exception) -> LeaseTableError:
        if isinstance(error, WaiterError) or classify(error) in (Failure.THROTTLED, Failure.PASSING):
            return LeaseTableUnavailableError(f"lease table {self.name!r}: {doing} failed for now: {error}")
        if classify(error) is Failure.GONE:
            return LeaseTableError(f"lease table {self.name!r} does not exist: was it deleted? start the daemon again")
        return LeaseTableError(f"lease table {self.name!r}: {doing} is refused: {error}")


class _ConditionFailedError(Exception):
    """Another worker was there before; ``item`` is what stands there, where the store tells."""

    def __init__(self, item: Any) -> None:
        super().__init__(item)
        self.item = item


def _counters(lease: Lease) -> dict[str, Any]:
    return {":counter": {"N": str(lease.counter)}, ":next": {"N": str(lease.counter + 1)}}


def _checkpoint_values(lease: Lease, checkpoint: Checkpoint) -> tuple[dict[str, Any], dict[str, str]]:
    values = {
        ":checkpoint": {"S": checkpoint.sequence},
        ":sub": {"N": str(checkpoint.sub)},
        ":zero": {"N": "0"},
        **_counters(lease),
    }
    return values, {"#checkpoint": "checkpoint"}
