"""Reads a daemon's requests for Amazon's library, and decodes the frequent one in its place.

Of what a record processor costs, the library's own decoding of ``processRecords`` takes more than half: it makes an
object of each JSON object, with a date in it. So :class:`Requests` stands between the daemon and the library. It
decodes a batch in one go, lets it be processed, and writes the status. Every other line is the library's: the other
requests, the replies to its checkpoint requests, and a ``processRecords`` of another spelling than KCL's and Kainite's.

The library reads a checkpoint's reply through :meth:`Requests.readline` too, also in the midst of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

_BATCH: Final = b'{"action":"processRecords",'
_DONE: Final = b'\n{"action":"status","responseFor":"processRecords"}\n'


class Lines(Protocol):
    """The daemon's requests, one a line."""

    def readline(self) -> bytes: ...


class Answers(Protocol):
    """The stream that answers go to."""

    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> None: ...


class DeliveredRecord(msgspec.Struct, frozen=True, gc=False):
    """A record, with the names that the library's own objects have for what the frame reads of them."""

    binary_data: bytes = msgspec.field(name="data")
    partition_key: str = msgspec.field(name="partitionKey")
    sequence_number: str = msgspec.field(name="sequenceNumber")
    sub_sequence_number: int = msgspec.field(name="subSequenceNumber")
    timestamp_millis: int = msgspec.field(name="approximateArrivalTimestamp")


class _ProcessRecords(msgspec.Struct, frozen=True):
    records: list[DeliveredRecord]


_DECODER: Final = msgspec.json.Decoder(_ProcessRecords)


class Requests:
    """The library's input.

    Args:
        lines: the daemon's requests.
        answers: gets the status of each batch; the library's own answers go to the same place.
        process: takes the records of a batch. What it raises ends the process, so that the batch is delivered again.
    """

    def __init__(self, lines: Lines, answers: Answers, process: Callable[[list[DeliveredRecord]], None]) -> None:
        self._lines = lines
        self._answers = answers
        self._process = process

    def readline(self) -> str:
        """Returns the next line that is the library's; empty at the end. Serves the batches before it.

        Raises:
            msgspec.DecodeError: a batch cannot be read.
        """
        while (line := self._lines.readline()).startswith(_BATCH):
            self._process(_DECODER.decode(line).records)
            self._answers.write(_DONE)
            self._answers.flush()
        return line.decode()
