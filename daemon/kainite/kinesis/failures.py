"""Makes the errors for failed calls to a stream. Pure functions."""

from __future__ import annotations

from kainite.aws.failures import Failure, classify
from kainite.base.errors import KainiteError, StreamError, StreamUnavailableError


def stream_error(stream: str, doing: str, error: Exception) -> StreamError:
    """Returns the error to raise for a call to ``stream`` that failed."""
    if isinstance(error, StreamError):
        return error
    failure = classify(error)
    if failure.is_retryable:
        return StreamUnavailableError(f"stream {stream!r}: {doing} failed for now: {error}")
    if failure is Failure.GONE:
        return StreamError(
            f"stream {stream!r} does not exist: check streamName (or output), regionName and kinesisEndpoint ({error})"
        )
    return StreamError(f"stream {stream!r}: {doing} is refused: {error}")


def final_error(stream: str, doing: str, error: Exception) -> KainiteError:
    """Returns the error that ends a source; returns an error of Kainite's own as it is."""
    if isinstance(error, KainiteError):
        return error
    final = stream_error(stream, doing, error)
    final.__cause__ = error
    return final


def unknown_checkpoint(stream: str, shard_id: str, sequence: str | None, error: Exception) -> StreamError:
    """Returns the error for a shard that refuses the sequence number of its own checkpoint."""
    return StreamError(
        f"shard {shard_id} of stream {stream!r} does not know the checkpoint {sequence}: "
        f"was the stream made anew? then delete its leases ({error})"
    )
