"""Fragments as bytes, between the daemon that has read them and the log's owner.

An append carries metadata (:class:`SentFragments`, as msgpack) and a payload: its blobs, one after the other.
The deltas are in the blobs (:mod:`kainite.uow.packing`). The side that has read the shard parses, checks, signs and
compresses; the owner looks at the metadata alone, and checks each blob's CRC-32 and the size that its frame names. The
signatures are 64-bit integers, big-endian, as the log's format has them, so that the owner copies them too.

A decoded fragment has no :class:`~kainite.uow.delta.Delta` objects: ``piece`` and ``identities`` take their place.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from kainite.base.compression import contents_size
from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.peers.messages import Natural
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.identity import DIGEST_BYTES
from kainite.uow.packing import MAX_BLOB, Blob, Piece
from kainite.uow.scheme import Scheme, TableScheme
from kainite.uow.touches import Touched

MAX_PAYLOAD: Final = MAX_BLOB
"""Most bytes of deltas in one append, before compression: as many as a child may emit in one call."""

_SIGNATURE_BYTES: Final = 8

Digest: TypeAlias = Annotated[bytes, Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]


class SentFragment(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A :class:`~kainite.uow.fragment.Fragment` on its way.

    Attributes:
        blob: the number of the blob with the fragment's deltas, from 1; 0 for none.
        offset, length: the place of the deltas in the blob.
        signed: the signatures of written rows, then those of read rows.
        written: how many signatures in ``signed`` are of written rows.
        ends: the count, the number and the kind of each end of a unit.
        scheme: the id of the scheme of the signatures.
    """

    uow: str
    blob: Natural
    offset: Natural
    length: Natural
    identities: tuple[Natural | Digest, ...]
    signed: bytes
    written: Natural
    ends: tuple[tuple[Natural, Natural | None, UnitKind], ...]
    scheme: str | None
    tables: tuple[str, ...]
    unsigned: tuple[str, ...]
    rejects: tuple[Reject, ...]
    misfits: tuple[Reject, ...]
    time: Natural | None
    arrived: Natural | None


class SentFragments(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The metadata of an append.

    Attributes:
        blobs: the length, CRC-32 and uncompressed size of each blob in the payload.
        schemes: the schemes of signatures that the connection has not carried before, by id.
    """

    fragments: tuple[SentFragment, ...]
    blobs: tuple[tuple[Natural, Natural, Natural], ...]
    schemes: dict[str, dict[str, TableScheme]]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(SentFragments)


def payload_size(fragments: Sequence[Fragment]) -> int:
    """Returns the bytes of deltas in an append, before compression."""
    return sum(fragment.piece.length for fragment in fragments if fragment.piece is not None)


def check_size(shard: str, size: int) -> None:
    """Refuses an append that is too large for a batch of the log: no owner, now or later, could write it.

    Raises:
        LogRequestError: the append has more than MAX_PAYLOAD bytes of deltas.
    """
    if size > MAX_PAYLOAD:
        raise LogRequestError(
            f"shard {shard}: one call emitted {size} bytes of deltas, of at most {MAX_PAYLOAD}: let the child emit "
            "less in one call (smaller batches: maxRecords), or the source send smaller units of work"
        )


def encode_fragments(fragments: Sequence[Fragment], known: Collection[str]) -> tuple[bytes, bytes, frozenset[str]]:
    """Returns an append's metadata, its payload, and the ids of the schemes in the metadata.

    Args:
        fragments: the fragments of one append.
        known: the ids of the schemes that the other side has.
    """
    schemes = {one.scheme.id: one.scheme for one in fragments if one.scheme and one.scheme.id not in known}
    blobs = {id(one.piece.blob): one.piece.blob for one in fragments if one.piece is not None}
    numbers = {key: number for number, key in enumerate(blobs, 1)}
    metadata = SentFragments(
        tuple([_sent(fragment, numbers) for fragment in fragments]),
        tuple([(len(blob.frame), blob.crc, blob.size) for blob in blobs.values()]),
        {name: dict(scheme.tables) for name, scheme in schemes.items()},
    )
    return _ENCODER.encode(metadata), b"".join([blob.frame for blob in blobs.values()]), frozenset(schemes)


def decode_fragments(
    metadata: bytes | memoryview, payload: bytes | memoryview, known: Mapping[str, Scheme]
) -> tuple[list[Fragment], dict[str, Scheme]]:
    """Returns the fragments, and the schemes that came with them.

    Args:
        metadata, payload: as :func:`encode_fragments` returned them.
        known: the schemes that earlier appends have brought.

    Raises:
        LogProtocolError: the bytes are not what :func:`encode_fragments` returns.
    """
    try:
        sent = _DECODER.decode(metadata)
        schemes = {name: Scheme(tables) for name, tables in sent.schemes.items()}
        blobs = _blobs(sent.blobs, memoryview(payload))
        all_schemes = {**known, **schemes} if schemes else known
        return [_fragment(one, blobs, all_schemes) for one in sent.fragments], schemes
    except (msgspec.MsgspecError, ValueError, LookupError, RecursionError) as error:
        raise LogProtocolError(f"an append's fragments cannot be read: {type(error).__name__} {error}") from error


def _sent(fragment: Fragment, numbers: Mapping[int, int]) -> SentFragment:
    piece, touched = fragment.piece, fragment.touched
    place = (0, 0, 0) if piece is None else (numbers[id(piece.blob)], piece.offset, piece.length)
    signatures = (*sorted(touched.written), *sorted(touched.read))
    return SentFragment(
        fragment.uow,
        *place,
        fragment.identities,
        struct.pack(f">{len(signatures)}Q", *signatures),
        len(touched.written),
        tuple([(end.count, end.number, end.kind) for end in fragment.ends]),
        fragment.scheme.id if fragment.scheme else None,
        touched.tables,
        touched.unsigned,
        fragment.rejects,
        fragment.misfits,
        fragment.time,
        fragment.arrived_ms,
    )


def _blobs(items: Sequence[tuple[int, int, int]], payload: memoryview) -> list[Blob]:
    """Returns the blobs in the payload, which is not decompressed."""
    found, begin, all_of_them = [], 0, 0
    for length, crc, size in items:
        frame = bytes(payload[begin : begin + length])
        begin, all_of_them = begin + length, all_of_them + size
        if len(frame) != length or zlib.crc32(frame) != crc:
            raise ValueError("a blob does not match its length and CRC-32")
        if contents_size(frame) != size:
            raise ValueError(f"a blob's frame does not say that it holds {size} bytes")
        found.append(Blob(frame, size, crc))
    if begin != len(payload):
        raise ValueError(f"the payload is {len(payload)} bytes, and the blobs are {begin}")
    if all_of_them > MAX_PAYLOAD:
        raise ValueError(f"the deltas are {all_of_them} bytes, of at most {MAX_PAYLOAD}")
    return found


def _fragment(sent: SentFragment, blobs: Sequence[Blob], schemes: Mapping[str, Scheme]) -> Fragment:
    if bool(sent.blob) != bool(sent.identities):
        raise ValueError("a fragment has deltas without identities, or identities without deltas")
    written, read = _signatures(sent)
    return Fragment(
        sent.uow,
        (),
        Touched(written, read, _shared(sent.tables), _shared(sent.unsigned), sent.scheme),
        tuple([UnitEnd(*end) for end in sent.ends]),
        sent.rejects,
        sent.identities,
        sent.misfits,
        None if sent.scheme is None else schemes[sent.scheme],
        sent.time,
        sent.arrived,
        _piece(blobs, sent.blob, sent.offset, sent.length),
        (),
        sent.signed,
    )


def _signatures(sent: SentFragment) -> tuple[frozenset[int], frozenset[int]]:
    count, rest = divmod(len(sent.signed), _SIGNATURE_BYTES)
    if rest or sent.written > count:
        raise ValueError(f"a fragment has {len(sent.signed)} bytes of signatures, {sent.written} of them written")
    signatures = struct.unpack(f">{count}Q", sent.signed)
    return frozenset(signatures[: sent.written]), frozenset(signatures[sent.written :])


def _piece(blobs: Sequence[Blob], number: int, offset: int, length: int) -> Piece | None:
    if not number:
        return None
    blob = blobs[number - 1]
    if not length or offset + length > blob.size:
        raise ValueError("a fragment's deltas are not in its blob")
    return Piece(blob, offset, length)


@lru_cache(maxsize=1024)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns names of tables; all fragments with the same names share one tuple."""
    return names
