"""Fragments as bytes, between the daemon that has read them and the log's owner.

::

    metadata  length of the JSON u32 | JSON | written and read signatures of each fragment u64 …
    payload   blob …

The JSON has the fragments, each a list (:data:`FIELDS`), what blobs there are, and the schemes of signatures that the
connection has not carried before. The deltas are in the blobs (:mod:`kainite.uow.packing`). The side that has read the
shard parses, checks, signs and compresses; the owner looks at the metadata alone, and checks a blob's CRC-32 and the
size that its frame names. Integers are big-endian.

A decoded fragment has no :class:`~kainite.uow.delta.Delta` objects: ``piece`` and ``identities`` take their place.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from kainite.base.compression import contents_size
from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.identity import DIGEST_BYTES, Identity
from kainite.uow.packing import MAX_BLOB, Blob, Piece
from kainite.uow.scheme import Scheme, TableScheme
from kainite.uow.touches import Touched

MAX_PAYLOAD: Final = MAX_BLOB
"""Most bytes of deltas in one append, before compression: as many as a child may emit in one call."""

MAX_UINT64: Final = 2**64 - 1

FIELDS: Final = (
    "uow", "blob", "offset", "length", "identities", "written", "read", "ends", "scheme", "tables", "unsigned",
    "rejects", "misfits", "time", "arrived",
)  # fmt: skip
"""A fragment's fields. ``blob`` is a number from 1, 0 for none; ``written`` and ``read`` are numbers of signatures."""

_LENGTH: Final = struct.Struct(">I")
_SIGNATURE_BYTES: Final = 8
_KINDS: Final = {kind.value: kind for kind in UnitKind}


def payload_size(fragments: Sequence[Fragment]) -> int:
    """Returns the bytes of deltas in an append, before compression."""
    return sum(fragment.piece.length for fragment in fragments if fragment.piece is not None)


def check_size(shard: str, size: int) -> None:
    """Refuses an append that no batch of the log can take: its owner could not write it, nor could the next one.

    Raises:
        LogRequestError: the append has more than MAX_PAYLOAD bytes of deltas.
    """
    if size > MAX_PAYLOAD:
        raise LogRequestError(
            f"shard {shard}: one call emitted {size} bytes of deltas, of at most {MAX_PAYLOAD}: let the child emit "
            "less in one call (smaller batches: maxRecords), or the source send smaller units of work"
        )


def encode_fragments(
    fragments: Sequence[Fragment], known: Collection[str], started_ms: int | None = None
) -> tuple[bytes, bytes, frozenset[str]]:
    """Returns metadata, payload, and the ids of the schemes in the metadata.

    Args:
        fragments: of one append.
        known: ids of the schemes that the other side has.
        started_ms: of the append.
    """
    schemes = {one.scheme.id: one.scheme for one in fragments if one.scheme and one.scheme.id not in known}
    blobs = {id(one.piece.blob): one.piece.blob for one in fragments if one.piece is not None}
    numbers = {key: number for number, key in enumerate(blobs, 1)}
    document: dict[str, Any] = {
        "fragments": [_fragment_json(fragment, numbers) for fragment in fragments],
        "blobs": [[len(blob.frame), blob.crc, blob.size] for blob in blobs.values()],
        "schemes": {name: _scheme_json(scheme) for name, scheme in schemes.items()},
    }
    if started_ms is not None:
        document["started"] = started_ms
    signatures = [
        one for fragment in fragments for one in (*sorted(fragment.touched.written), *sorted(fragment.touched.read))
    ]
    text = orjson.dumps(document)
    metadata = b"".join((_LENGTH.pack(len(text)), text, struct.pack(f">{len(signatures)}Q", *signatures)))
    return metadata, b"".join(blob.frame for blob in blobs.values()), frozenset(schemes)


def decode_fragments(
    metadata: bytes, payload: bytes, known: Mapping[str, Scheme]
) -> tuple[list[Fragment], dict[str, Scheme], int | None]:
    """Returns the fragments, the schemes that came with them, and since when the shard is read, if it is told.

    Args:
        metadata, payload: as :func:`encode_fragments` returned them.
        known: the schemes that came before.

    Raises:
        LogProtocolError: the bytes are not what :func:`encode_fragments` returns.
    """
    try:
        begin = _LENGTH.size + _LENGTH.unpack_from(metadata)[0]
        document = orjson.loads(metadata[_LENGTH.size : begin])
        if (len(metadata) - begin) % _SIGNATURE_BYTES:
            raise ValueError("the signatures end in the midst of one")
        schemes = {str(name): _scheme(tables) for name, tables in document["schemes"].items()}
        blobs = _blobs(document["blobs"], payload)
        all_schemes = {**known, **schemes} if schemes else known
        fragments = _fragments(document["fragments"], blobs, metadata[begin:], all_schemes)
        return fragments, schemes, _optional(document.get("started"))
    except (ValueError, TypeError, LookupError, AttributeError, struct.error) as error:
        raise LogProtocolError(f"an append's fragments cannot be read: {type(error).__name__} {error}") from error


def _fragment_json(fragment: Fragment, numbers: Mapping[int, int]) -> list[Any]:
    piece = fragment.piece
    place = (0, 0, 0) if piece is None else (numbers[id(piece.blob)], piece.offset, piece.length)
    return [
        fragment.uow,
        *place,
        [one if isinstance(one, int) else base64.b64encode(one).decode() for one in fragment.identities],
        len(fragment.touched.written),
        len(fragment.touched.read),
        [[end.count, end.number, end.kind] for end in fragment.ends],
        fragment.scheme.id if fragment.scheme else None,
        fragment.touched.tables,
        fragment.touched.unsigned,
        [[reject.cause, reject.line] for reject in fragment.rejects],
        [[misfit.cause, misfit.line] for misfit in fragment.misfits],
        fragment.time,
        fragment.arrived_ms,
    ]


def _scheme_json(scheme: Scheme) -> dict[str, Any]:
    return {name: [table.digest, list(table.parents)] for name, table in scheme.tables.items()}


def _scheme(tables: Mapping[str, Any]) -> Scheme:
    return Scheme(
        {_text(name): TableScheme(_text(digest), _texts(parents)) for name, (digest, parents) in tables.items()}
    )


def _blobs(items: Sequence[Any], payload: bytes) -> list[Blob]:
    """Returns the blobs in the payload, which is not decompressed."""
    found, begin, all_of_them = [], 0, 0
    for length, crc, size in items:
        frame = payload[begin : begin + _natural(length)]
        begin, all_of_them = begin + length, all_of_them + _natural(size)
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


def _fragments(
    items: Sequence[Sequence[Any]], blobs: Sequence[Blob], raw: bytes, schemes: Mapping[str, Scheme]
) -> list[Fragment]:
    """Returns the fragments of the JSON, with their signatures, which are ``raw`` one behind the other.

    A field is checked for all fragments at once where that is possible: an owner reads thousands a second.
    """
    columns = list(zip(*items, strict=True)) or [()] * len(FIELDS)
    names, places, offsets, lengths, _, counts, read_counts, *_, times, arrivals = columns
    _all_texts(names)
    for numbers in (places, offsets, lengths, counts, read_counts):
        _all_natural(numbers)
    for optional in (times, arrivals):
        _all_natural([number for number in optional if number is not None])
    signatures = struct.unpack(f">{len(raw) // _SIGNATURE_BYTES}Q", raw)
    if (announced := sum(counts) + sum(read_counts)) != len(signatures):
        raise ValueError(f"{len(signatures)} signatures came, and the fragments have {announced}")
    found, end = [], 0
    for item in items:
        begin, middle = end, end + item[5]
        end = middle + item[6]
        written, read = frozenset(signatures[begin:middle]), frozenset(signatures[middle:end])
        signed = raw[_SIGNATURE_BYTES * begin : _SIGNATURE_BYTES * end]
        found.append(_fragment(item, blobs, schemes, written, read, signed))
    return found


def _fragment(
    item: Sequence[Any],
    blobs: Sequence[Blob],
    schemes: Mapping[str, Scheme],
    written: frozenset[int],
    read: frozenset[int],
    signed: bytes,
) -> Fragment:
    """Returns a fragment whose names and numbers are checked."""
    (
        uow, blob, offset, length, identities, _, _, ends, scheme, tables, unsigned, rejects, misfits, time, arrived,
    ) = item  # fmt: skip
    if bool(blob) != bool(identities):
        raise ValueError("a fragment has deltas without identities, or identities without deltas")
    return Fragment(
        uow,
        (),
        Touched(written, read, _names(tuple(tables)), _names(tuple(unsigned)) if unsigned != [] else (), scheme),
        tuple([UnitEnd(_natural(count), _optional(number), _KINDS[kind]) for count, number, kind in ends]),
        _rejects(rejects) if rejects != [] else (),
        _identities(identities),
        _rejects(misfits) if misfits != [] else (),
        None if scheme is None else schemes[scheme],
        time,
        arrived,
        _piece(blobs, blob, offset, length),
        (),
        signed,
    )


def _piece(blobs: Sequence[Blob], number: int, offset: int, length: int) -> Piece | None:
    if not number:
        return None
    blob = blobs[number - 1]
    if not length or offset + length > blob.size:
        raise ValueError("a fragment's deltas are not in its blob")
    return Piece(blob, offset, length)


def _identities(values: Sequence[Any]) -> tuple[Identity, ...]:
    if _are_natural(values):
        return tuple(values)
    return tuple(map(_identity, values))


def _identity(value: Any) -> Identity:
    if isinstance(value, str):
        digest = base64.b64decode(value, validate=True)
        if len(digest) != DIGEST_BYTES:
            raise ValueError(f"a digest of {len(digest)} bytes")
        return digest
    return _natural(value)


def _rejects(items: Sequence[Any]) -> tuple[Reject, ...]:
    return tuple(Reject(_text(cause), _text(line)) for cause, line in items)


def _are_natural(values: Sequence[Any]) -> bool:
    return {*map(type, values)} == {int} and min(values) >= 0 and max(values) <= MAX_UINT64


def _all_natural(values: Sequence[Any]) -> None:
    if values and not _are_natural(values):
        raise ValueError("a number is no whole number from 0, or too large")


def _all_texts(values: Sequence[Any]) -> None:
    if values and {*map(type, values)} != {str}:
        raise TypeError("a text is expected")


@lru_cache(maxsize=1024)
def _names(values: tuple[Any, ...]) -> tuple[str, ...]:
    """Returns names of tables, one tuple for all fragments that have the same."""
    return _texts(values)


def _natural(value: Any) -> int:
    if type(value) is int and 0 <= value <= MAX_UINT64:
        return value
    raise ValueError(f"{value!r} is no whole number from 0, or too large")


def _optional(value: Any) -> int | None:
    return None if value is None else _natural(value)


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(_text, values))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a text is expected")
    return value
