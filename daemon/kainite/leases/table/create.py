"""Makes the lease table where it is missing.

Only a missing table is touched, so a worker that may not create tables, update backups or both runs on one that
is there. KCL 3's index over owners is not made: nothing here needs it, and a KCL 3 worker adds it itself.

A crash between creation and the backups setting leaves a table without point-in-time recovery, as KCL's would.
"""

from __future__ import annotations

from kainite.leases.table.calls import TableCalls


def create_table(calls: TableCalls, *, deletion_protection: bool = False, point_in_time_recovery: bool = False) -> None:
    """Create the table unless it is there, and wait until it is usable; blocks.

    Raises:
        LeaseTableError: it may not be created, or is not usable in time (retryable).
    """
    status = _status(calls)
    created = status is None and calls.call("CreateTable", lambda: _create(calls, deletion_protection))
    if _status(calls) != "ACTIVE":
        waiter = calls.dynamodb.get_waiter("table_exists")
        limits = {"Delay": 1, "MaxAttempts": 120}
        calls.call("DescribeTable", lambda: waiter.wait(TableName=calls.name, WaiterConfig=limits))  # type: ignore[arg-type]
    if created and point_in_time_recovery:
        calls.call("UpdateContinuousBackups", lambda: _recover(calls))


def _status(calls: TableCalls) -> str | None:
    def describe() -> str | None:
        try:
            return calls.dynamodb.describe_table(TableName=calls.name)["Table"].get("TableStatus")
        except calls.dynamodb.exceptions.ResourceNotFoundException:
            return None

    return calls.call("DescribeTable", describe)


def _create(calls: TableCalls, deletion_protection: bool) -> bool:
    """Whether it was this call that made the table."""
    try:
        calls.dynamodb.create_table(
            TableName=calls.name,
            AttributeDefinitions=[{"AttributeName": "leaseKey", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "leaseKey", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
            DeletionProtectionEnabled=deletion_protection,
        )
    except calls.dynamodb.exceptions.ResourceInUseException:
        return False
    return True


def _recover(calls: TableCalls) -> None:
    calls.dynamodb.update_continuous_backups(
        TableName=calls.name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
