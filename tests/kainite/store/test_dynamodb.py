"""The log's store on DynamoDB, beyond the contract of every store (test_contract.py)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.store.dynamodb import LEFT_OVER_PAUSES, DynamoDBStore
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
    assert {action for action, _ in first.calls} == {"dynamodb:DescribeTable", "dynamodb:CreateTable"}
    assert {action for action, _ in second.calls} == {"dynamodb:DescribeTable"}


class Throttling:
    """Leaves all writes of a batch over, as DynamoDB may."""

    def __init__(self, times: int) -> None:
        self.left = times

    def batch_write_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        self.left -= 1
        return {"UnprocessedItems": RequestItems if self.left >= 0 else {}}


def test_left_over_writes_are_sent_again_after_growing_pauses() -> None:
    pauses: list[float] = []
    store = DynamoDBStore(cast(Any, Throttling(3)), "log", pauses.append)
    store._delete("0#L", ["a", "b"])  # noqa: SLF001
    assert pauses == list(LEFT_OVER_PAUSES[1:4])


def test_writes_that_are_left_over_for_ever_fail_as_unavailable() -> None:
    pauses: list[float] = []
    store = DynamoDBStore(cast(Any, Throttling(10**9)), "log", pauses.append)
    with pytest.raises(LogUnavailableError, match="left 2 deletions over"):
        store._delete("0#L", ["a", "b"])  # noqa: SLF001
    assert pauses == list(LEFT_OVER_PAUSES[1:])
