"""What only a table in DynamoDB has: the expiry of its histories."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from support.names import unique


def status(dynamodb: Any, name: str) -> str:
    return str(dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"])


@pytest.fixture
def denied(dynamodb: Any) -> Iterator[None]:
    refusal = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeTimeToLive")
    with mock.patch.object(dynamodb, "describe_time_to_live", side_effect=refusal):
        yield


def test_a_maker_that_died_before_it_had_set_the_expiry_is_made_good_at_the_next_start(dynamodb: Any) -> None:
    store = DynamoDBFleetStore(dynamodb, name := unique("Fleet"))
    with (
        mock.patch.object(store, "_keep_expiring", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        store.create()
    assert status(dynamodb, name) == "DISABLED"
    store.create()
    assert status(dynamodb, name) == "ENABLED"
    store.create()


@pytest.mark.usefixtures("denied")
def test_a_role_that_may_not_look_at_the_expiry_is_told_and_goes_on(
    dynamodb: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        DynamoDBFleetStore(dynamodb, unique("Fleet")).create()
    assert "histories may be kept for ever" in caplog.text
