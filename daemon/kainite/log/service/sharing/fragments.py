"""Fragments as bytes, between the daemon that has read them and the log's owner.

The metadata is JSON: a list of fragments, and the schemes of signatures that the connection has not carried before.
The deltas of all fragments are one compressed payload, one after the other as the log holds them, and the metadata has
their lengths. The side that has read the shard parses, checks, signs and compresses; the owner looks at the
metadata alone.

A decoded fragment has no :class:`~kainite.uow.delta.Delta` objects: ``encoded`` and ``identities`` take their place.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import orjson

from kainite.base.compression import compressed, decompressed
from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.identity import DIGEST_BYTES, Identity
from kainite.uow.scheme import Scheme, TableScheme

MAX_PAYLOAD: Final = 256 * 2**20
"""Most bytes of deltas in one append, before compression: as many as a child may emit in one call."""

MAX_UINT64: Final = 2**64 - 1
_LEVEL = 1


def payload_size(fragments: Sequence[Fragment]) -> int:
    """Returns the bytes of deltas in an append, before compression."""
    return sum(len(encoded) for fragment in fragments for encoded in fragment.encoded)


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


def encode_fragments(fragments: Sequence[Fragment], known: Collection[str]) -> tuple[bytes, bytes, frozenset[str]]:
    """Returns metadata, payload, and the ids of the schemes in the metadata.

    Args:
        fragments: of one append.
        known: ids of the schemes that the other side has.
    """
    schemes = {one.scheme.id: one.scheme for one in fragments if one.scheme and one.scheme.id not in known}
    document = {
        "fragments": [_fragment_json(fragment) for fragment in fragments],
        "schemes": {name: _scheme_json(scheme) for name, scheme in schemes.items()},
    }
    joined = b"".join(encoded for fragment in fragments for encoded in fragment.encoded)
    payload = compressed(joined, _LEVEL)
    return orjson.dumps(document), payload, frozenset(schemes)


def decode_fragments(
    metadata: bytes, payload: bytes, known: Mapping[str, Scheme]
) -> tuple[list[Fragment], dict[str, Scheme]]:
    """Returns the fragments, and the schemes that came with them.

    Args:
        metadata, payload: as :func:`encode_fragments` returned them.
        known: the schemes that came before.

    Raises:
        LogProtocolError: the bytes are not what :func:`encode_fragments` returns.
    """
    try:
        document = orjson.loads(metadata)
        schemes = {str(name): _scheme(tables) for name, tables in document["schemes"].items()}
        items = document["fragments"]
        joined = _decompressed(payload, sum(sum(_naturals(item["sizes"])) for item in items))
        found, begin = [], 0
        for item in items:
            fragment, begin = _fragment(item, joined, begin, {**known, **schemes})
            found.append(fragment)
        return found, schemes
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LogProtocolError(f"an append's fragments cannot be read: {type(error).__name__} {error}") from error


def _fragment_json(fragment: Fragment) -> dict[str, Any]:
    full = {
        "uow": fragment.uow,
        "sizes": [len(encoded) for encoded in fragment.encoded],
        "identities": [one if isinstance(one, int) else base64.b64encode(one).decode() for one in fragment.identities],
        "written": sorted(fragment.written),
        "read": sorted(fragment.read),
        "ends": [[end.count, end.number, end.kind] for end in fragment.ends],
        "rejects": [[reject.cause, reject.line] for reject in fragment.rejects],
        "misfits": [[misfit.cause, misfit.line] for misfit in fragment.misfits],
        "tables": fragment.tables,
        "unsigned": fragment.unsigned,
        "scheme": fragment.scheme.id if fragment.scheme else None,
        "time": fragment.time,
    }
    needed = ("uow", "sizes")
    return {name: value for name, value in full.items() if value or value == 0 or name in needed}


def _scheme_json(scheme: Scheme) -> dict[str, Any]:
    return {name: [table.digest, list(table.parents)] for name, table in scheme.tables.items()}


def _scheme(tables: Mapping[str, Any]) -> Scheme:
    return Scheme(
        {_text(name): TableScheme(_text(digest), _texts(parents)) for name, (digest, parents) in tables.items()}
    )


def _fragment(
    item: Mapping[str, Any], joined: bytes, begin: int, schemes: Mapping[str, Scheme]
) -> tuple[Fragment, int]:
    """Returns a fragment, and where the deltas of the next one begin."""
    encoded = []
    for size in item["sizes"]:
        encoded.append(joined[begin : begin + size])
        begin += size
    identities = tuple(map(_identity, item.get("identities", ())))
    if len(identities) != len(encoded):
        raise ValueError(f"{len(encoded)} deltas have {len(identities)} identities")
    scheme = item.get("scheme")
    fragment = Fragment(
        uow=_text(item["uow"]),
        written=_signatures(item.get("written", ())),
        read=_signatures(item.get("read", ())),
        ends=tuple(
            UnitEnd(_natural(count), _optional(number), UnitKind(kind)) for count, number, kind in item.get("ends", ())
        ),
        rejects=_rejects(item.get("rejects", ())),
        identities=identities,
        misfits=_rejects(item.get("misfits", ())),
        tables=_texts(item.get("tables", ())),
        unsigned=_texts(item.get("unsigned", ())),
        scheme=None if scheme is None else schemes[scheme],
        encoded=tuple(encoded),
        time=_optional(item.get("time")),
    )
    return fragment, begin


def _decompressed(payload: bytes, size: int) -> bytes:
    if size > MAX_PAYLOAD:
        raise ValueError(f"the deltas are {size} bytes, of at most {MAX_PAYLOAD}")
    joined = decompressed(payload, size)
    if len(joined) != size:
        raise ValueError(f"the deltas are {len(joined)} bytes and not {size}")
    return joined


def _identity(value: Any) -> Identity:
    if isinstance(value, str):
        digest = base64.b64decode(value, validate=True)
        if len(digest) != DIGEST_BYTES:
            raise ValueError(f"a digest of {len(digest)} bytes")
        return digest
    return _natural(value)


def _rejects(items: Sequence[Any]) -> tuple[Reject, ...]:
    return tuple(Reject(_text(cause), _text(line)) for cause, line in items)


def _signatures(values: Sequence[Any]) -> frozenset[int]:
    return frozenset(_naturals(values))


def _naturals(values: Sequence[Any]) -> Sequence[int]:
    if not all(type(value) is int and 0 <= value <= MAX_UINT64 for value in values):
        raise ValueError("a number is no whole number from 0, or too large")
    return values


def _natural(value: Any) -> int:
    return _naturals((value,))[0]


def _optional(value: Any) -> int | None:
    return None if value is None else _natural(value)


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(_text, values))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a text is expected")
    return value
