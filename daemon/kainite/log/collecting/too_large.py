"""Bounds what one unit of work takes of the owner's memory and of one batch of the log. Pure.

A unit that is being collected holds the identity and the signatures of each of its deltas, and its UNIT entry has all
its signatures. Nothing else bounds them: a source may never end a unit, or send one that no owner can hold. So a unit
with more than :data:`MOST_DELTAS` deltas or :data:`MOST_SIGNATURES` signatures is *too large*: it fails for good.

===================================  ==================================================================================
a fragment                           effect
===================================  ==================================================================================
goes beyond a bound                  a FRAGMENT entry with the fault TOO_LARGE and the cause, with the fragment's
                                     tables alone. The unit lets go of all identities and signatures; every table that
                                     it touches counts as one with a row that is not known (*unsigned*)
of a unit that is too large          the same entry without the cause: each table that the fragment touches is noted,
                                     and when it came. Copies are not recognised; nobody needs the unit's deltas
the unit's end                       the unit is dispatched as failed (malformed), in its place; no retry applies it
no end                               the unit fails when it is overdue, or when the watermark ends it, likewise
===================================  ==================================================================================

Invariants:

* a unit within the bounds is judged as if there were none;
* a unit that is too large is never applied: it has a cause from its first entry with the fault on;
* until a person discards it, it holds back whatever touches its tables, or tables that foreign keys connect with them:
  less would let a unit pass that touches its rows. No correction replaces it, since no row of it is known for certain;
* what the owner holds of it no longer grows with its deltas.

A crash before the entry is durable loses the append, whose records come again: the unit is too large again. After it
the entry says all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from kainite.log.collecting.standing import News
from kainite.log.state.open_unit import OpenUnit
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.touches import NOTHING

MOST_DELTAS: Final = 10_000_000
"""The most deltas of one unit.

A delta with an ordinal and one signature takes about 80 bytes of the owner while its unit is being collected, and 190
when the unit is dispatched, since its signatures are copied then: a unit of the most deltas takes 0.8 GB, and 1.9 GB
for a moment. Without an ordinal a delta takes about 100 bytes more, and each further signature as much as the first.
"""

MOST_SIGNATURES: Final = 20_000_000
"""The most signatures of one unit: its UNIT entry has them all, 8 bytes each.

160 MB in a batch of at most 256 MiB (:data:`kainite.store.batch_items.MAX_BATCH_BYTES`). A larger batch can never be
written, and would end each owner that tries.
"""


def within_bounds(unit: OpenUnit, news: News) -> News:
    """Returns the news as it is; of a unit that is too large with it, only what the log still needs of it."""
    fragment = news.fragment
    if not fragment.count:
        return news
    if unit.too_large:
        return _beyond(news, fragment.rejects)
    if unit.count + fragment.count > MOST_DELTAS:
        return _beyond(news, (*fragment.rejects, _reject(f"{MOST_DELTAS} deltas")))
    if unit.touched.size + fragment.touched.size > MOST_SIGNATURES:
        return _beyond(news, (*fragment.rejects, _reject(f"{MOST_SIGNATURES} signatures")))
    return news


def fits_alone(fragment: Fragment) -> bool:
    """Returns whether a unit that is this fragment alone is within the bounds."""
    return len(fragment.identities) <= MOST_DELTAS and fragment.touched.size <= MOST_SIGNATURES


def _beyond(news: News, rejects: tuple[Reject, ...]) -> News:
    touched = msgspec.structs.replace(
        NOTHING, tables=news.fragment.touched.tables, unsigned=news.fragment.touched.tables
    )
    kept = Fragment(
        news.fragment.uow,
        touched=touched,
        ends=news.fragment.ends,
        rejects=rejects,
        time=news.fragment.time,
        arrived_ms=news.fragment.arrived_ms,
    )
    return replace(news, fragment=kept, beyond=True)


def _reject(bound: str) -> Reject:
    cause = (
        f"the unit has more than {bound}, which is the most that the log takes of one unit: discard it, bring its "
        "tables in line with the source, and let the source send smaller units"
    )
    return Reject(cause, "")
