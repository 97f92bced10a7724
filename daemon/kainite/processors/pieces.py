"""Finds the pieces of a row that is too large for one record of the stream, on whatever shard they are.

Aurora DSQL splits an image of more than 9 MiB into *fragments*, records of their own with random partition keys. A
fragment names its image (``chunk_id``) and its place in it, and neither transaction, nor table, nor time; the *main
record* has all of these, and the number of fragments. A record processor sees one shard only, so its fragments may
never come to it. Hence the record processor that has the main record fetches them: it reads all shards of the stream
beside the daemon, from the transaction's commit on. A record processor ignores fragments that are delivered to it.

What follows from that:

* Nothing is kept between records. A crash loses nothing: the main record is delivered again, and its pieces are
  fetched again.
* No two record processors wait for each other, since each reads what it needs by itself.
* While the pieces are looked for, the call with the main record is not over. So its shard has not been read past it,
  and no unit that ends by the watermark is released without it.
* One reading of the stream finds the pieces of :data:`AT_ONCE` images of a batch (:class:`Ahead`).
* The search ends. A shard has been searched when it was read past the time at which the main record was made, plus a
  wait; a backlog is searched as fast as it can be read. Pieces that were not found then make the unit fail, with the
  reason.

States of a search: each shard is being read, at its tip (asked again after a pause), or searched. Shards that come
while the search goes on (resharding) are added.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import orjson

from kainite.base.errors import StreamError
from kainite.base.retry import AWS_BACKOFF, retry
from kainite.kinesis.client import GetRecordsReply, StreamClient, parse_reply
from kainite.kinesis.failures import stream_error
from kainite.kinesis.shards import Shard
from kainite.kinesis.start_position import StartAt
from kainite.processors.crc32c import crc32c

T = TypeVar("T")

# The source's clock may differ so much from Kinesis's, which stamps arrivals.
CLOCKS_DIFFER_S: Final = 60.0
# Kinesis answers five GetRecords calls a second for a shard, and the daemon makes some of them.
PAUSE_S: Final = 1.0
# How many images are held in memory at a time; each has 9 MiB and more.
AT_ONCE: Final = 8
_RECORDS: Final = 1000
_TRIES: Final = 8


@dataclass(frozen=True, slots=True)
class SplitImage:
    """What a main record says of an image that came in pieces.

    Attributes:
        chunk_id: the image's name, which its fragments have too.
        total: how many fragments it has.
        checksum: what ``checksum_of`` gives of the image's text in UTF-8.
        committed: when its transaction committed, epoch seconds.
        made: when the source made the main record, epoch seconds.
        checksum_of: the checksum that the source takes; CRC-32C is Aurora DSQL's.
    """

    chunk_id: str
    total: int
    checksum: int
    committed: float
    made: float
    checksum_of: Callable[[bytes], int] = crc32c


class PiecesMissingError(ValueError):
    """Not all pieces of a row are on the stream, or they are not what the source sent."""


Find: TypeAlias = Callable[[SplitImage], str]
"""Returns an image's text, or raises PiecesMissingError."""


Found: TypeAlias = str | PiecesMissingError
"""An image's text, or why there is none."""


class Stream(Protocol):
    """What a search needs of a stream."""

    def shards(self) -> tuple[Shard, ...]:
        """Returns all shards that still have records."""
        ...

    def iterator(self, shard_id: str, since: float) -> str:
        """Returns an iterator from the first record that arrived at ``since`` (epoch seconds) or later."""
        ...

    def read(self, iterator: str) -> GetRecordsReply: ...


def joined(image: SplitImage, pieces: dict[int, str]) -> str:
    """Returns the text of an image all of whose pieces are there.

    Raises:
        PiecesMissingError: the text is not the one that was split.
    """
    text = "".join(pieces[index] for index in range(image.total))
    if image.checksum_of(text.encode()) != image.checksum:
        raise PiecesMissingError(f"the {image.total} pieces of {image.chunk_id} have another checksum than the row had")
    return text


class PieceSearch:
    """Finds images on one stream, some in one reading of it.

    Args:
        stream: the stream that is searched.
        wait: seconds after the main record during which its pieces are waited for.
        clock: epoch seconds; only compared with the times of records.
        sleep: waits for so many seconds.
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

    def find(self, *images: SplitImage) -> dict[str, Found]:
        """Returns what was found of images, by their names, when all of their pieces have been found or searched for.

        Raises:
            StreamError: the stream cannot be read.
        """
        since = min(image.committed for image in images) - CLOCKS_DIFFER_S
        search = _Search({image.chunk_id: image for image in images})
        reading: dict[str, str | None] = {}
        while search.wanted:
            self._add_new(reading, since)
            moved = self._read_each(reading, search)
            if not moved and not any(reading.values()):
                search.give_up(self._wait)
            elif not moved:
                self._sleep(PAUSE_S)
        return search.found

    def _read_each(self, reading: dict[str, str | None], search: _Search) -> bool:
        """Reads each shard once; returns whether there is more to read at once."""
        moved = False
        for shard in [shard for shard, iterator in reading.items() if iterator]:
            reply = self._stream.read(str(reading[shard]))
            search.take(reply)
            if not search.wanted:
                return True
            reading[shard] = self._next(reply, search.made)
            moved = moved or bool(reply.millis_behind_latest) or reading[shard] is None
        return moved

    def _add_new(self, reading: dict[str, str | None], since: float) -> None:
        """Adds shards that are not searched yet; children of resharding appear here when their parent has ended."""
        for shard in self._stream.shards():
            if shard.id not in reading:
                reading[shard.id] = self._stream.iterator(shard.id, since)

    def _next(self, reply: GetRecordsReply, made: float) -> str | None:
        """Returns the position at which the search of the shard goes on; None when the shard has been searched."""
        read_to = self._clock() - (reply.millis_behind_latest or 0) / 1000
        return reply.next_iterator if read_to < made + self._wait else None


class _Search:
    """The images that are looked for, and those that were found.

    Args:
        wanted: all that are looked for, by name.
    """

    def __init__(self, wanted: dict[str, SplitImage]) -> None:
        self.wanted = wanted
        self.found: dict[str, Found] = {}
        self._pieces: dict[str, dict[int, str]] = {name: {} for name in wanted}

    @property
    def made(self) -> float:
        """Returns when the last of the main records was made."""
        return max(image.made for image in self.wanted.values())

    def take(self, reply: GetRecordsReply) -> None:
        """Takes the fragments among records."""
        names = [name.encode() for name in self.wanted]
        for record in reply.records:
            data = base64.b64decode(record.data or "")
            # Nearly all records are others'; only those that name an image are worth parsing.
            if any(name in data for name in names) and (piece := _fragment(data)):
                self._add(str(piece.get("chunk_id")), piece)

    def _add(self, name: str, piece: dict[str, Any]) -> None:
        if (image := self.wanted.get(name)) is None:
            return
        pieces = self._pieces[name]
        try:
            pieces[int(piece["index"])] = str(piece["data"])
            found: Found | None = joined(image, pieces) if pieces.keys() >= set(range(image.total)) else None
        except PiecesMissingError as error:
            found = error
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:  # no other image may suffer from it
            found = PiecesMissingError(f"a piece of {name} cannot be read: {error!r}")
        if found is not None:
            del self.wanted[name], self._pieces[name]
            self.found[name] = found

    def give_up(self, wait: float) -> None:
        """Ends the search for what was not found."""
        for name, image in self.wanted.items():
            self.found[name] = PiecesMissingError(
                f"{len(self._pieces[name])} of {image.total} pieces of {name} came"
                f" within {wait:g} s after its main record"
            )
        self.wanted.clear()


class Ahead:
    """Finds the images of a batch of records, some at a time, so that the stream is not read for each of them.

    Args:
        search: returns what searches the stream.
    """

    def __init__(self, search: Callable[[], PieceSearch]) -> None:
        self._search = search
        self._next: list[SplitImage] = []
        self._found: dict[str, Found] = {}

    def expect(self, images: Sequence[SplitImage]) -> None:
        """Hears which images will be asked for, in this order."""
        self._next, self._found = list({image.chunk_id: image for image in images}.values()), {}

    def find(self, image: SplitImage) -> str:
        """Returns an image's text.

        Raises:
            PiecesMissingError: its pieces are not there.
            StreamError: the stream cannot be read.
        """
        if image.chunk_id not in self._found:
            rest = [one for one in self._next if one.chunk_id not in (image.chunk_id, *self._found)]
            self._found = self._search().find(image, *rest[: AT_ONCE - 1])
            self._next = [one for one in rest if one.chunk_id not in self._found]
        found = self._found[image.chunk_id]
        if isinstance(found, PiecesMissingError):
            raise found
        return found


def _fragment(data: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) and value.get("type") == "fragment" else None


class KinesisStream:
    """A stream of Kinesis; throttled and failed calls are made again."""

    def __init__(self, client: StreamClient) -> None:
        self._client = client

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

    def read(self, iterator: str) -> GetRecordsReply:
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

        return retry(attempt, AWS_BACKOFF, wait=time.sleep, tries=_TRIES)
