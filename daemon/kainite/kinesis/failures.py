"""What a failed call to Kinesis means, and how long to wait before the next one. Pure functions."""

from __future__ import annotations

import random
from enum import Enum, auto

from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    MetadataRetrievalError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

from kainite.errors import KainiteError, StreamError, StreamUnavailableError

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

BACKOFF_BASE_S = 0.2
BACKOFF_CAP_S = 20.0


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


def stream_error(stream: str, doing: str, error: Exception) -> StreamError:
    """The error to raise for a call to ``stream`` that failed."""
    if isinstance(error, StreamError):
        return error
    match classify(error):
        case Failure.THROTTLED | Failure.PASSING:
            return StreamUnavailableError(f"stream {stream!r}: {doing} failed for now: {error}")
        case Failure.GONE:
            return StreamError(
                f"stream {stream!r} is not there: check streamName, regionName and kinesisEndpoint ({error})"
            )
        case _:
            return StreamError(f"stream {stream!r}: {doing} is refused: {error}")


def final_error(stream: str, doing: str, error: Exception) -> KainiteError:
    """The error to end a source with; one of ours stays as it is."""
    if isinstance(error, KainiteError):
        return error
    final = stream_error(stream, doing, error)
    final.__cause__ = error
    return final


def unknown_checkpoint(stream: str, shard_id: str, sequence: str | None, error: Exception) -> StreamError:
    """The error for a shard that refuses the sequence number of its own checkpoint."""
    return StreamError(
        f"shard {shard_id} of stream {stream!r} does not know the checkpoint {sequence}: "
        f"was the stream made anew? then delete its leases ({error})"
    )


def backoff(failures: int) -> float:
    """Seconds to wait after ``failures`` in a row (from 1): exponential, half of it random."""
    longest = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2.0 ** min(failures - 1, 30))
    return longest * random.uniform(0.5, 1.0)
