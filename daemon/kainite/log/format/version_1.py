"""Batches of version 1, which are read for ever and not written any more.

::

    index    "KL" | version u8 = 1 | zstd( header | record … )
    header   first id i64 | generation i32 | time ms i64 | number of records u32
    record   kind u8 | ReqId 4 × i32 | written u32 | read u32 | meta length u32 | data length u32
             | CRC-32 of the data u32 | written × u64 | read × u64 | meta (JSON)
    payload  zstd( data of the first entry | data of the second … )
"""

from __future__ import annotations

import struct
import zlib

import orjson

from kainite.base.errors import LogCorruptError
from kainite.log.format.entry import Batch, Entry, EntryKind, ReqId
from kainite.log.format.meta_codec import decode_meta

_HEADER = struct.Struct(">qiqI")
_RECORD = struct.Struct(">BiiiiIIIII")


def decode_version_1(raw: memoryview, data: memoryview | None) -> Batch:
    """Returns a batch; without ``data`` its entries have none.

    Args:
        raw: what the index holds, decompressed.
        data: what the payload holds, decompressed.

    Raises:
        LogCorruptError, struct.error, ValueError, TypeError, LookupError, AttributeError: the bytes are no batch.
    """
    first_id, generation, time_ms, count = _HEADER.unpack_from(raw)
    entries, offset, end = [], _HEADER.size, 0
    for _ in range(count):
        entry, offset, end = _decode_record(raw, offset, data, end)
        entries.append(entry)
    if offset != len(raw) or (data is not None and end != len(data)):
        raise LogCorruptError(f"log batch at {first_id} has bytes that no entry accounts for")
    return Batch(first_id, generation, time_ms, tuple(entries))


def _decode_record(raw: memoryview, offset: int, data: memoryview | None, start: int) -> tuple[Entry, int, int]:
    kind, client, generation, partition, sequence, written, read, meta_length, length, crc = _RECORD.unpack_from(
        raw, offset
    )
    offset += _RECORD.size
    hashes = struct.unpack_from(f">{written + read}Q", raw, offset)
    offset += 8 * (written + read)
    meta = decode_meta(EntryKind(kind), orjson.loads(raw[offset : offset + meta_length]))
    body = b"" if data is None else bytes(data[start : start + length])
    if data is not None and zlib.crc32(body) != crc:
        raise LogCorruptError("an entry's data does not match its CRC-32")
    entry = Entry(
        EntryKind(kind),
        meta,
        frozenset(hashes[:written]),
        frozenset(hashes[written:]),
        body,
        ReqId(client, generation, partition, sequence),
    )
    return entry, offset + meta_length, start + length
