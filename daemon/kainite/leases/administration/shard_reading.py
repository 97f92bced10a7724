"""Reads a few pages of a shard from the command line, beside the worker that reads the shard.

Each page is a GetRecords call. Kinesis allows five of them a second and shard for all readers together. So there is a
pause between pages, and throttled calls are repeated a few times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from kainite.base.errors import StreamError
from kainite.base.retry import AWS_BACKOFF, retry
from kainite.kinesis.client import GetRecordsReply, parse_reply
from kainite.kinesis.failures import stream_error
from kainite.kinesis.named_streams import ReadableShards
from kainite.kinesis.start_position import StartAt

T = TypeVar("T")

TRIES = 6
PAUSE_S = 0.25
MOST_PAGES = 400


def pages(
    stream: ReadableShards, shard_id: str, start: StartAt, limit: int, most: int = MOST_PAGES
) -> Iterator[GetRecordsReply]:
    """Yields replies from ``start`` until the newest record, the shard's end, or ``most`` pages.

    Args:
        stream, shard_id: the shard.
        start: the position at which the first page begins.
        limit: records a page.
        most: how many pages are read at most; a stretch without records consists of empty pages.

    Raises:
        StreamUnavailableError: throttled or unanswered, time after time.
        StreamError: the shard does not exist, or the sequence number is not in it.
    """
    iterator: str | None = patiently(stream, "GetShardIterator", lambda: stream.iterator(shard_id, start)[0])
    for page in range(most):
        if iterator is None:
            return
        if page:
            time.sleep(PAUSE_S)
        reply = patiently(stream, "GetRecords", partial(_page, stream, iterator, limit))
        yield reply
        if not reply.millis_behind_latest:
            return
        iterator = reply.next_iterator


def _page(stream: ReadableShards, iterator: str, limit: int) -> GetRecordsReply:
    return parse_reply(stream.get_records(iterator, limit))


def patiently(stream: ReadableShards, doing: str, call: Callable[[], T]) -> T:
    """Makes a call, and repeats it after a pause while Kinesis is busy.

    Raises:
        StreamError: the call is refused, or has failed :data:`TRIES` times.
    """

    def translated() -> T:
        try:
            return call()
        except StreamError:
            raise
        except Exception as error:
            raise stream_error(stream.name, doing, error) from error

    return retry(translated, AWS_BACKOFF, wait=time.sleep, tries=TRIES)
