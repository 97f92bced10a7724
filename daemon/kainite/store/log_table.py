"""The calls of one log table in DynamoDB, each answered or raised as an error of the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import ClientError

from kainite.aws.dynamodb import ConditionFailedError, Item, Value, answer, make_table, pages
from kainite.aws.failures import Failure
from kainite.base.errors import LogError, LogUnavailableError
from kainite.store.dynamodb_items import key, query_arguments

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

LEFT_OVER_PAUSES: Final = (0.02, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds before a batch's unprocessed writes are sent again: after progress, after one round in vain, after two …

After as many rounds in vain as there are pauses the call fails as unavailable.
"""

DELETIONS: Final = 25
"""The most deletions of one call: DynamoDB's bound."""

WAIT_S: Final = 25
"""Seconds to wait for a table that is being created."""


class LogTable:
    """A table of hash keys ``p`` and range keys ``s``. Threads may share it.

    All calls raise LogUnavailableError if DynamoDB does not answer, and LogError if it refuses the call.

    Args:
        client: a boto3 DynamoDB client.
        name: the table's name.
        sleep: waits before writes that DynamoDB left unprocessed are sent again.
    """

    def __init__(self, client: DynamoDBClient, name: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._name = name
        self._sleep = sleep

    def create(self) -> None:
        """Creates the table where it is missing, and waits until it is usable."""
        keys = (("p", "HASH"), ("s", "RANGE"))
        definition: dict[str, Any] = {
            "TableName": self._name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
            "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        }
        make_table(self._client, definition, attempts=WAIT_S, translate=self._error)

    def get(self, p: str, s: str, fields: str | None = None) -> Item | None:
        """Returns an item, or some attributes of it, read strongly; None when there is none."""
        arguments: Any = {"TableName": self._name, "Key": key(p, s), "ConsistentRead": True}
        if fields is not None:
            arguments["ProjectionExpression"] = fields
        return self._answered("GetItem", lambda: self._client.get_item(**arguments)).get("Item")

    def put(self, item: Item, condition: str | None = None, values: Item | None = None) -> Item | None:
        """Puts the item; returns None when it stands, else the item in the way.

        Args:
            item: the item, with its key.
            condition, values: a ConditionExpression and its values; None means that the item is put in any case.
        """
        arguments: Any = {"TableName": self._name, "Item": item}
        if condition is not None:
            arguments |= {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        if values is not None:
            arguments["ExpressionAttributeValues"] = values
        try:
            self._answered("PutItem", lambda: self._client.put_item(**arguments))
        except ConditionFailedError as failed:
            in_way = failed.item or self.get(item["p"]["S"], item["s"]["S"])
            if in_way is None:
                raise LogUnavailableError("the item in the way of a log write vanished; try again") from failed
            return in_way
        return None

    def query(
        self,
        p: str,
        *,
        first: str | None = None,
        last: str | None = None,
        fields: str,
        strong: bool = False,
        backwards: bool = False,
        limit: int | None = None,
    ) -> Iterator[Item]:
        """Yields items of one hash key in order of their range keys, both bounds inclusive."""
        if first is not None and last is not None and first > last:
            return
        arguments = query_arguments(p, first, last)
        arguments |= {"TableName": self._name, "ConsistentRead": strong, "ScanIndexForward": not backwards}
        arguments |= {"ProjectionExpression": fields} | ({"Limit": limit} if limit else {})

        def query(**arguments: Any) -> Any:
            return self._answered("Query", lambda: self._client.query(**arguments))

        for page in pages(query, arguments):
            yield from page["Items"]
            if limit:
                return

    def set(self, p: str, s: str, attribute: str, value: Value) -> None:
        """Sets one attribute of an item, and creates the item if it is missing."""
        arguments: Any = {"TableName": self._name, "Key": key(p, s)}
        arguments |= {"UpdateExpression": f"SET {attribute} = :value", "ExpressionAttributeValues": {":value": value}}
        self._answered("UpdateItem", lambda: self._client.update_item(**arguments))

    def delete(self, p: str, sort_keys: Sequence[str]) -> None:
        """Deletes items of one hash key; those that are missing count as deleted."""
        for start in range(0, len(sort_keys), DELETIONS):
            pending: Any = [{"DeleteRequest": {"Key": key(p, s)}} for s in sort_keys[start : start + DELETIONS]]
            in_vain = 0
            while left := self._write_some(pending):
                in_vain = in_vain + 1 if len(left) == len(pending) else 0
                if in_vain == len(LEFT_OVER_PAUSES):
                    raise LogUnavailableError(f"DynamoDB left {len(left)} deletions over again and again")
                self._sleep(LEFT_OVER_PAUSES[in_vain])
                pending = left

    def _write_some(self, requests: Any) -> Any:
        """Writes a part of the requests; returns those that DynamoDB left over."""
        reply = self._answered(
            "BatchWriteItem", lambda: self._client.batch_write_item(RequestItems={self._name: requests})
        )
        return reply.get("UnprocessedItems", {}).get(self._name, [])

    def _answered(self, operation: str, call: Callable[[], T]) -> T:
        return answer(operation, call, self._error)

    def _error(self, operation: str, failure: Failure, error: Exception) -> LogError:
        if failure is Failure.GONE:
            return LogError(
                f"there is no log table {self._name!r}: check applicationName, logTableName and regionName; "
                "kainite run makes it, with unitsOfWork = true"
            )
        if failure in (Failure.DENIED, Failure.REFUSED):
            return LogError(f"DynamoDB refused a log request: {error}")
        # An UNKNOWN error is waited out as well: the log's owner must not give up because of a new kind of error.
        served = "did not serve a log request" if isinstance(error, ClientError) else "did not answer"
        return LogUnavailableError(f"DynamoDB {served}: {error}")
