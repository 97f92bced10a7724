"""Takes units that come whole and sound in one fragment: most units. Pure.

What :mod:`kainite.log.collecting.collect` finds out in general (what is new of the fragment, what is wrong with the
unit, whether its turn has come) is plain for such a unit, and the general way takes up to three times as long. A unit
whose turn it is, is dispatched: all units of a source that fits into one shard. With ``uowOrder=dense`` a unit with a
later number is kept until its turn comes: most units of a source with several shards. A fragment of which one condition
does not plainly hold goes the general way, which writes the same entry for one of which all do.
"""

from __future__ import annotations

from collections.abc import Iterable

from kainite.log.collecting.standing import next_number
from kainite.log.collecting.too_large import fits_alone
from kainite.log.collecting.unit_entries import note_scheme
from kainite.log.format.entry import EntryKind, FragmentMeta, UnitMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.settings import Isolation, UowEnd, UowOrder, UowSettings
from kainite.uow.delta import UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.identity import Identity
from kainite.uow.touches import NOTHING

# Looking a member up in its enum takes Python 3.11 0.1 µs.
_MARKER, _DENSE, _TIME = UowEnd.MARKER, UowOrder.DENSE, UowOrder.TIME
_SERIALIZE, _UNIT = Isolation.SERIALIZE, EntryKind.UNIT


def taken_whole(journal: Journal, rules: UowSettings, shard: str, fragment: Fragment) -> bool:
    """Dispatches a plain unit, or keeps it for its turn; returns False, and writes nothing, where it is not plain.

    Args:
        journal: gets the entry.
        rules: the settings by which units are collected.
        shard: the shard that the fragment came through.
        fragment: the whole unit, of a name that is neither open nor known.
    """
    if rules.end is not _MARKER or not _is_whole(fragment):
        return False
    [end] = fragment.ends
    if _has_its_turn(end.number, journal.state, rules):
        _dispatch(journal, rules, shard, fragment, end)
        return True
    if _waits_for_its_turn(end.number, journal.state, rules) and _is_numbered(fragment.identities):
        _keep(journal, shard, fragment, end)
        return True
    return False


def _dispatch(journal: Journal, rules: UowSettings, shard: str, fragment: Fragment, end: UnitEnd) -> None:
    note_scheme(journal, fragment.scheme)
    meta = UnitMeta(
        fragment.uow,
        end.count,
        (shard,),
        number=end.number,
        kind=end.kind,
        without=fragment.without,
        time=fragment.time,
        arrived_ms=fragment.arrived_ms,
    )
    if rules.isolation is _SERIALIZE:
        journal.write(_UNIT, meta, fragment.touched, fragment.piece, fragment.signed)
    else:
        journal.write(_UNIT, meta, NOTHING, fragment.piece)
    journal.state.handed_out.add(fragment.uow, end, fragment.identities)


def _keep(journal: Journal, shard: str, fragment: Fragment, end: UnitEnd) -> None:
    note_scheme(journal, fragment.scheme)
    meta = FragmentMeta(
        fragment.uow,
        shard,
        end.count,
        fragment.identities,  # type: ignore[arg-type]  # each is an ordinal
        end,
        without=fragment.without,
        time=fragment.time,
        arrived_ms=fragment.arrived_ms,
    )
    journal.write(EntryKind.FRAGMENT, meta, fragment.touched, fragment.piece, fragment.signed)


def _is_whole(fragment: Fragment) -> bool:
    """Returns whether a fragment has one end and as many deltas as it announces, and nothing is wrong with it."""
    if len(fragment.ends) != 1 or fragment.rejects or fragment.misfits:
        return False
    count = len(fragment.identities)
    if count != fragment.ends[0].count or len(set(fragment.identities)) != count:
        return False
    return fits_alone(fragment)


def _has_its_turn(number: int | None, state: FoldedLog, rules: UowSettings) -> bool:
    """Returns whether a unit with this number plainly goes now: no other unit had, has or may have had the number."""
    recent = state.recent
    if rules.order is _TIME or recent.may_have_had(number):
        return False
    if rules.order is not _DENSE:
        return True
    return number is not None and number == next_number(state, rules) and _is_free(number, state)


def _waits_for_its_turn(number: int | None, state: FoldedLog, rules: UowSettings) -> bool:
    """Returns whether units with lower numbers plainly go before a unit with this number."""
    if number is None or rules.order is not _DENSE or state.recent.may_have_had(number):
        return False
    return number > next_number(state, rules) and _is_free(number, state)


def _is_free(number: int, state: FoldedLog) -> bool:
    """Returns whether no unit that is known has the number."""
    recent = state.recent
    return number not in state.ready and recent.holder(number) is None and number not in recent.numbers


def _is_numbered(identities: Iterable[Identity]) -> bool:
    """Returns whether each delta has an ordinal."""
    return {*map(type, identities)} <= {int}
