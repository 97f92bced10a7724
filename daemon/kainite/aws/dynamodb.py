"""Calls of DynamoDB's low-level client: attribute values, errors, pages, and a table that is made where it is missing.

An item is as the client has it, ``{"leaseKey": {"S": "shardId-0"}}``, and so an attribute's type is written down where
the attribute is: KCL's types are part of its tables' format. boto3's ``TypeSerializer`` would choose the type by the
value, and its ``TypeDeserializer`` would make a ``Decimal`` of each counter.

Nothing is cached. Each caller has errors of its own, so it gives :func:`answer` a function that translates botocore's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from kainite.aws.failures import Failure, classify

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

Item: TypeAlias = Mapping[str, Any]
"""Attributes by their names, each a mapping of its type to its value."""

Value: TypeAlias = dict[str, Any]
"""One attribute's value: a mapping of its type to itself."""

Translate: TypeAlias = Callable[[str, Failure, Exception], Exception]
"""Makes the caller's error; takes the operation's name, what its failure means, and botocore's error."""


class ConditionFailedError(Exception):
    """The condition of a write does not hold: somebody wrote the item before.

    Attributes:
        item: the item that stands there, where DynamoDB returned it (``ReturnValuesOnConditionCheckFailure``).
        retried: botocore had sent the request before, so the write that the condition met may have been this one.
    """

    def __init__(self, item: Item | None, *, retried: bool) -> None:
        super().__init__(item)
        self.item = item
        self.retried = retried


def answer(operation: str, call: Callable[[], T], translate: Translate) -> T:
    """Makes a call of DynamoDB's ``operation``; returns its answer.

    Raises:
        ConditionFailedError: the condition of a write does not hold.
        Exception: any other error of botocore's as ``translate`` makes it, with botocore's as its cause.
    """
    try:
        return call()
    except (ClientError, BotoCoreError) as error:
        failure = classify(error)
        if failure is Failure.CONDITION:
            raise _condition_failed(error) from error
        raise translate(operation, failure, error) from error


def pages(call: Callable[..., Mapping[str, Any]], request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the pages of a Scan or a Query, each when it is asked for."""
    following: dict[str, Any] = {}
    while True:
        page = call(**request, **following)
        yield page
        if not page.get("LastEvaluatedKey"):
            return
        following = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def make_table(dynamodb: DynamoDBClient, definition: Mapping[str, Any], *, attempts: int, translate: Translate) -> bool:
    """Makes a table unless it exists, and blocks until it is usable; returns whether this call made it.

    An existing table is only looked at, so a role that may not create tables will do for it.

    Args:
        dynamodb: the client.
        definition: CreateTable's arguments.
        attempts: how often, once a second, the table is looked at before waiting is given up.
        translate: makes the caller's errors.
    """
    name: str = definition["TableName"]
    made = False
    if _status(dynamodb, name, translate) is None:
        made = answer("CreateTable", lambda: _create(dynamodb, definition), translate)
    if _status(dynamodb, name, translate) != "ACTIVE":
        waiter = dynamodb.get_waiter("table_exists")
        limits: Any = {"Delay": 1, "MaxAttempts": attempts}
        answer("DescribeTable", lambda: waiter.wait(TableName=name, WaiterConfig=limits), translate)
    return made


def text(value: str) -> Value:
    """Returns a string attribute."""
    return {"S": value}


def number(value: int) -> Value:
    """Returns a number attribute."""
    return {"N": str(value)}


def decimal(value: float) -> Value:
    """Returns a number attribute with six digits after the point, as KCL writes its measurements."""
    return {"N": f"{value:.6f}"}


def texts(values: Iterable[str]) -> Value:
    """Returns a set of strings, in order, so that equal sets are equal attributes."""
    return {"SS": sorted(values)}


def binary(value: bytes) -> Value:
    """Returns a binary attribute."""
    return {"B": value}


def flag(value: bool) -> Value:
    """Returns a truth value."""
    return {"BOOL": value}


def text_map(values: Mapping[str, str]) -> Value:
    """Returns a map of strings."""
    return {"M": {name: text(value) for name, value in values.items()}}


def text_of(item: Item, name: str) -> str | None:
    """Returns a string attribute; None when the item has none of this name.

    Raises:
        KeyError: the attribute has another type.
    """
    return item[name]["S"] if name in item else None


def number_of(item: Item, name: str) -> int | None:
    """Returns a whole number attribute; None when the item has none of this name.

    Raises:
        KeyError: the attribute has another type.
        ValueError: it is no whole number.
    """
    return int(item[name]["N"]) if name in item else None


def text_map_of(item: Item, name: str) -> dict[str, str]:
    """Returns a map of strings.

    Raises:
        KeyError: the item has none of this name, or the attribute has another type.
    """
    return {key: value["S"] for key, value in item[name]["M"].items()}


def _condition_failed(error: Exception) -> ConditionFailedError:
    response: Mapping[str, Any] = error.response if isinstance(error, ClientError) else {}
    retries = response.get("ResponseMetadata", {}).get("RetryAttempts", 0)
    return ConditionFailedError(response.get("Item"), retried=retries > 0)


def _status(dynamodb: DynamoDBClient, name: str, translate: Translate) -> str | None:
    def describe() -> str | None:
        try:
            return dynamodb.describe_table(TableName=name)["Table"].get("TableStatus")
        except dynamodb.exceptions.ResourceNotFoundException:
            return None

    return answer("DescribeTable", describe, translate)


def _create(dynamodb: DynamoDBClient, definition: Mapping[str, Any]) -> bool:
    try:
        dynamodb.create_table(**definition)
    except dynamodb.exceptions.ResourceInUseException:  # another worker was faster
        return False
    return True
