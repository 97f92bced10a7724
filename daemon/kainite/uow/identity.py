"""Tells a delta that was sent again from another delta of the same unit of work.

Records are put again when the answer to ``PutRecords`` gets lost, and then every delta in them is there twice, in any
call and through any shard. A unit must not count such a copy: two copies of one delta would complete a unit of two, and
the other delta would be lost. So each delta has an *identity* within its unit, which a copy shares:

===================  ===================================================================================
the delta has        its identity is
===================  ===================================================================================
an ordinal           the ordinal: an integer
no ordinal           the digest of what was emitted: :data:`DIGEST_BYTES` bytes of BLAKE2b over the delta's
                     JSON with sorted names, without the unit's name
===================  ===================================================================================

The digest is taken of the delta as it was emitted, before the catalogue completes it: the catalogue may be another one
when the same record comes again.

Two deltas of one unit that share an identity without being copies (equal deltas without ordinals, or two digests that
collide) count as one. Their unit then stays incomplete and fails, with its cause; it is never applied without one of
them, because only distinct identities count towards the number that its end announces. A collision can therefore fail a
unit and never tear one. With 128 bits, no unit of any size will meet one by chance.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import orjson

from kainite.uow.delta import Delta, Json

DIGEST_BYTES: Final = 16

Identity: TypeAlias = int | bytes

_CONTENT: Final = frozenset({"table", "op", "key", "row", "before"})


def identity_of(delta: Delta) -> Identity:
    """Returns the identity of a delta within its unit; takes the delta as it was emitted."""
    return identity_of_emitted(delta.to_json())


def identity_of_emitted(item: Mapping[str, Json]) -> Identity:
    """Returns the identity of a delta within its unit, given the well-formed JSON object that was emitted."""
    ordinal: int | None = item.get("ordinal")
    if ordinal is not None:
        return ordinal
    content = {name: value for name, value in item.items() if value and name in _CONTENT}
    return hashlib.blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=DIGEST_BYTES).digest()


def join_digests(digests: Iterable[bytes]) -> str:
    """Returns digests as one text, which :func:`split_digests` reads back."""
    return base64.b64encode(b"".join(digests)).decode()


def split_digests(text: str) -> list[bytes]:
    """Returns the digests in a text of :func:`join_digests`, in order.

    Raises:
        ValueError: the text is no list of digests.
    """
    joined = base64.b64decode(text, validate=True)
    if len(joined) % DIGEST_BYTES:
        raise ValueError(f"{len(joined)} bytes are no list of digests of {DIGEST_BYTES} bytes")
    return [joined[start : start + DIGEST_BYTES] for start in range(0, len(joined), DIGEST_BYTES)]
