"""Decides when names of dispatched units move from the tail to a segment, and when they leave.

:mod:`kainite.log.state.recent_units` has the parts, and what a crash leaves of a segment. At least the last
``dedup_window`` names stay, and more for a while: a segment leaves as a whole, and a step is taken before each
snapshot, so that no snapshot holds more than a segment's names.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kainite.log.contract import NAMES_BYTES
from kainite.log.format.entry import NAMES, ControlMeta
from kainite.log.state.digest_set import DIGEST_BYTES
from kainite.log.state.recent_units import RecentUnits

SEGMENT = NAMES_BYTES // DIGEST_BYTES
"""How many names a segment has: they fit one item of the store, and leave within milliseconds of the event loop."""


@dataclass(frozen=True, slots=True)
class NamesMove:
    """The next step in which names move.

    Attributes:
        meta: the meta of the CONTROL entry.
        item: key and bytes of the segment's item, written before the entry; None without a new segment.
    """

    meta: ControlMeta
    item: tuple[str, bytes] | None = None


def deletable(stale: Collection[str], generation: int) -> tuple[str, ...]:
    """Returns the keys of items that no entry names and that may be deleted.

    An item of a higher generation is a later owner's, who fenced us while we read: its entry comes behind our fence, so
    the item looks stale to us alone.

    Args:
        stale: keys of items that no entry names, as far as the log was read.
        generation: the generation of the owner's mount.
    """
    return tuple(key for key in stale if int(key.rpartition("/")[2]) <= generation)


def next_move(recent: RecentUnits, window: int, generation: int) -> NamesMove | None:
    """Returns the next step in which names move; None when none has to move.

    Args:
        recent: the names of dispatched units.
        window: how many names stay at least.
        generation: the generation of the owner's mount: a segment's key is this owner's alone.
    """
    size = min(SEGMENT, max(1, window // 16))
    surplus, forget = len(recent) - window, 0
    for segment in recent.segments:
        if segment.count > surplus:
            break
        surplus -= segment.count
        forget += 1
    if forget == len(recent.segments) and surplus >= size:
        return NamesMove(ControlMeta(NAMES, count=min(surplus, SEGMENT)))
    if recent.tail_length >= size and window > 0:
        key = f"{recent.first:020}/{generation}"
        return NamesMove(ControlMeta(NAMES, count=size, key=key, forget=forget), (key, recent.oldest(size)))
    return NamesMove(ControlMeta(NAMES, forget=forget)) if forget else None
