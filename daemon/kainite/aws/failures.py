"""Classifies failed calls of AWS services: one table of error codes, and what each failure means for the caller. Pure.

Callers translate a :class:`Failure` into errors of their own, which name their stream or table and what to do. Callers
differ in one point: a code that the table does not hold is final for a stream or a lease table, and worth another
attempt for the serialization log, whose owner waits for its store.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    MetadataRetrievalError,
    TokenRetrievalError,
    WaiterError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

from kainite.base.errors import KainiteError


class Failure(Enum):
    """The meaning of a failed call for the caller."""

    EXPIRED = auto()  # the iterator, or the position: get a fresh one
    THROTTLED = auto()  # wait longer each time
    PASSING = auto()  # wait as well: connections, 5xx, broken replies, credentials that are not there yet
    GONE = auto()  # the stream, the shard or the table does not exist (any more)
    CONDITION = auto()  # the condition of a write does not hold
    DENIED = auto()  # the role lacks a permission
    REFUSED = auto()  # the request is wrong, or the credentials are
    UNKNOWN = auto()  # none of these

    @property
    def is_retryable(self) -> bool:
        """Tells whether the same call may succeed later without anybody mending anything."""
        return self in (Failure.THROTTLED, Failure.PASSING)


BY_CODE: Final[Mapping[str, Failure]] = {
    "ExpiredIteratorException": Failure.EXPIRED,
    "InvalidArgumentException": Failure.EXPIRED,  # Kinesis's answer to a sequence number it does not know
    "ProvisionedThroughputExceededException": Failure.THROTTLED,
    "LimitExceededException": Failure.THROTTLED,
    "ThrottlingException": Failure.THROTTLED,
    "Throttling": Failure.THROTTLED,
    "TooManyRequestsException": Failure.THROTTLED,
    "RequestLimitExceeded": Failure.THROTTLED,
    "SlowDown": Failure.THROTTLED,
    "KMSThrottlingException": Failure.THROTTLED,
    "ResourceInUseException": Failure.PASSING,
    "TransactionConflictException": Failure.PASSING,
    "TransactionInProgressException": Failure.PASSING,
    "ExpiredTokenException": Failure.PASSING,
    "ExpiredToken": Failure.PASSING,
    "RequestTimeout": Failure.PASSING,
    "InternalFailure": Failure.PASSING,
    "ResourceNotFoundException": Failure.GONE,
    "ConditionalCheckFailedException": Failure.CONDITION,
    "AccessDeniedException": Failure.DENIED,
    "ValidationException": Failure.REFUSED,
    "UnrecognizedClientException": Failure.REFUSED,
}
"""Any other code is PASSING with an HTTP status of 500 or more, and else UNKNOWN."""

CLOCK_IS_OFF: Final = ("Signature expired", "Signature not yet current")
"""The beginning of an InvalidSignatureException's message when this host's clock is minutes off."""

WITHOUT_ANSWER: Final = (
    HTTPClientError,
    BotoConnectionError,
    OSError,
    WaiterError,
    # Whoever gives out the credentials (STS, the instance's metadata, a program) has not done so now.
    CredentialRetrievalError,
    MetadataRetrievalError,
    TokenRetrievalError,
)


def classify(error: Exception) -> Failure:
    """Returns what an error of a boto3 call, or of reading its reply, means."""
    if isinstance(error, ClientError):
        return _classify_answer(error)
    ours_retryable = isinstance(error, KainiteError) and error.retryable
    return Failure.PASSING if ours_retryable or isinstance(error, WITHOUT_ANSWER) else Failure.UNKNOWN


def error_code(error: Exception) -> str:
    """Returns the service's name for what went wrong, such as ``ExpiredIteratorException``; empty without an answer."""
    return error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""


def _classify_answer(error: ClientError) -> Failure:
    code = error_code(error)
    if code == "InvalidSignatureException" and error.response["Error"].get("Message", "").startswith(CLOCK_IS_OFF):
        return Failure.PASSING
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return BY_CODE.get(code, Failure.PASSING if status >= 500 else Failure.UNKNOWN)
