"""One lease table's calls of DynamoDB, with botocore's errors turned into Kainite's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kainite.aws.dynamodb import Item, answer, text
from kainite.aws.failures import Failure
from kainite.base.errors import LeaseTableError, LeaseTableUnavailableError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")


class TableCalls:
    """Calls for the table ``name``; threads may share it."""

    def __init__(self, dynamodb: DynamoDBClient, name: str) -> None:
        self.dynamodb = dynamodb
        self.name = name

    def call(self, doing: str, call: Callable[[], T]) -> T:
        """Makes a call; returns its answer.

        Raises:
            ConditionFailedError: its condition does not hold: another worker wrote the lease before.
            LeaseTableUnavailableError: the same call may be made again.
            LeaseTableError: the table is missing, or access is denied.
        """
        return answer(doing, call, self.error)

    def update(
        self,
        key: str,
        update: str,
        condition: str,
        values: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
    ) -> Item:
        """Makes an UpdateItem of the lease ``key``; returns the whole item as it is afterwards.

        Raises:
            as :meth:`call`.
        """
        request: dict[str, Any] = {
            "TableName": self.name,
            "Key": {"leaseKey": text(key)},
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if names:
            request["ExpressionAttributeNames"] = names
        return self.call("UpdateItem", lambda: self.dynamodb.update_item(**request))["Attributes"]

    def error(self, doing: str, failure: Failure, error: Exception) -> LeaseTableError:
        """Returns the error for an operation that failed."""
        if failure.is_retryable:
            return LeaseTableUnavailableError(f"lease table {self.name!r}: {doing} failed for now: {error}")
        if failure is Failure.GONE:
            return LeaseTableError(
                f"lease table {self.name!r} does not exist: check applicationName, tableName and the region; "
                f"a daemon makes it when it starts"
            )
        return LeaseTableError(f"lease table {self.name!r}: {doing} is refused: {error}")
