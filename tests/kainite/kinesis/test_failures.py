from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    MetadataRetrievalError,
    NoCredentialsError,
    ReadTimeoutError,
)

from kainite.aws.failures import Failure, classify
from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.kinesis.failures import stream_error


def refusal(code: str, status: int = 400, message: str = "") -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "GetRecords")


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (refusal("ExpiredIteratorException"), Failure.EXPIRED),
        (refusal("ProvisionedThroughputExceededException"), Failure.THROTTLED),
        (refusal("LimitExceededException"), Failure.THROTTLED),
        (refusal("ResourceNotFoundException"), Failure.GONE),
        (refusal("InternalFailure", 500), Failure.PASSING),
        (refusal("503", 503), Failure.PASSING),
        (refusal("AccessDeniedException"), Failure.FINAL),
        (EndpointConnectionError(endpoint_url="x"), Failure.PASSING),
        (ReadTimeoutError(endpoint_url="x"), Failure.PASSING),
        (ConnectionResetError(), Failure.PASSING),
        (StreamUnavailableError("x"), Failure.PASSING),
        (StreamError("x"), Failure.FINAL),
        (NoCredentialsError(), Failure.FINAL),
        (CredentialRetrievalError(provider="iam-role", error_msg="no answer"), Failure.PASSING),
        (MetadataRetrievalError(error_msg="no answer"), Failure.PASSING),
        (refusal("InvalidSignatureException", message="Signature expired: 1 is now earlier than 2"), Failure.PASSING),
        (refusal("InvalidSignatureException", message="Signature not yet current: 2 is later"), Failure.PASSING),
        (refusal("InvalidSignatureException", message="The signature we calculated does not match"), Failure.FINAL),
        (KeyError("x"), Failure.FINAL),
    ],
)
def test_what_an_error_means(error: Exception, failure: Failure) -> None:
    assert classify(error) is failure


def test_the_error_for_a_missing_stream_names_the_settings_to_check() -> None:
    error = stream_error("orders", "ListShards", refusal("ResourceNotFoundException"))
    assert not error.retryable
    assert "orders" in str(error)
    assert "streamName" in str(error)
