"""Finds the pieces of a row that is too large for one record of the stream, on whatever shard they are.

Aurora DSQL splits an image of more than 9 MiB into *fragments*, records of their own with random partition keys. A
fragment names its image (``chunk_id``) and its place in it, and neither transaction, nor table, nor time; the *main
record* has all of these, and the number of fragments. A record processor sees one shard only, so its fragments may
never come to it. Hence whoever has the main record fetches them: it reads all shards of the stream beside the daemon,
from the transaction's commit on. A fragment that is delivered to a record processor is nothing to it.

What follows from that:

* Nothing is kept between records, in no place. A crash loses nothing: the main record is delivered again, and its
  pieces are fetched again.
* No two record processors wait for each other, since each reads what it needs by itself.
* While the pieces are looked for, the call with the main record is not over. So its shard has not been read past it,
  and no unit that ends by the watermark is released without it.
* The search ends. A shard has been searched when it was read past the time at which the main record was made, plus a
  wait; a backlog is searched as fast as it can be read. Pieces that were not found then make the unit fail, with the
  reason.

States of a search: each shard is being read, at its tip (asked again after a pause), or searched. Shards that come
while the search goes on (resharding) are added.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import orjson

from kainite.base.errors import StreamError
from kainite.base.retry import AWS_BACKOFF, retry
from kainite.kinesis.client import Reply, StreamClient, parse_reply
from kainite.kinesis.failures import stream_error
from kainite.kinesis.shards import Shard
from kainite.kinesis.start_position import StartAt
from kainite.processors.crc32c import crc32c

T = TypeVar("T")

# The source's clock, and Kinesis's, which stamps arrivals, may differ.
CLOCKS_DIFFER_S: Final = 60.0
# Kinesis answers five GetRecords calls a second for a shard, and the daemon makes some of them.
PAUSE_S: Final = 1.0
_RECORDS: Final = 1000


@dataclass(frozen=True, slots=True)
class SplitImage:
    """What a main record says of an image that came in pieces.

    Attributes:
        chunk_id: the image's name, which its fragments have too.
        total: how many fragments it has.
        checksum: CRC-32C of the image's text in UTF-8.
        committed: when its transaction committed, epoch seconds.
        made: when the source made the main record, epoch seconds.
    """

    chunk_id: str
    total: int
    checksum: int
    committed: float
    made: float


class PiecesMissingError(ValueError):
    """Not all pieces of a row are on the stream, or they are not what the source sent."""


Find: TypeAlias = Callable[[SplitImage], str]
"""Returns an image's text, or raises PiecesMissingError."""


class Stream(Protocol):
    """What a search needs of a stream."""

    def shards(self) -> tuple[Shard, ...]:
        """Returns all shards that still have records."""
        ...

    def iterator(self, shard_id: str, since: float) -> str:
        """Returns an iterator from the first record that arrived at ``since`` (epoch seconds) or later."""
        ...

    def read(self, iterator: str) -> Reply: ...


def joined(image: SplitImage, pieces: dict[int, str]) -> str:
    """Returns the text of an image all of whose pieces are there.

    Raises:
        PiecesMissingError: the text is not the one that was split.
    """
    text = "".join(pieces[index] for index in range(image.total))
    if crc32c(text.encode()) != image.checksum:
        raise PiecesMissingError(f"the {image.total} pieces of {image.chunk_id} have another checksum than the row had")
    return text


class PieceSearch:
    """Finds images on one stream, one after the other.

    Args:
        stream: is read.
        wait: so long after the main record pieces are waited for, seconds.
        clock: epoch seconds; only compared with the times of records.
        sleep: waits.
    """

    def __init__(
        self,
        stream: Stream,
        wait: float,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._stream = stream
        self._wait = wait
        self._clock = clock
        self._sleep = sleep

    def find(self, image: SplitImage) -> str:
        """Returns the image's text, when all of its pieces have been found.

        Raises:
            PiecesMissingError: they are not there.
            StreamError: the stream cannot be read.
        """
        pieces: dict[int, str] = {}
        reading: dict[str, str | None] = {}
        while True:
            self._add_new(reading, image)
            moved = False
            for shard in [shard for shard, iterator in reading.items() if iterator]:
                reply = self._stream.read(str(reading[shard]))
                pieces.update(_pieces_in(reply, image))
                if pieces.keys() >= set(range(image.total)):
                    return joined(image, pieces)
                reading[shard] = self._next(reply, image)
                moved = moved or bool(reply.millis_behind_latest) or reading[shard] is None
            if not moved and not any(reading.values()):
                raise PiecesMissingError(
                    f"{len(pieces)} of {image.total} pieces of {image.chunk_id} came"
                    f" within {self._wait:g} s after its main record"
                )
            if not moved:
                self._sleep(PAUSE_S)

    def _add_new(self, reading: dict[str, str | None], image: SplitImage) -> None:
        """Adds shards that are not searched yet; children of resharding appear here when their parent has ended."""
        for shard in self._stream.shards():
            if shard.id not in reading:
                reading[shard.id] = self._stream.iterator(shard.id, image.committed - CLOCKS_DIFFER_S)

    def _next(self, reply: Reply, image: SplitImage) -> str | None:
        """Returns where the shard is read on; None: it has been searched."""
        read_to = self._clock() - (reply.millis_behind_latest or 0) / 1000
        return reply.next_iterator if read_to < image.made + self._wait else None


def _pieces_in(reply: Reply, image: SplitImage) -> Iterator[tuple[int, str]]:
    """Yields place and text of the image's fragments among records."""
    name = image.chunk_id.encode()
    for record in reply.records:
        data = base64.b64decode(record["Data"])
        # Nearly all records are others'; only those that name the image are worth parsing.
        if name in data and (piece := _fragment(data)) and piece.get("chunk_id") == image.chunk_id:
            yield int(piece["index"]), str(piece["data"])


def _fragment(data: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) and value.get("type") == "fragment" else None


class KinesisStream:
    """A stream of Kinesis; throttled and failed calls are made again ``tries`` times."""

    def __init__(self, client: StreamClient, tries: int = 8) -> None:
        self._client = client
        self._tries = tries

    def shards(self) -> tuple[Shard, ...]:
        """Returns all shards that still have records.

        Raises:
            StreamError: they cannot be listed.
        """
        return self._again(self._client.list_shards)

    def iterator(self, shard_id: str, since: float) -> str:
        """Returns an iterator from the first record that arrived at ``since`` or later.

        Raises:
            StreamError: there is none.
        """
        start = StartAt("AT_TIMESTAMP", timestamp=since)
        return self._again(lambda: self._client.iterator(shard_id, start)[0])

    def read(self, iterator: str) -> Reply:
        """Returns the next records.

        Raises:
            StreamError: they cannot be read.
        """
        return self._again(lambda: parse_reply(self._client.get_records(iterator, _RECORDS)))

    def _again(self, call: Callable[[], T]) -> T:
        def attempt() -> T:
            try:
                return call()
            except StreamError:
                raise
            except Exception as error:
                raise stream_error(self._client.name, "looking for the pieces of a row", error) from error

        return retry(attempt, AWS_BACKOFF, wait=time.sleep, tries=self._tries)
