"""A batch of log entries as bytes: an index, and a payload that the index describes.

The index holds everything but the entries' data, so a reader that schedules conflicts or follows statuses
fetches no data::

    index    "KL" | version u8 = 1 | zstd( MessagePack of an Index )
    payload  zstd( data of the first entry | data of the second … ) | blob …

The index is derived from the classes of :mod:`kainite.log.format.index`: arrays of their fields, in order.

A record's *blob* is 0 for an entry whose data is in the payload's first frame. Else it is the number of a blob, from 1,
of which the entry has the piece that begins at *offset*; several entries share one. Blobs are compressed where a shard
is held (:mod:`kainite.uow.packing`) and stored as they came; their CRC-32 is of the bytes as stored. The first frame is
left out where no entry has data of its own.

Signatures alone are packed by hand, 64-bit integers, big-endian: as they come from the shard's holder they are copied.
As arrays of numbers they take a fourth more time to encode, and 7 % more bytes.

Every length is checked against the bytes present, and decompression is bounded, so no input can make a reader allocate
without limit.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from kainite.base.compression import compressed, decompressed
from kainite.base.errors import LogCorruptError, LogError
from kainite.log.format.entry import NO_REQUEST, Batch, Entry, ReqId
from kainite.log.format.index import DECODER, ENCODER, KINDS, BlobSize, Index, IndexRecord
from kainite.uow.packing import MAX_BLOB, Blob, Piece
from kainite.uow.touches import Touched

MAGIC: Final = b"KL\x01"
MAX_DECOMPRESSED = 1 << 30
_LEVEL = 3
_INDEX_LEVEL = 1
"""The level for an index: its signatures, most of its bytes, shrink at no level, and level 3 takes twice the time."""


def encode(batch: Batch) -> tuple[bytes, bytes]:
    """Returns the batch as (index, payload); makes the bytes once.

    Raises:
        LogError: a part is larger than :func:`decode` takes, so that nobody could read the batch.
    """
    if not batch.encoded:
        batch.encoded.append(_encoded(batch))
    return batch.encoded[0]


def _encoded(batch: Batch) -> tuple[bytes, bytes]:
    numbers, blobs = _blobs(batch.entries)
    for blob in blobs:
        _check_size("blob", blob.size, MAX_BLOB)
    data = b"".join([entry.data for entry in batch.entries])
    own = compressed(data, _LEVEL) if data else b""
    index = Index(
        batch.first_id,
        batch.generation,
        batch.time_ms,
        [BlobSize(len(blob.frame), blob.crc, blob.size) for blob in blobs],
        len(own),
        [_record(entry, numbers) for entry in batch.entries],
    )
    encoded = ENCODER.encode(index)
    _check_size("index", len(encoded), MAX_DECOMPRESSED)
    _check_size("payload", len(data), MAX_DECOMPRESSED)
    return MAGIC + compressed(encoded, _INDEX_LEVEL), b"".join((own, *(blob.frame for blob in blobs)))


def _blobs(entries: Sequence[Entry]) -> tuple[dict[int, int], list[Blob]]:
    """Returns the entries' blobs, each once, and the number of each, by its object's id."""
    numbers: dict[int, int] = {}
    blobs: list[Blob] = []
    for entry in entries:
        if entry.piece is not None and id(entry.piece.blob) not in numbers:
            blobs.append(entry.piece.blob)
            numbers[id(entry.piece.blob)] = len(blobs)
    return numbers, blobs


def _check_size(what: str, size: int, most: int) -> None:
    if size > most:
        raise LogError(
            f"a log batch's {what} of {size} bytes is larger than its readers take ({most}), and was not "
            "written: let the children emit less in one call (smaller batches: maxRecords), or the source send smaller "
            "units of work"
        )


def _record(entry: Entry, numbers: dict[int, int]) -> IndexRecord:
    piece, touched, signed = entry.piece, entry.touched, entry.signed
    if piece is None:
        place, offset, length, crc = 0, 0, len(entry.data), zlib.crc32(entry.data)
    else:
        place, offset, length, crc = numbers[id(piece.blob)], piece.offset, piece.length, 0
    count = len(touched.written) + len(touched.read)
    if len(signed) != 8 * count:  # the signatures came in another form, or one of them came twice
        signed = struct.pack(f">{count}Q", *touched.written, *touched.read)
    req = entry.req_id
    return IndexRecord(
        entry.meta,
        len(touched.written),
        signed,
        touched.tables,
        touched.unsigned,
        touched.scheme,
        None if req is NO_REQUEST else (req.client, req.generation, req.partition, req.sequence),
        place,
        offset,
        length,
        crc,
    )


def decode(index: bytes, payload: bytes | None) -> Batch:
    """Returns the batch that :func:`encode` was given; without ``payload`` its entries have no data.

    Raises:
        LogCorruptError: ``encode`` did not write the bytes.
    """
    magic = index[: len(MAGIC)]
    if magic != MAGIC:
        raise LogCorruptError(_unknown(magic))
    raw = _decompress(index[len(MAGIC) :], "index")
    try:
        return _decode(DECODER.decode(raw), payload)
    except (msgspec.DecodeError, struct.error, ValueError, LookupError, RecursionError) as error:
        raise LogCorruptError(f"a log batch's index cannot be read: {error}") from error


def _unknown(magic: bytes) -> str:
    if len(magic) == len(MAGIC) and magic[:-1] == MAGIC[:-1]:
        return (
            f"a log batch is of version {magic[-1]} of the log's format, and this release reads version {MAGIC[-1]}: "
            "upgrade it to the release that writes the log"
        )
    return "a log batch does not begin with its magic number"


def _decode(index: Index, payload: bytes | None) -> Batch:
    stored = StoredPayload(index.blobs, index.own)
    if payload is not None:
        stored.take(payload)
    entries = tuple([_entry(record, stored) for record in index.records])
    if stored.data is not None and stored.end != len(stored.data):
        raise LogCorruptError(f"log batch at {index.first_id} has bytes that no entry accounts for")
    return Batch(index.first_id, index.generation, index.time_ms, entries)


@dataclass(slots=True)
class StoredPayload:
    """The contents of a batch's payload.

    Attributes:
        sizes: the blobs, as the index describes them.
        own: length of the frame with the data of entries that have no piece.
        blobs, data: the blobs, and the data of the first frame; None while only the index is read.
        end: how many bytes of ``data`` belong to the entries so far.
    """

    sizes: Sequence[BlobSize]
    own: int
    blobs: list[Blob] | None = None
    data: bytes | None = None
    end: int = 0

    def take(self, payload: bytes) -> None:
        """Takes the payload apart."""
        if len(payload) != self.own + sum(blob.length for blob in self.sizes):
            raise LogCorruptError(f"a log batch's payload of {len(payload)} bytes is not the one of its index")
        self.data = _decompress(payload[: self.own], "payload") if self.own else b""
        self.blobs, begin = [], self.own
        for told in self.sizes:
            frame = payload[begin : begin + told.length]
            if zlib.crc32(frame) != told.crc:
                raise LogCorruptError("a blob of a log batch does not match its CRC-32")
            self.blobs.append(Blob(frame, told.size, told.crc))
            begin += told.length

    def data_of(self, length: int, crc: int) -> bytes:
        """Returns the data of the next entry that has no piece."""
        if self.data is None:
            return b""
        data = self.data[self.end : self.end + length]
        self.end += length
        if zlib.crc32(data) != crc:
            raise LogCorruptError("an entry's data does not match its CRC-32")
        return data

    def piece(self, number: int, offset: int, length: int) -> Piece | None:
        """Returns a piece of the blob of that number."""
        if offset + length > self.sizes[number - 1].size:
            raise LogCorruptError("an entry's piece goes beyond its blob")
        return None if self.blobs is None else Piece(self.blobs[number - 1], offset, length)


def _entry(record: IndexRecord, stored: StoredPayload) -> Entry:
    signatures = struct.unpack(f">{len(record.signatures) // 8}Q", record.signatures)
    written = record.written
    if written > len(signatures):
        raise LogCorruptError(f"an entry announces {written} written signatures and has {len(signatures)}")
    touched = Touched(
        frozenset(signatures[:written]),
        frozenset(signatures[written:]),
        _shared(record.tables),
        record.unsigned,
        record.scheme,
    )
    return Entry(
        KINDS[type(record.meta)],
        record.meta,
        touched,
        b"" if record.blob else stored.data_of(record.length, record.crc),
        NO_REQUEST if record.request is None else ReqId(*record.request),
        stored.piece(record.blob, record.offset, record.length) if record.blob else None,
        record.signatures,
    )


@lru_cache(maxsize=1024)
def _shared(tables: tuple[str, ...]) -> tuple[str, ...]:
    """Returns one tuple for all units that touch the same tables: a backlog may have a million of them."""
    return tables


def _decompress(data: bytes, what: str) -> bytes:
    try:
        return decompressed(data, MAX_DECOMPRESSED)
    except ValueError as error:
        raise LogCorruptError(f"a log batch's {what} cannot be decompressed: {error}") from error
