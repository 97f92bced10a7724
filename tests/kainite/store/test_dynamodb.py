"""The log's store on DynamoDB, beyond the contract of every store (test_contract.py)."""

from __future__ import annotations

from typing import Any

from kainite.store.dynamodb import DynamoDBStore
from support.aws_calls import recorded
from support.dynamodb_doubles import on_each_double
from support.names import unique


@on_each_double
def test_a_table_that_is_there_is_not_made_so_that_no_role_must_allow_it(dynamodb: Any) -> None:
    store = DynamoDBStore(dynamodb, unique("log"))
    with recorded("") as first:
        store.create()
    with recorded("") as second:
        store.create()
    assert {call.action for call in first.calls} == {"dynamodb:DescribeTable", "dynamodb:CreateTable"}
    assert {call.action for call in second.calls} == {"dynamodb:DescribeTable"}
