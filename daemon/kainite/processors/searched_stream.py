"""The stream that a record processor searches for pieces of rows, as its options name it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kainite.processors.pieces import PieceSearch, PiecesMissingError, SplitImage


def no_stream(image: SplitImage) -> str:
    """Finds nothing, where no stream is named.

    Raises:
        PiecesMissingError: always.
    """
    raise PiecesMissingError(f"the row came in {image.total} pieces: name the stream with --stream, and its region")


def search_on(stream: str, region: str | None, endpoint: str | None, wait: float) -> Callable[[], PieceSearch]:
    """Returns a function that gives the search on a stream; the client is made when the first row needs it, and kept.

    Args:
        stream, region: the stream's name and region; without a region boto3's default chain names it.
        endpoint: Kinesis's address, where it is not AWS's own.
        wait: as in :class:`PieceSearch`.
    """

    @cache
    def search() -> PieceSearch:
        from kainite.aws.clients import client
        from kainite.kinesis.client import StreamClient
        from kainite.processors.pieces import KinesisStream
        from kainite.settings import AwsSettings

        kinesis = client("kinesis", AwsSettings(region=region, kinesis_endpoint=endpoint))
        return PieceSearch(KinesisStream(StreamClient(kinesis, stream)), wait)

    return search
