"""A batch of log entries as bytes: an index, and a payload that the index describes.

The index holds everything but the entries' data, so a reader that schedules conflicts or follows statuses
fetches no data. Both parts are compressed with Zstandard::

    index    "KL" | version u8 | zstd( header | record … )
    header   first id i64 | generation i32 | time ms i64 | number of records u32
    record   kind u8 | ReqId 4 × i32 | written u32 | read u32 | meta length u32 | data length u32
             | CRC-32 of the data u32 | written × u64 | read × u64 | meta (JSON)
    payload  zstd( data of the first entry | data of the second … )

Integers are big-endian, as in Waltz (docs/architecture.md, *Formats*). Every length is checked against
the bytes present, and decompression is bounded, so no input can make a reader allocate without limit.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import orjson

from kainite.base.compression import compressed, decompressed
from kainite.base.errors import LogCorruptError, LogError
from kainite.base.position import Position
from kainite.log.format.entry import (
    Batch,
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    Meta,
    Outcome,
    PositionMeta,
    RefitMeta,
    ReqId,
    SchemeMeta,
    StatusMeta,
    TransactionMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.uow.delta import UnitKind

T = TypeVar("T")

MAGIC = b"KL\x01"
MAX_DECOMPRESSED = 1 << 30
_LEVEL = 3
_HEADER = struct.Struct(">qiqI")
_RECORD = struct.Struct(">BiiiiIIIII")


def encode(batch: Batch) -> tuple[bytes, bytes]:
    """Returns the batch as (index, payload).

    Raises:
        LogError: a part is larger than :func:`decode` takes, so that nobody could read the batch.
    """
    parts = [_HEADER.pack(batch.first_id, batch.generation, batch.time_ms, len(batch.entries))]
    for entry in batch.entries:
        parts += _encode_record(entry)
    _check_size("index", sum(map(len, parts)))
    _check_size("payload", sum(len(entry.data) for entry in batch.entries))
    index = MAGIC + compressed(b"".join(parts), _LEVEL)
    return index, compressed(b"".join(entry.data for entry in batch.entries), _LEVEL)


def _check_size(what: str, size: int) -> None:
    if size > MAX_DECOMPRESSED:
        raise LogError(
            f"a log batch's {what} of {size} bytes is larger than its readers take ({MAX_DECOMPRESSED}), and was not "
            "written: let the children emit less in one call (smaller batches: maxRecords), or the source send smaller "
            "units of work"
        )


def decode(index: bytes, payload: bytes | None) -> Batch:
    """Returns the batch that :func:`encode` was given; without ``payload`` its entries have no data.

    Raises:
        LogCorruptError: ``encode`` did not write the bytes.
    """
    if index[: len(MAGIC)] != MAGIC:
        raise LogCorruptError("a log batch does not begin with its magic number")
    raw = memoryview(_decompress(index[len(MAGIC) :], "index"))
    data = None if payload is None else memoryview(_decompress(payload, "payload"))
    try:
        return _decode(raw, data)
    except (struct.error, ValueError, TypeError, LookupError, AttributeError) as error:
        raise LogCorruptError(f"a log batch's index cannot be read: {error}") from error


def _decode(raw: memoryview, data: memoryview | None) -> Batch:
    first_id, generation, time_ms, count = _HEADER.unpack_from(raw)
    entries, offset, end = [], _HEADER.size, 0
    for _ in range(count):
        entry, offset, end = _decode_record(raw, offset, data, end)
        entries.append(entry)
    if offset != len(raw) or (data is not None and end != len(data)):
        raise LogCorruptError(f"log batch at {first_id} has bytes that no entry accounts for")
    return Batch(first_id, generation, time_ms, tuple(entries))


def _encode_record(entry: Entry) -> Iterator[bytes]:
    meta = encode_meta(entry.meta)
    req = entry.req_id
    yield _RECORD.pack(
        entry.kind,
        req.client,
        req.generation,
        req.partition,
        req.sequence,
        len(entry.written),
        len(entry.read),
        len(meta),
        len(entry.data),
        zlib.crc32(entry.data),
    )
    yield struct.pack(f">{len(entry.written)}Q", *entry.written)
    yield struct.pack(f">{len(entry.read)}Q", *entry.read)
    yield meta


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


def _decompress(data: bytes, what: str) -> bytes:
    try:
        return decompressed(data, MAX_DECOMPRESSED)
    except ValueError as error:
        raise LogCorruptError(f"a log batch's {what} cannot be decompressed: {error}") from error


def encode_meta(meta: Meta) -> bytes:
    """Returns a meta as JSON; sequence numbers are strings because they exceed 64 bits."""
    if isinstance(meta, PositionMeta):
        return orjson.dumps([meta.shard, str(meta.position.sequence), meta.position.sub])
    return orjson.dumps(meta)


def decode_meta(kind: EntryKind, fields: Any) -> Meta:
    """Returns the meta that :func:`encode_meta` was given.

    Raises:
        ValueError, TypeError, LookupError, AttributeError: it was given none of this kind.
    """
    meta = _DECODERS[kind](fields)
    for name, kinds in _TYPES[kind]:
        if not isinstance(getattr(meta, name), kinds):
            raise TypeError(f"{name} is {getattr(meta, name)!r}")
    return meta


def _fragment(fields: Mapping[str, Any]) -> FragmentMeta:
    return FragmentMeta(
        uow=fields["uow"],
        shard=fields["shard"],
        count=fields["count"],
        ordinals=_all(int, fields["ordinals"]),
        end_count=fields["end_count"],
        number=fields["number"],
        unit_kind=UnitKind(fields["unit_kind"]),
        causes=_all(str, fields["causes"]),
        offending=fields["offending"],
        digests=fields.get("digests", ""),
        repeated=fields.get("repeated", 0),
        misfits=tuple(fields.get("misfits", ())),
        tables=_all(str, fields.get("tables", ())),
        unsigned=_all(str, fields.get("unsigned", ())),
        scheme=fields.get("scheme"),
        fault=_fault(fields.get("fault")),
    )


def _unit(fields: Mapping[str, Any]) -> UnitMeta:
    return UnitMeta(
        uow=fields["uow"],
        count=fields["count"],
        shards=_all(str, fields["shards"]),
        fragments=_all(int, fields["fragments"]),
        number=fields["number"],
        kind=UnitKind(fields["kind"]),
        conflict=fields["conflict"],
        cause=fields["cause"],
        offending=fields["offending"],
        fault=_fault(fields.get("fault")),
        tables=_all(str, fields.get("tables", ())),
        unsigned=_all(str, fields.get("unsigned", ())),
        scheme=fields.get("scheme"),
    )


def _fault(word: str | None) -> Fault | None:
    return None if word is None else Fault(word)


def _status(fields: Mapping[str, Any]) -> StatusMeta:
    outcomes = (
        Outcome(_all(int, [item["tid"]])[0], UnitStatus(item["status"]), item["instance"], item["cause"])
        for item in fields["outcomes"]
    )
    return StatusMeta(tuple(outcomes), fields["through"], _all(str, fields["requests"]))


def _position(fields: list[Any]) -> PositionMeta:
    shard, sequence, sub = fields
    return PositionMeta(shard, Position(int(sequence), _all(int, [sub])[0]))


def _control(fields: Mapping[str, Any]) -> ControlMeta:
    return ControlMeta(
        fields["what"], fields.get("since"), fields.get("count", 0), fields.get("key"), fields.get("forget", 0)
    )


def _refit(fields: Mapping[str, Any]) -> RefitMeta:
    tables = _all(str, fields["tables"])
    return RefitMeta(fields["unit"], fields["uow"], fields["count"], tables, fields["scheme"])


def _transaction(fields: Mapping[str, Any]) -> TransactionMeta:
    return TransactionMeta(fields["header"])


def _scheme(fields: Mapping[str, Any]) -> SchemeMeta:
    tables = {
        name: (_all(str, [digest])[0], _all(str, parents)) for name, (digest, parents) in fields["tables"].items()
    }
    return SchemeMeta(fields["scheme"], tables)


# What folds and views rely on: an index of another release, or a broken one, must not fail in the midst of a fold.
_TEXT_OR_NONE, _NUMBER_OR_NONE = (str, type(None)), (int, type(None))
_TYPES: Mapping[EntryKind, tuple[tuple[str, type | tuple[type, ...]], ...]] = {
    EntryKind.FRAGMENT: (
        ("uow", str), ("shard", str), ("count", int), ("end_count", _NUMBER_OR_NONE), ("number", _NUMBER_OR_NONE),
        ("offending", _TEXT_OR_NONE), ("digests", str), ("repeated", int), ("scheme", _TEXT_OR_NONE),
    ),
    EntryKind.UNIT: (
        ("uow", str), ("count", int), ("number", _NUMBER_OR_NONE), ("conflict", _NUMBER_OR_NONE),
        ("cause", _TEXT_OR_NONE), ("offending", _TEXT_OR_NONE), ("scheme", _TEXT_OR_NONE),
    ),
    EntryKind.STATUS: (("through", _NUMBER_OR_NONE),),
    EntryKind.POSITION: (("shard", str),),
    EntryKind.CONTROL: (
        ("what", str), ("since", _NUMBER_OR_NONE), ("count", int), ("key", _TEXT_OR_NONE), ("forget", int),
    ),
    EntryKind.SCHEME: (("scheme", str),),
    EntryKind.REFIT: (("unit", int), ("uow", str), ("count", int), ("scheme", _TEXT_OR_NONE)),
    EntryKind.TRANSACTION: (("header", int),),
}  # fmt: skip


def _all(kind: type[T], items: Iterable[Any]) -> tuple[T, ...]:
    """Returns items that are all of one kind; raises TypeError."""
    found = tuple(items)
    if not all(isinstance(item, kind) for item in found):
        raise TypeError(f"{found!r} are not all of {kind.__name__}")
    return found


_DECODERS: Mapping[EntryKind, Callable[[Any], Meta]] = {
    EntryKind.FRAGMENT: _fragment,
    EntryKind.UNIT: _unit,
    EntryKind.STATUS: _status,
    EntryKind.POSITION: _position,
    EntryKind.CONTROL: _control,
    EntryKind.SCHEME: _scheme,
    EntryKind.REFIT: _refit,
    EntryKind.TRANSACTION: _transaction,
}
