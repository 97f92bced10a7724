"""Makes the lease table where it is missing.

Only a missing table is touched, so a worker that may not create tables, update backups or both runs on one that
is there. KCL 3's index over owners is not made: nothing here needs it, and a KCL 3 worker adds it itself.

A crash between creation and the backups setting leaves a table without point-in-time recovery, as KCL's would.
"""

from __future__ import annotations

from typing import Any

from kainite.aws.dynamodb import make_table
from kainite.leases.table.calls import TableCalls

WAIT_S = 120


def create_table(calls: TableCalls, *, deletion_protection: bool = False, point_in_time_recovery: bool = False) -> None:
    """Creates the table unless it exists, and blocks until it is usable.

    Raises:
        LeaseTableError: it may not be created, or is not usable in time (retryable).
    """
    definition: dict[str, Any] = {
        "TableName": calls.name,
        "AttributeDefinitions": [{"AttributeName": "leaseKey", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "leaseKey", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": deletion_protection,
    }
    made = make_table(calls.dynamodb, definition, attempts=WAIT_S, translate=calls.error)
    if made and point_in_time_recovery:
        calls.call("UpdateContinuousBackups", lambda: _recover(calls))


def _recover(calls: TableCalls) -> None:
    calls.dynamodb.update_continuous_backups(
        TableName=calls.name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
