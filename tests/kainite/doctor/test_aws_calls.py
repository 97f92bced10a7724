from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from kainite.doctor.aws_calls import refused, rights
from kainite.doctor.finding import FindingState


def failing(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "m"}}, "Op")


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (failing("AccessDeniedException"), "docs/aws/iam/worker.json"),
        (failing("UnrecognizedClientException"), "credentials"),
        (EndpointConnectionError(endpoint_url="http://x"), "endpoint"),
    ],
)
def test_what_mends_a_refused_call(error: Exception, remedy: str) -> None:
    finding = refused("stream", "kinesis:ListShards", error, "worker")
    assert finding.state is FindingState.WRONG
    assert remedy in finding.remedy


def test_a_condition_that_does_not_hold_is_a_right() -> None:
    def call() -> None:
        raise failing("ConditionalCheckFailedException")

    assert [each.state for each in rights("a", "t", {"dynamodb:PutItem": call}, "worker")] == [FindingState.WELL]
