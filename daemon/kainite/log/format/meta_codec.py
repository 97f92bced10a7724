"""The meta of a log entry, and what the entry touches beside its signatures, as bytes: derived from their types.

The bytes are MessagePack of ``[meta, tables, unsigned, scheme]``. A meta is an array of its fields, in the order of its
class. The entry's kind, which the batch's record has, tells the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from kainite.base.errors import LogCorruptError
from kainite.log.format.entry import (
    ControlMeta,
    EntryKind,
    FragmentMeta,
    Meta,
    PositionMeta,
    RefitMeta,
    SchemeMeta,
    StatusMeta,
    TransactionMeta,
    UnitMeta,
)
from kainite.uow.touches import Touched

_Names: TypeAlias = tuple[str, ...]

_CLASSES: Final[Mapping[EntryKind, type[Meta]]] = {
    EntryKind.FRAGMENT: FragmentMeta,
    EntryKind.UNIT: UnitMeta,
    EntryKind.STATUS: StatusMeta,
    EntryKind.POSITION: PositionMeta,
    EntryKind.CONTROL: ControlMeta,
    EntryKind.SCHEME: SchemeMeta,
    EntryKind.REFIT: RefitMeta,
    EntryKind.TRANSACTION: TransactionMeta,
}
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODERS: Final[Mapping[int, msgspec.msgpack.Decoder[Any]]] = {
    kind: msgspec.msgpack.Decoder(tuple[meta, _Names, _Names, str | None])  # type: ignore[valid-type]
    for kind, meta in _CLASSES.items()
}


def encode_meta(meta: Meta, touched: Touched) -> bytes:
    """Returns a meta, and all of ``touched`` but its signatures, as bytes."""
    return _ENCODER.encode((meta, touched.tables, touched.unsigned, touched.scheme))


def decode_meta(
    kind: int, data: bytes | memoryview, written: frozenset[int], read: frozenset[int]
) -> tuple[Meta, Touched]:
    """Returns the meta that :func:`encode_meta` was given, and what the entry touches.

    Args:
        kind: the entry's kind.
        data: the meta's bytes.
        written, read: the entry's signatures.

    Raises:
        LogCorruptError: the bytes are not those of a meta of this kind.
    """
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise LogCorruptError(f"a log entry is of kind {kind}, which there is not")
    try:
        meta, tables, unsigned, scheme = decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LogCorruptError(
            f"the meta of a log entry of kind {EntryKind(kind).name} cannot be read: {error}"
        ) from None
    return meta, Touched(written, read, _shared(tables), unsigned, scheme)


@lru_cache(maxsize=1024)
def _shared(tables: _Names) -> _Names:
    """Returns one tuple for all units that touch the same tables: a backlog may have a million of them."""
    return tables
