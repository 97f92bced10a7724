"""What is written while a transaction of another client fails stays written."""

from __future__ import annotations

import threading
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError
from moto.dynamodb.models import DynamoDBBackend

from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from support.names import unique

PATIENCE_S = 0.3
"""For a put in the middle of a transaction: it takes a hundredth of that, or has to wait for the transaction's end."""


def test_a_transaction_that_fails_undoes_nothing_but_itself(dynamodb: Any) -> None:
    name = unique("transactions")
    DynamoDBFleetStore(dynamodb, name).create()
    key = {"p": {"S": "p"}, "s": {"S": "s"}}
    putting = threading.Thread(target=lambda: dynamodb.put_item(TableName=name, Item=key))
    get_item = DynamoDBBackend.get_item

    def put_meanwhile(self: DynamoDBBackend, *arguments: Any, **more: Any) -> Any:
        if putting.ident is None:  # the transaction has copied the table, and looks at its first item
            putting.start()
            putting.join(PATIENCE_S)
        return get_item(self, *arguments, **more)

    check = {"TableName": name, "Key": {"p": {"S": "?"}, "s": {"S": "?"}}, "ConditionExpression": "attribute_exists(p)"}
    with (
        mock.patch.object(DynamoDBBackend, "get_item", put_meanwhile),
        pytest.raises(ClientError, match="ConditionalCheckFailed"),
    ):
        dynamodb.transact_write_items(TransactItems=[{"ConditionCheck": check}])
    putting.join()
    assert "Item" in dynamodb.get_item(TableName=name, Key=key)
