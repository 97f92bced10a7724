"""One DynamoDB table's calls, with botocore's errors turned into ours. What the calls mean is :mod:`.table`'s."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from kainite.aws.failures import Failure, classify, error_code
from kainite.base.errors import LeaseTableError, LeaseTableUnavailableError
from kainite.leases.table.lease import Item

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")


class ConditionFailedError(Exception):
    """Another worker was there before.

    ``item`` is what stands there, where the store tells. ``retried``: botocore had sent the request
    before, so the write that the condition met may have been this one.
    """

    def __init__(self, item: Item | None, *, retried: bool) -> None:
        super().__init__(item)
        self.item = item
        self.retried = retried


class TableCalls:
    """Calls for the table ``name``; threads may share it."""

    def __init__(self, dynamodb: DynamoDBClient, name: str) -> None:
        self.dynamodb = dynamodb
        self.name = name

    def call(self, doing: str, call: Callable[[], T]) -> T:
        """Make a call.

        Raises:
            ConditionFailedError: its condition does not hold.
            LeaseTableUnavailableError: the same call may be made again.
            LeaseTableError: the table is missing, or access is denied.
        """
        try:
            return call()
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and error_code(error) == "ConditionalCheckFailedException":
                retries = error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0)
                raise ConditionFailedError(_item(error), retried=retries > 0) from error
            raise self._error(doing, error) from error

    def update(
        self,
        key: str,
        update: str,
        condition: str,
        values: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
    ) -> Item:
        """UpdateItem of the lease ``key``; returns the whole item as it is afterwards.

        Raises:
            as :meth:`call`.
        """
        request: dict[str, Any] = {
            "TableName": self.name,
            "Key": {"leaseKey": {"S": key}},
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if names:
            request["ExpressionAttributeNames"] = names
        return self.call("UpdateItem", lambda: self.dynamodb.update_item(**request))["Attributes"]

    def _error(self, doing: str, error: Exception) -> LeaseTableError:
        if isinstance(error, WaiterError) or classify(error) in (Failure.THROTTLED, Failure.PASSING):
            return LeaseTableUnavailableError(f"lease table {self.name!r}: {doing} failed for now: {error}")
        if classify(error) is Failure.GONE:
            return LeaseTableError(
                f"lease table {self.name!r} does not exist: check applicationName, tableName and the region; "
                f"a daemon makes it when it starts"
            )
        return LeaseTableError(f"lease table {self.name!r}: {doing} is refused: {error}")


def _item(error: ClientError) -> Item | None:
    answer: Item = error.response
    return answer.get("Item")
