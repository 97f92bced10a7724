"""The classes of errors of AWS calls."""

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
    WaiterError,
)

from kainite.aws.failures import BY_CODE, Failure, classify, error_code
from kainite.base.errors import StreamError, StreamUnavailableError


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
        (refusal("InternalFailure"), Failure.PASSING),
        (refusal("ResourceInUseException"), Failure.PASSING),
        (refusal("ExpiredTokenException"), Failure.PASSING),
        (refusal("ConditionalCheckFailedException"), Failure.CONDITION),
        (refusal("ValidationException"), Failure.REFUSED),
        (refusal("UnrecognizedClientException"), Failure.REFUSED),
        (refusal("NewKindOfException"), Failure.UNKNOWN),
        (WaiterError("table_exists", "Max attempts exceeded", {}), Failure.PASSING),
        (refusal("503", 503), Failure.PASSING),
        (refusal("AccessDeniedException"), Failure.DENIED),
        (EndpointConnectionError(endpoint_url="x"), Failure.PASSING),
        (ReadTimeoutError(endpoint_url="x"), Failure.PASSING),
        (ConnectionResetError(), Failure.PASSING),
        (StreamUnavailableError("x"), Failure.PASSING),
        (StreamError("x"), Failure.UNKNOWN),
        (NoCredentialsError(), Failure.UNKNOWN),
        (CredentialRetrievalError(provider="iam-role", error_msg="no answer"), Failure.PASSING),
        (MetadataRetrievalError(error_msg="no answer"), Failure.PASSING),
        (refusal("InvalidSignatureException", message="Signature expired: 1 is now earlier than 2"), Failure.PASSING),
        (refusal("InvalidSignatureException", message="Signature not yet current: 2 is later"), Failure.PASSING),
        (refusal("InvalidSignatureException", message="The signature we calculated does not match"), Failure.UNKNOWN),
        (KeyError("x"), Failure.UNKNOWN),
    ],
)
def test_what_an_error_means(error: Exception, failure: Failure) -> None:
    assert classify(error) is failure


@pytest.mark.parametrize("failure", Failure)
def test_only_throttled_and_passing_failures_are_worth_another_attempt(failure: Failure) -> None:
    assert failure.is_retryable is (failure in (Failure.THROTTLED, Failure.PASSING))


@pytest.mark.parametrize("code", BY_CODE)
def test_the_table_decides_about_its_codes(code: str) -> None:
    assert classify(refusal(code)) is BY_CODE[code]


@pytest.mark.parametrize(
    ("error", "code"), [(refusal("SlowDown"), "SlowDown"), (OSError("x"), ""), (ClientError({}, "GetRecords"), "")]
)
def test_the_code_of_an_error(error: Exception, code: str) -> None:
    assert error_code(error) == code
