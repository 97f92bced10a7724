"""The index of a batch: its classes, of which its bytes are derived (:mod:`kainite.log.format.batch_codec`).

A class is an array of its fields, in order. A record's *meta* begins with the entry's kind, which tells the class. What
is decoded fits the classes' types and bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

import msgspec

from kainite.log.format.entry import (
    ControlMeta,
    EntryKind,
    FragmentMeta,
    Meta,
    Natural,
    OperationMeta,
    PositionMeta,
    RefitMeta,
    SchemeMeta,
    StatusMeta,
    TargetMeta,
    TransactionMeta,
    UnitMeta,
)
from kainite.uow.packing import MAX_BLOB

Word: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
SignedWord: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]


class BlobSize(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A blob of the payload.

    Attributes:
        length: the length of the blob as stored.
        crc: the CRC-32 of the blob as stored.
        size: the length of the decompressed blob.
    """

    length: Word
    crc: Word
    size: Annotated[int, msgspec.Meta(ge=0, le=MAX_BLOB)]


class IndexRecord(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """An entry without its data.

    Attributes:
        meta: the entry's meta.
        written: how many of the signatures are written; the others are read.
        signatures: 64-bit integers, big-endian.
        tables, unsigned, scheme: the other fields of what the entry touches (:class:`~kainite.uow.touches.Touched`).
        request: the request that the entry answers; None for :data:`~kainite.log.format.entry.NO_REQUEST`.
        blob: the number of the blob with the entry's data, from 1; 0 for the payload's first frame.
        offset: the place in the blob at which the data begins; 0 without a blob.
        length: the length of the data.
        crc: the CRC-32 of the data; 0 for data in a blob.
    """

    meta: Meta
    written: Word
    signatures: bytes
    tables: tuple[str, ...]
    unsigned: tuple[str, ...]
    scheme: str | None
    request: tuple[SignedWord, SignedWord, SignedWord, SignedWord] | None
    blob: Word
    offset: Word
    length: Word
    crc: Word


class Index(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A batch without its data.

    Attributes:
        first_id, generation, time_ms: as in :class:`~kainite.log.format.entry.Batch`.
        blobs: the blobs of the payload.
        own: the length of the payload's first frame; 0 without such a frame.
        records: the entries.
    """

    first_id: Natural
    generation: Natural
    time_ms: int
    blobs: list[BlobSize]
    own: Word
    records: list[IndexRecord]


ENCODER: Final = msgspec.msgpack.Encoder()
DECODER: Final = msgspec.msgpack.Decoder(Index)
KINDS: Final[Mapping[type[Meta], EntryKind]] = {
    FragmentMeta: EntryKind.FRAGMENT,
    UnitMeta: EntryKind.UNIT,
    StatusMeta: EntryKind.STATUS,
    PositionMeta: EntryKind.POSITION,
    ControlMeta: EntryKind.CONTROL,
    SchemeMeta: EntryKind.SCHEME,
    RefitMeta: EntryKind.REFIT,
    TransactionMeta: EntryKind.TRANSACTION,
    OperationMeta: EntryKind.OPERATION,
    TargetMeta: EntryKind.TARGET,
}
