"""A batch of log entries as bytes: an index, and a payload that the index describes.

The index holds everything but the entries' data, so a reader that schedules conflicts or follows statuses
fetches no data::

    index    "KL" | version u8 = 1 | zstd( header | blob … | record … )
    header   first id i64 | generation i32 | time ms i64 | number of records u32 | number of blobs u32
             | length of the payload's first frame u32
    blob     length u32 | CRC-32 u32 | bytes in it u32
    record   kind u8 | ReqId 4 × i32 | written u32 | read u32 | meta length u32 | blob u32 | offset u32
             | data length u32 | CRC-32 of the data u32 | written × u64 | read × u64
             | meta (:mod:`kainite.log.format.meta_codec`)
    payload  zstd( data of the first entry | data of the second … ) | blob …

A record's *blob* is 0 for an entry whose data is in the payload's first frame. Else it is the number of a blob, from 1,
of which the entry has the piece that begins at *offset*; several entries share one. Blobs are compressed where a shard
is held (:mod:`kainite.uow.packing`) and stored as they came; their CRC-32 is of the bytes as stored. The first frame is
left out where no entry has data of its own. An offset, and the CRC-32 of an entry with a piece, is 0 where it means
nothing.

Integers are big-endian, as in Waltz (docs/formats.md, *Batch*). Every length is checked against
the bytes present, and decompression is bounded, so no input can make a reader allocate without limit.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kainite.base.compression import compressed, decompressed
from kainite.base.errors import LogCorruptError, LogError
from kainite.log.format.entry import NO_REQUEST, Batch, Entry, EntryKind, ReqId
from kainite.log.format.meta_codec import decode_meta, encode_meta
from kainite.uow.packing import MAX_BLOB, Blob, Piece

MAGIC: Final = b"KL\x01"
MAX_DECOMPRESSED = 1 << 30
_LEVEL = 3
_INDEX_LEVEL = 1
"""Most bytes of an index are signatures, which no level makes fewer; level 3 takes twice the time for nothing."""

_HEADER = struct.Struct(">qiqIII")
_BLOB = struct.Struct(">III")
_RECORD = struct.Struct(">BiiiiIIIIIII")
_KINDS = {kind.value: kind for kind in EntryKind}


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
    records: list[bytes] = []
    for entry in batch.entries:
        _encode_record(entry, numbers, records)
    data = b"".join(entry.data for entry in batch.entries)
    own = compressed(data, _LEVEL) if data else b""
    header = _HEADER.pack(batch.first_id, batch.generation, batch.time_ms, len(batch.entries), len(blobs), len(own))
    index = b"".join((header, *(_BLOB.pack(len(blob.frame), blob.crc, blob.size) for blob in blobs), *records))
    _check_size("index", len(index), MAX_DECOMPRESSED)
    _check_size("payload", len(data), MAX_DECOMPRESSED)
    for blob in blobs:
        _check_size("blob", blob.size, MAX_BLOB)
    return MAGIC + compressed(index, _INDEX_LEVEL), b"".join((own, *(blob.frame for blob in blobs)))


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


def _encode_record(entry: Entry, numbers: dict[int, int], into: list[bytes]) -> None:
    meta, req, piece = encode_meta(entry.meta, entry.touched), entry.req_id, entry.piece
    if piece is None:
        place, offset, length, crc = 0, 0, len(entry.data), zlib.crc32(entry.data)
    else:
        place, offset, length, crc = numbers[id(piece.blob)], piece.offset, piece.length, 0
    touched, signed = entry.touched, entry.signed
    written, read = len(touched.written), len(touched.read)
    count = written + read
    into.append(
        _RECORD.pack(
            entry.kind, req.client, req.generation, req.partition, req.sequence,
            written, read, len(meta), place, offset, length, crc,
        )
    )  # fmt: skip
    into.append(signed if len(signed) == 8 * count else struct.pack(f">{count}Q", *touched.written, *touched.read))
    into.append(meta)


def decode(index: bytes, payload: bytes | None) -> Batch:
    """Returns the batch that :func:`encode` was given; without ``payload`` its entries have no data.

    Raises:
        LogCorruptError: ``encode`` did not write the bytes.
    """
    magic = index[: len(MAGIC)]
    if magic != MAGIC:
        raise LogCorruptError(_unknown(magic))
    raw = memoryview(_decompress(index[len(MAGIC) :], "index"))
    try:
        return _decode(raw, payload)
    except (struct.error, ValueError, TypeError, LookupError, AttributeError) as error:
        raise LogCorruptError(f"a log batch's index cannot be read: {error}") from error


def _unknown(magic: bytes) -> str:
    if len(magic) == len(MAGIC) and magic[:-1] == MAGIC[:-1]:
        return (
            f"a log batch is of version {magic[-1]} of the log's format, and this release reads version {MAGIC[-1]}: "
            "upgrade it to the release that writes the log"
        )
    return "a log batch does not begin with its magic number"


def _decode(raw: memoryview, payload: bytes | None) -> Batch:
    first_id, generation, time_ms, count, blob_count, own = _HEADER.unpack_from(raw)
    offset = _HEADER.size + blob_count * _BLOB.size
    stored = _Stored.described(raw[_HEADER.size : offset], blob_count, own)
    if payload is not None:
        stored.take(payload)
    entries = []
    for _ in range(count):
        entry, offset = _decode_record(raw, offset, stored)
        entries.append(entry)
    if offset != len(raw) or (stored.data is not None and stored.end != len(stored.data)):
        raise LogCorruptError(f"log batch at {first_id} has bytes that no entry accounts for")
    return Batch(first_id, generation, time_ms, tuple(entries))


@dataclass(slots=True)
class _Stored:
    """What a batch's payload holds.

    Attributes:
        sizes: of each blob its length, its CRC-32, and how many bytes are in it.
        own: length of the frame with the data of entries that have no piece.
        blobs, data: what is there; None while only the index is read.
        end: how much of ``data`` the entries so far have.
    """

    sizes: list[tuple[int, int, int]]
    own: int
    blobs: list[Blob] | None = None
    data: bytes | None = None
    end: int = 0

    @classmethod
    def described(cls, raw: memoryview, count: int, own: int) -> _Stored:
        """Returns what the index says of the payload."""
        sizes = [(length, crc, size) for length, crc, size in _BLOB.iter_unpack(raw)]
        if len(sizes) != count:
            raise LogCorruptError(f"a log batch announces {count} blobs and describes {len(sizes)}")
        if any(size > MAX_BLOB for _, _, size in sizes):
            raise LogCorruptError(f"a blob of a log batch is larger than {MAX_BLOB} bytes")
        return cls(sizes, own)

    def take(self, payload: bytes) -> None:
        """Takes the payload apart."""
        if len(payload) != self.own + sum(length for length, _, _ in self.sizes):
            raise LogCorruptError(f"a log batch's payload of {len(payload)} bytes is not the one of its index")
        self.data = _decompress(payload[: self.own], "payload") if self.own else b""
        self.blobs, begin = [], self.own
        for length, crc, size in self.sizes:
            frame = payload[begin : begin + length]
            if zlib.crc32(frame) != crc:
                raise LogCorruptError("a blob of a log batch does not match its CRC-32")
            self.blobs.append(Blob(frame, size, crc))
            begin += length

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
        if offset + length > self.sizes[number - 1][2]:
            raise LogCorruptError("an entry's piece goes beyond its blob")
        return None if self.blobs is None else Piece(self.blobs[number - 1], offset, length)


def _decode_record(raw: memoryview, offset: int, stored: _Stored) -> tuple[Entry, int]:
    (kind, client, generation, partition, sequence, written, read, meta_length, place, begin, length, crc) = (
        _RECORD.unpack_from(raw, offset)
    )
    offset += _RECORD.size
    hashes = struct.unpack_from(f">{written + read}Q", raw, offset)
    offset += 8 * (written + read)
    meta, touched = decode_meta(
        kind, raw[offset : offset + meta_length], frozenset(hashes[:written]), frozenset(hashes[written:])
    )
    asked = client or generation or partition or sequence
    entry = Entry(
        _KINDS[kind],
        meta,
        touched,
        b"" if place else stored.data_of(length, crc),
        ReqId(client, generation, partition, sequence) if asked else NO_REQUEST,
        stored.piece(place, begin, length) if place else None,
    )
    return entry, offset + meta_length


def _decompress(data: bytes, what: str) -> bytes:
    try:
        return decompressed(data, MAX_DECOMPRESSED)
    except ValueError as error:
        raise LogCorruptError(f"a log batch's {what} cannot be decompressed: {error}") from error
