"""Creates the lease table where it is missing.

Only a missing table is changed. So a worker whose role does not allow to create tables or to update backups runs on an
existing table. KCL 3's index over owners is not created: nothing here needs it, and a KCL 3 worker adds it itself.

A crash between the creation and the backup setting leaves a table without point-in-time recovery, as KCL's would.
"""

from __future__ import annotations

from typing import Any

from kainite.aws.dynamodb import make_table
from kainite.leases.table.calls import TableCalls

WAIT_S = 120


def create_table(calls: TableCalls, *, deletion_protection: bool = False, point_in_time_recovery: bool = False) -> None:
    """Creates the table unless it exists, and waits until it is usable; blocks.

    Raises:
        LeaseTableError: the creation is not allowed, or the table is not usable in time (retryable).
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
