"""Classifies failed calls of AWS services: what each failure means for the caller. Pure functions."""

from __future__ import annotations

from enum import Enum, auto

from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    MetadataRetrievalError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

from kainite.base.errors import KainiteError

THROTTLED_CODES = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "LimitExceededException",
        "ThrottlingException",
        "Throttling",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "SlowDown",
        "KMSThrottlingException",
    }
)
EXPIRED_CODES = frozenset({"ExpiredIteratorException", "InvalidArgumentException"})
PASSING_CODES = frozenset({"ResourceInUseException", "ExpiredTokenException", "ExpiredToken", "RequestTimeout"})
CLOCK_IS_OFF = ("Signature expired", "Signature not yet current")
"""How the message of an InvalidSignatureException begins when this host's clock is minutes off."""
OF_THE_CREDENTIALS = (CredentialRetrievalError, MetadataRetrievalError, TokenRetrievalError)
"""Whoever gives out the credentials (STS, the instance's metadata, a program) has not done so now."""


class Failure(Enum):
    """What to do about it."""

    EXPIRED = auto()  # get a fresh iterator
    THROTTLED = auto()  # wait longer each time
    PASSING = auto()  # the same: connections, 5xx, broken replies
    GONE = auto()  # the stream or the shard is not there (any more)
    FINAL = auto()  # nothing that waiting would mend


def classify(error: Exception) -> Failure:
    """Sort an error of a boto3 call, or of reading its reply."""
    if isinstance(error, ClientError):
        return _classify_answer(error)
    if isinstance(error, (HTTPClientError, BotoConnectionError, OSError, *OF_THE_CREDENTIALS)) or (
        isinstance(error, KainiteError) and error.retryable
    ):
        return Failure.PASSING
    return Failure.FINAL


def _classify_answer(error: ClientError) -> Failure:
    code = error_code(error)
    if code in EXPIRED_CODES:
        return Failure.EXPIRED
    if code in THROTTLED_CODES:
        return Failure.THROTTLED
    if code == "ResourceNotFoundException":
        return Failure.GONE
    if code == "InvalidSignatureException" and error.response["Error"].get("Message", "").startswith(CLOCK_IS_OFF):
        return Failure.PASSING
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return Failure.PASSING if code in PASSING_CODES or status >= 500 else Failure.FINAL


def error_code(error: ClientError) -> str:
    """The service's name for what went wrong, such as ``ExpiredIteratorException``."""
    return error.response.get("Error", {}).get("Code", "")
