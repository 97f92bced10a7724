"""The errors for failed calls to a stream."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.kinesis.failures import final_error, stream_error, unknown_checkpoint


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, "GetRecords")


def test_the_error_for_a_missing_stream_names_the_settings_to_check() -> None:
    error = stream_error("orders", "ListShards", refusal("ResourceNotFoundException"))
    assert not error.retryable
    assert "orders" in str(error)
    assert "streamName" in str(error)


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (refusal("ProvisionedThroughputExceededException"), True),
        (EndpointConnectionError(endpoint_url="x"), True),
        (refusal("AccessDeniedException"), False),
        (KeyError("x"), False),
    ],
)
def test_an_error_says_whether_the_call_may_be_made_again(error: Exception, retryable: bool) -> None:
    assert stream_error("orders", "ListShards", error).retryable is retryable


@pytest.mark.parametrize("ours", [StreamError("x"), StreamUnavailableError("x")])
def test_an_error_of_kainites_own_stays_as_it_is(ours: StreamError) -> None:
    assert stream_error("orders", "ListShards", ours) is ours
    assert final_error("orders", "reading", ours) is ours


def test_the_error_that_ends_a_source_has_its_cause() -> None:
    cause = refusal("AccessDeniedException")
    assert final_error("orders", "reading", cause).__cause__ is cause


def test_the_error_for_an_unknown_checkpoint_says_what_to_do() -> None:
    error = unknown_checkpoint("orders", "shardId-0", "17", refusal("InvalidArgumentException"))
    assert not error.retryable
    assert "delete its leases" in str(error)
