"""A fleet's coordinator items in DynamoDB, in either layout (docs/kcl.md, *KCL 3.x fleets*).

Nothing is created here: a fleet without these items is a 2.x fleet, or consists of Kainite workers alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from kainite.aws.dynamodb import Item, Value, answer
from kainite.aws.failures import Failure
from kainite.base.errors import LeaseTableError, LeaseTableUnavailableError
from kainite.leases.kcl3.coordinator_items import (
    LEADER_KEY,
    MIGRATION_KEY,
    ClientVersion,
    CoordinatorLayout,
    LeaderLock,
    client_version,
    coordinator_key,
    last_report,
    leader_lock,
    worker_entry,
    worker_key,
)
from kainite.settings import LeaseSettings

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

OWNER_INDEX = "LeaseOwnerToLeaseKeyIndex"
"""The lease table's index; only KCL 3 makes it."""


@dataclass(frozen=True, slots=True)
class FleetState:
    """The state of a fleet, as its coordinator items give it.

    Attributes:
        version: the client version that the fleet agreed on.
        layout: where its items are.
        lock: the leader's; None when nobody leads, or the version has no leader.
        leader_report: when the leader reported last, seconds since the epoch by its clock.
    """

    version: ClientVersion
    layout: CoordinatorLayout
    lock: LeaderLock | None = None
    leader_report: int | None = None


class AccessDeniedError(LeaseTableError):
    """The role does not allow to read the coordinator table."""


class CoordinatorTable:
    """Reads the fleet's state and writes this worker's entry. All calls block.

    Raises (every call):
        LeaseTableUnavailableError: the same call may be made again.
        LeaseTableError: the call is refused, or an item is not one of KCL's.
    """

    def __init__(self, dynamodb: DynamoDBClient, settings: LeaseSettings) -> None:
        self._dynamodb = dynamodb
        self._worker = settings.worker_id
        self._lease_table = settings.table
        self._state_table = settings.coordinator_table or f"{settings.application}-CoordinatorState"
        self._workers_table = settings.worker_metrics_table or f"{settings.application}-WorkerMetricStats"

    def read(self) -> FleetState | None:
        """Returns the fleet's state; None in a 2.x fleet, or one of Kainite workers alone.

        Raises:
            AccessDeniedError: no item was found where reading is allowed, and elsewhere it is not allowed.
        """
        denied: AccessDeniedError | None = None
        for layout in (CoordinatorLayout.SPLIT, CoordinatorLayout.SINGLE):
            try:
                item = self._get(self._state_of(layout), coordinator_key(layout, MIGRATION_KEY))
            except AccessDeniedError as error:
                # AWS denies what the role does not name, whether it exists or not: a KCL 3.5 fleet has no such table.
                denied, item = error, None
            if item is not None:
                return self._read(client_version(item), layout)
        if denied is not None:
            raise denied
        return None

    def has_owner_index(self) -> bool:
        """Returns whether a KCL 3 worker has used the lease table: only KCL 3 creates the index."""
        try:
            table = self._call("DescribeTable", lambda: self._dynamodb.describe_table(TableName=self._lease_table))
        except _NoTableError:
            return False
        return any(index.get("IndexName") == OWNER_INDEX for index in table["Table"].get("GlobalSecondaryIndexes", ()))

    def report(self, layout: CoordinatorLayout, now: float) -> None:
        """Reports to the fleet that this worker is there; ``now`` is in seconds since the epoch."""
        entry = worker_entry(layout, now)
        request: dict[str, Any] = {
            "TableName": self._workers_of(layout),
            "Key": worker_key(layout, self._worker),
            "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in entry),
            "ExpressionAttributeNames": {f"#{name}": name for name in entry},
            "ExpressionAttributeValues": {f":{name}": value for name, value in entry.items()},
        }
        try:
            self._call("UpdateItem", lambda: self._dynamodb.update_item(**request))
        except _NoTableError as error:
            # KCL's workers create it just after the fleet's state, so waiting helps.
            raise LeaseTableUnavailableError(f"table {self._workers_of(layout)!r} is not there yet") from error

    def withdraw(self, layout: CoordinatorLayout) -> None:
        """Deletes this worker's entry, so that the leader assigns no more leases to it."""
        request: dict[str, Any] = {"TableName": self._workers_of(layout), "Key": worker_key(layout, self._worker)}
        try:
            self._call("DeleteItem", lambda: self._dynamodb.delete_item(**request))
        except _NoTableError:
            return

    def _read(self, version: ClientVersion, layout: CoordinatorLayout) -> FleetState:
        if not version.assigns:
            return FleetState(version, layout)
        lock = leader_lock(self._get(self._state_of(layout), coordinator_key(layout, LEADER_KEY)))
        entry = None if lock is None else self._get(self._workers_of(layout), worker_key(layout, lock.owner))
        return FleetState(version, layout, lock, last_report(entry))

    def _state_of(self, layout: CoordinatorLayout) -> str:
        return self._state_table if layout is CoordinatorLayout.SPLIT else self._lease_table

    def _workers_of(self, layout: CoordinatorLayout) -> str:
        return self._workers_table if layout is CoordinatorLayout.SPLIT else self._lease_table

    def _get(self, table: str, key: dict[str, Value]) -> Item | None:
        request: dict[str, Any] = {"TableName": table, "Key": key, "ConsistentRead": True}
        try:
            return self._call("GetItem", lambda: self._dynamodb.get_item(**request), table).get("Item")
        except _NoTableError:
            return None

    def _call(self, doing: str, call: Callable[[], T], table: str | None = None) -> T:
        return answer(doing, call, partial(_error, table or self._workers_table))


def _error(table: str, doing: str, failure: Failure, error: Exception) -> Exception:
    where = f"table {table!r}: {doing}"
    if failure is Failure.GONE:
        return _NoTableError()
    if failure.is_retryable:
        return LeaseTableUnavailableError(f"{where} failed for now: {error}")
    if failure is Failure.DENIED:
        return AccessDeniedError(f"{where} is denied: allow it in the worker's role ({error})")
    return LeaseTableError(f"{where} is refused: {error}")


class _NoTableError(Exception):
    """The table does not exist."""
