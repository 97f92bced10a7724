"""Creating the lease table where it is missing. DynamoDB Local lacks protection and recovery: moto alone tests them."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.errors import LeaseTableError
from kainite.leases.table.lease_table import LeaseTable
from support.dynamodb_doubles import Double, on_each_double
from support.names import unique


def recovery(dynamodb: Any, table: str) -> Any:
    backups = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    return backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]


@on_each_double
def test_creating_the_table_twice_is_one_table(table: LeaseTable, dynamodb: Any) -> None:
    table.create()
    described = dynamodb.describe_table(TableName=table.name)["Table"]
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert described["KeySchema"] == [{"AttributeName": "leaseKey", "KeyType": "HASH"}]


def test_protection_and_recovery_are_set_on_a_table_that_is_made(dynamodb: Any) -> None:
    table = LeaseTable(dynamodb, unique("leases"))
    table.create(deletion_protection=True, point_in_time_recovery=True)
    table.create(deletion_protection=True, point_in_time_recovery=True)
    assert dynamodb.describe_table(TableName=table.name)["Table"]["DeletionProtectionEnabled"]
    assert recovery(dynamodb, table.name) == "ENABLED"


def test_a_table_that_is_there_is_left_as_it_is(table: LeaseTable, dynamodb: Any) -> None:
    table.create(deletion_protection=True, point_in_time_recovery=True)
    assert not dynamodb.describe_table(TableName=table.name)["Table"].get("DeletionProtectionEnabled")
    assert recovery(dynamodb, table.name) == "DISABLED"


@pytest.mark.parametrize("dynamodb", [Double.DYNAMODB_LOCAL], indirect=True)
def test_recovery_that_the_service_does_not_have_is_an_error_that_says_so(dynamodb: Any) -> None:
    table = LeaseTable(dynamodb, unique("leases"))
    with pytest.raises(LeaseTableError, match="UpdateContinuousBackups is refused"):
        table.create(point_in_time_recovery=True)
