"""Calls of one lease table: the item as it is afterwards, and one error of Kainite's for each of botocore's."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.aws.dynamodb import ConditionFailedError
from kainite.aws.failures import Failure
from kainite.base.errors import LeaseTableError, LeaseTableUnavailableError
from kainite.leases.table.calls import TableCalls
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from support.names import unique


def test_an_update_returns_the_whole_item_as_it_is_afterwards(table: LeaseTable, dynamodb: Any) -> None:
    table.put_new(Lease("s"))
    calls = TableCalls(dynamodb, table.name)

    item = calls.update("s", "SET #o = :o", "attribute_exists(leaseKey)", {":o": {"S": "me"}}, {"#o": "leaseOwner"})

    assert (item["leaseOwner"], item["leaseKey"]) == ({"S": "me"}, {"S": "s"})


def test_a_condition_that_does_not_hold_is_told_with_the_item_as_it_was(table: LeaseTable, dynamodb: Any) -> None:
    table.put_new(Lease("s"))

    with pytest.raises(ConditionFailedError) as failed:
        TableCalls(dynamodb, table.name).update("s", "SET x = :x", "x = :x", {":x": {"S": "1"}})

    assert failed.value.item is not None
    assert failed.value.item["leaseKey"] == {"S": "s"}
    assert "x" not in failed.value.item


@pytest.mark.parametrize(
    ("failure", "expected", "words"),
    [
        (Failure.THROTTLED, LeaseTableUnavailableError, "lease table 't': Scan failed for now: boom"),
        (Failure.PASSING, LeaseTableUnavailableError, "lease table 't': Scan failed for now: boom"),
        (Failure.GONE, LeaseTableError, "lease table 't' does not exist: check applicationName, tableName"),
        (Failure.DENIED, LeaseTableError, "lease table 't': Scan is refused: boom"),
    ],
)
def test_a_failure_has_its_error(dynamodb: Any, failure: Failure, expected: type[Exception], words: str) -> None:
    error = TableCalls(dynamodb, "t").error("Scan", failure, ValueError("boom"))

    assert type(error) is expected
    assert str(error).startswith(words)


def test_a_table_that_is_missing_is_named(dynamodb: Any) -> None:
    name = unique("nowhere")

    with pytest.raises(LeaseTableError, match=f"'{name}' does not exist"):
        TableCalls(dynamodb, name).call("Scan", lambda: dynamodb.scan(TableName=name))
