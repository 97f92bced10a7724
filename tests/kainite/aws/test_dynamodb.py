"""Attribute values, errors, pages, and a table that is made where it is missing."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from kainite.aws.dynamodb import (
    ConditionFailedError,
    Value,
    answer,
    binary,
    decimal,
    flag,
    make_table,
    number,
    number_of,
    pages,
    text,
    text_map,
    text_map_of,
    text_of,
    texts,
)
from kainite.aws.failures import Failure
from support.names import unique


class OwnError(Exception):
    """A caller's error, made of a failure."""


def translate(operation: str, failure: Failure, error: Exception) -> OwnError:
    return OwnError(operation, failure)


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        (text("a"), {"S": "a"}),
        (number(-7), {"N": "-7"}),
        (number(10**30), {"N": "1" + "0" * 30}),
        (decimal(1.5), {"N": "1.500000"}),
        (texts({"b", "a"}), {"SS": ["a", "b"]}),
        (binary(b"\0"), {"B": b"\0"}),
        (flag(False), {"BOOL": False}),
        (text_map({"a": "b"}), {"M": {"a": {"S": "b"}}}),
        (text_map({}), {"M": {}}),
    ],
)
def test_an_attribute_has_the_type_that_is_asked_for(value: Value, attribute: Any) -> None:
    assert value == attribute


def test_attributes_are_read_back_by_their_names() -> None:
    item = {"s": text("a"), "n": number(17), "m": text_map({"a": "b"})}
    assert (text_of(item, "s"), number_of(item, "n"), text_map_of(item, "m")) == ("a", 17, {"a": "b"})
    assert (text_of(item, "x"), number_of(item, "x")) == (None, None)


def test_an_attribute_of_another_type_is_an_error() -> None:
    item = {"a": number(17)}
    with pytest.raises(KeyError):
        text_of(item, "a")
    with pytest.raises(KeyError):
        text_map_of(item, "a")


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetItem"), Failure.DENIED),
        (EndpointConnectionError(endpoint_url="x"), Failure.PASSING),
    ],
)
def test_an_error_is_the_callers_own_with_botocores_as_its_cause(error: Exception, failure: Failure) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(OwnError) as raised:
        answer("GetItem", fail, translate)
    assert raised.value.args == ("GetItem", failure)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(("attempts", "retried"), [(0, False), (2, True)])
def test_a_condition_that_does_not_hold_tells_what_stands_there(attempts: int, retried: bool) -> None:
    response: Any = {
        "Error": {"Code": "ConditionalCheckFailedException"},
        "ResponseMetadata": {"RetryAttempts": attempts},
        "Item": {"p": text("there")},
    }

    def fail() -> None:
        raise ClientError(response, "PutItem")

    with pytest.raises(ConditionFailedError) as raised:
        answer("PutItem", fail, translate)
    assert raised.value.item == {"p": text("there")}
    assert raised.value.retried is retried


def test_pages_follow_each_other_until_the_last_one() -> None:
    asked: list[dict[str, Any]] = []
    left = [{"Items": [1], "LastEvaluatedKey": "one"}, {"Items": [2], "LastEvaluatedKey": "two"}, {"Items": [3]}]

    def call(**request: Any) -> Any:
        asked.append(request)
        return left.pop(0)

    assert [page["Items"] for page in pages(call, {"TableName": "t"})] == [[1], [2], [3]]
    assert [request.get("ExclusiveStartKey") for request in asked] == [None, "one", "two"]


def test_a_table_is_made_once(dynamodb: Any) -> None:
    definition = {
        "TableName": unique("made"),
        "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    assert make_table(dynamodb, definition, attempts=5, translate=translate)
    assert not make_table(dynamodb, definition, attempts=5, translate=translate)
