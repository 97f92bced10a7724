"""Tells a delta that was sent again from another delta of the same unit of work.

Records are put again when the answer to ``PutRecords`` gets lost, and then every delta in them is there twice, in any
call and through any shard. A unit must not count such a copy: two copies of one delta would complete a unit of two
deltas without the other delta. So each delta has an *identity* within its unit, and a copy has the same identity:

===================  ===================================================================================
the delta has        its identity is
===================  ===================================================================================
an ordinal           the ordinal: an integer
no ordinal           the digest of what was emitted: :data:`DIGEST_BYTES` bytes of BLAKE2b over the delta's
                     JSON with sorted names, without the unit's name
===================  ===================================================================================

Two deltas of one unit that share an identity without being copies (equal deltas without ordinals, or two digests that
collide) count as one. Their unit then stays incomplete and fails, with its cause; it is never applied without one of
them, because only distinct identities count towards the number that its end announces. A collision can therefore fail a
unit and never tear one. With 128 bits a collision by chance is not to be expected in a unit of any size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, TypeAlias

import orjson

from kainite.uow.delta import Delta, Json

DIGEST_BYTES: Final = 16

Identity: TypeAlias = int | bytes

_CONTENT: Final = frozenset({"table", "op", "key", "row", "before", "values"})


def identity_of(delta: Delta) -> Identity:
    """Returns the identity of a delta within its unit; takes the delta as it was emitted."""
    return identity_of_emitted(delta.to_json())


def identity_of_emitted(item: Mapping[str, Json]) -> Identity:
    """Returns the identity of a delta within its unit, given the well-formed JSON object that was emitted."""
    ordinal: int | None = item.get("ordinal")
    if ordinal is not None:
        return ordinal
    # The digest is of what was emitted, before the catalogue completes it: when the same record comes again, the
    # catalogue may be another one.
    content = {name: value for name, value in item.items() if value and name in _CONTENT}
    return hashlib.blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=DIGEST_BYTES).digest()
