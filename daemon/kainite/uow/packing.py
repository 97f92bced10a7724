"""The deltas of an append as compressed bytes: made where the shard is held, read where units are applied.

The deltas of a fragment are one JSON array. The arrays of an append, one behind the other, are compressed into one
Zstandard frame, a *blob*; each fragment has a *piece* of it. Nobody between the shard's holder and the apply job needs
to look into a blob: the log's owner copies it.

Units alone compress badly. Units of five deltas (1,330 bytes of JSON) took 425 bytes each in frames of their own, 229
in frames of ten units, 202 in frames of a hundred; and each took 26, 10 and 6 µs to compress. A blob of several arrays
has at most :data:`BLOB_BYTES`, so that who reads one unit of a large append does not decompress all of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Final

import msgspec
import orjson

from kainite.base.compression import compressed, decompressed
from kainite.base.value_class import value_class
from kainite.uow.delta import Delta

BLOB_BYTES: Final = 2**20
"""Most bytes of several arrays in one blob, before compression."""

MAX_BLOB: Final = 256 * 2**20
"""Most bytes in a blob, before compression: as many as a child may emit in one call."""

_LEVEL = 1


@value_class(frozen=True, slots=True)
class Blob:
    """Compressed bytes.

    Attributes:
        frame: the bytes as they are stored: a Zstandard frame.
        size: how many bytes are in it.
        crc: the CRC-32 of ``frame``.
    """

    frame: bytes = field(repr=False)
    size: int
    crc: int

    @classmethod
    def of(cls, data: bytes) -> Blob:
        """Returns data as a blob."""
        frame = compressed(data, _LEVEL)
        return cls(frame, len(data), zlib.crc32(frame))


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A part of a blob's contents."""

    blob: Blob
    offset: int
    length: int

    def read(self) -> bytes:
        """Returns the piece's bytes.

        Raises:
            ValueError: the blob does not hold what it is said to hold.
        """
        whole = self.length == self.blob.size
        contents = _contents(self.blob) if whole else _shared_contents(self.blob)
        return contents[self.offset : self.offset + self.length]


def pack(fragments: Sequence[Sequence[Delta]]) -> list[Piece | None]:
    """Returns the pieces of the fragments of one append, each given by its deltas; None for one without deltas."""
    return pack_items([[orjson.dumps(delta.to_json()) for delta in deltas] for deltas in fragments])


def pack_items(fragments: Sequence[Sequence[bytes]]) -> list[Piece | None]:
    """Returns the pieces as :func:`pack` does, of fragments that are given by their deltas' JSON."""
    arrays = [b"[%b]" % b",".join(items) if items else b"" for items in fragments]
    return [piece if piece.length else None for group in _groups(arrays) for piece in _pieces(group)]


def _groups(arrays: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Yields the arrays of each blob."""
    group: list[bytes] = []
    size = 0
    for array in arrays:
        if group and size + len(array) > BLOB_BYTES:
            yield group
            group, size = [], 0
        group.append(array)
        size += len(array)
    yield group


def _pieces(arrays: Sequence[bytes]) -> Iterator[Piece]:
    blob, offset = Blob.of(b"".join(arrays)), 0
    for array in arrays:
        yield Piece(blob, offset, len(array))
        offset += len(array)


def _contents(blob: Blob) -> bytes:
    data = decompressed(blob.frame, blob.size)
    if len(data) != blob.size:
        raise ValueError(f"a blob holds {len(data)} bytes and not {blob.size}")
    return data


# Units of one append are read one after the other. A blob with more than one of them has at most BLOB_BYTES.
_shared_contents = lru_cache(maxsize=4)(_contents)
