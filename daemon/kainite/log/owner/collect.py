"""Collects units of work: fragments arrive in any order, complete units are dispatched.

Pure decisions over :class:`~kainite.log.state.folded.FoldedLog`. Each function decides which entries to
append, folds them at once, and returns them; the owner makes them durable in one batch and
acknowledges them afterwards. A crash before the batch is durable loses the whole append, and its records are
delivered again. A crash afterwards leaves the shard's position in the log, by which the records are recognised.

A unit is complete when its end has come and as many deltas as the end announced (*Trans ID In* equals
*Trans ID Out*; docs/architecture.md), whichever shards they came through. The reason why a unit cannot be
applied is a *cause*. A unit with causes is dispatched as failed when its end comes, so that it
has its place in the order, and later units with its signatures are held back.

====================================================  ==========================================
input                                                 effect
====================================================  ==========================================
a delta whose ordinal is there already                dropped: a duplicate
anything for a unit that was dispatched               dropped: a duplicate, and reported
two ends that agree                                   the second is dropped
two ends that disagree                                the unit fails
more deltas than announced                            the unit fails
not all deltas, or no end, within ``timeout``         the unit fails, with what is missing
``dense``: an end without a number                    the unit fails
``dense``: a number that another unit had             the unit fails
``dense``: a number that another unit took while      the unit fails when it is complete, or when
the unit was incomplete                               its time is over
``dense``: numbers that do not come within            one failed unit ``missing:N-M`` stands in for
``timeout`` while others wait for them                them all, and the others go on
====================================================  ==========================================
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import orjson

from kainite.base.logs import event
from kainite.base.position import Position
from kainite.log.format.entry import Entry, EntryKind, FragmentMeta, PositionMeta, UnitMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.units import OpenUnit
from kainite.settings import Isolation, UowOrder, UowSettings
from kainite.uow.delta import Delta, UnitEnd
from kainite.uow.fragment import Fragment

_logger = logging.getLogger(__name__)


def collect(
    state: FoldedLog, rules: UowSettings, shard: str, last: Position, fragments: Sequence[Fragment], now_ms: int
) -> list[Entry]:
    """Decides one append: the fragments of one ``processRecords`` call, and the shard's position."""
    journal = Journal(state, now_ms)
    again = [fragment.uow for fragment in fragments if fragment.uow in state.recent]
    if again:
        event(_logger, logging.WARNING, "units sent again, dropped", units=len(again), first=again[0], shard=shard)
    for fragment in fragments:
        if fragment.uow not in state.recent:
            _collect_fragment(journal, rules, shard, fragment)
    journal.write(EntryKind.POSITION, PositionMeta(shard, last))
    return journal.entries


def expire(state: FoldedLog, rules: UowSettings, now_ms: int) -> list[Entry]:
    """Fails what has waited longer than the limit: open units, and numbers that do not come."""
    journal = Journal(state, now_ms)
    limit = now_ms - int(rules.timeout * 1000)
    waited = f"within {rules.timeout:g} s"
    for unit in [unit for unit in state.open.values() if not unit.complete and unit.opened_ms <= limit]:
        _give_up(journal, rules, unit, _missing(unit, waited))
    if rules.order is UowOrder.DENSE:
        _release_ready(journal, rules)
        _skip_gap(journal, rules, limit, waited)
    else:  # units that waited for their turn while uowOrder was dense; nothing else would release them now
        for _, uow in sorted(journal.state.ready.items()):
            _dispatch(journal, rules, journal.state.open[uow], None)
    return journal.entries


def _give_up(journal: Journal, rules: UowSettings, unit: OpenUnit, cause: str) -> None:
    if rules.order is UowOrder.DENSE and unit.number is not None and _wrong_number(unit, journal.state, rules):
        unit = replace(unit, number=None)  # another unit has the number
    if _may_go(unit, journal.state, rules):
        _dispatch(journal, rules, unit, cause)
    else:
        shard = unit.shards[-1]
        journal.write(
            EntryKind.FRAGMENT, FragmentMeta(unit.uow, shard, 0, (), unit.end_count, unit.number, unit.kind, (cause,))
        )


def _missing(unit: OpenUnit, waited: str) -> str:
    if unit.end_count is None:
        return f"no end came {waited}; {unit.count} deltas did"
    return f"{unit.count} of {unit.end_count} deltas came {waited}"


def _skip_gap(journal: Journal, rules: UowSettings, limit: int, waited: str) -> None:
    state = journal.state
    while state.ready and (first := _next_number(state, rules)) not in state.ready:
        waiting = state.open[state.ready[min(state.ready)]]
        known = min(unit.number for unit in state.open.values() if unit.number is not None)
        if waiting.opened_ms > limit or known <= first:
            return
        # One unit stands for the whole gap: a source that jumps ahead by millions must not cost as many entries.
        last = known - 1
        gap = f"{first}" if first == last else f"{first}-{last}"
        cause = f"no unit number {gap} came {waited}, and unit {waiting.uow} (number {waiting.number}) waits for it"
        journal.write(EntryKind.UNIT, UnitMeta(uow=f"missing:{gap}", count=0, number=last, cause=cause))
        _release_ready(journal, rules)


def _collect_fragment(journal: Journal, rules: UowSettings, shard: str, fragment: Fragment) -> None:
    unit = journal.state.open.get(fragment.uow)
    fresh = _without_duplicates(fragment, unit)
    if not (fresh.deltas or fresh.ends or fresh.rejects):
        return
    merged = _merge(unit, fresh, shard, journal.now_ms)
    _judge(merged, journal.state, rules, fresh.ends)
    if merged.complete and _may_go(merged, journal.state, rules):
        _dispatch(journal, rules, merged, None, fresh)
        _release_ready(journal, rules)
    else:
        _keep(journal, shard, merged, fresh, unit)


def _without_duplicates(fragment: Fragment, unit: OpenUnit | None) -> Fragment:
    seen = set(unit.ordinals) if unit else set()
    fresh: list[Delta] = []
    for delta in fragment.deltas:
        if delta.ordinal is None or delta.ordinal not in seen:
            fresh.append(delta)
        if delta.ordinal is not None:
            seen.add(delta.ordinal)
    return fragment if len(fresh) == len(fragment.deltas) else replace(fragment, deltas=tuple(fresh))


def _merge(unit: OpenUnit | None, fragment: Fragment, shard: str, now_ms: int) -> OpenUnit:
    """Returns the open unit as it would be with the fragment; the state does not change."""
    old = unit or OpenUnit(fragment.uow, now_ms)
    merged = OpenUnit(
        uow=old.uow,
        opened_ms=old.opened_ms,
        fragments=old.fragments,
        shards=old.shards if shard in old.shards else [*old.shards, shard],
        count=old.count + len(fragment.deltas),
        ordinals=old.ordinals | {delta.ordinal for delta in fragment.deltas if delta.ordinal is not None},
        written=old.written | fragment.written,
        read=old.read | fragment.read,
        end_count=old.end_count,
        number=old.number,
        kind=old.kind,
        causes=[*old.causes, *(reject.cause for reject in fragment.rejects)],
        offending=old.offending or next((reject.line for reject in fragment.rejects), None),
    )
    for end in fragment.ends:
        _add_end(merged, end)
    return merged


def _add_end(unit: OpenUnit, end: UnitEnd) -> None:
    if unit.end_count is None:
        unit.end_count, unit.number, unit.kind = end.count, end.number, end.kind
    elif (end.count, end.number, end.kind) != (unit.end_count, unit.number, unit.kind):
        unit.causes.append(
            f"two ends disagree: count {unit.end_count}, number {unit.number}, {unit.kind} "
            f"and count {end.count}, number {end.number}, {end.kind}"
        )


def _judge(unit: OpenUnit, state: FoldedLog, rules: UowSettings, ends: Sequence[UnitEnd]) -> None:
    """Adds the causes for which the unit fails although it is whole."""
    if unit.end_count is not None and unit.count > unit.end_count:
        unit.causes.append(f"{unit.count} deltas came, its end announced {unit.end_count}")
    numbered = bool(ends) or (unit.complete and unit.number is not None)
    if rules.order is UowOrder.DENSE and numbered and (cause := _wrong_number(unit, state, rules)):
        unit.causes.append(cause)
        unit.number = None


def _wrong_number(unit: OpenUnit, state: FoldedLog, rules: UowSettings) -> str | None:
    number = unit.number
    if number is None:
        return "its end has no number, and uowOrder is dense"
    holder = state.recent.holder(number) or state.ready.get(number)
    if holder is not None and holder != unit.uow:
        return f"number {number} is that of unit {holder} too"
    if number < _next_number(state, rules):
        return f"number {number} comes after it was given up or dispatched, or below uowFirstNumber"
    return None


def _next_number(state: FoldedLog, rules: UowSettings) -> int:
    return rules.first_number if state.next_number is None else state.next_number


def _may_go(unit: OpenUnit, state: FoldedLog, rules: UowSettings) -> bool:
    """Returns whether a complete unit is dispatched now; one without a number, or with a past one, need not wait."""
    return rules.order is UowOrder.ARRIVAL or unit.number is None or unit.number <= _next_number(state, rules)


def _release_ready(journal: Journal, rules: UowSettings) -> None:
    state = journal.state
    while (uow := state.ready.get(_next_number(state, rules))) is not None:
        _dispatch(journal, rules, state.open[uow], None)


def _dispatch(
    journal: Journal, rules: UowSettings, unit: OpenUnit, cause: str | None, fragment: Fragment | None = None
) -> None:
    """Writes the UNIT entry; ``fragment`` is the part of the unit that is not in the log yet."""
    causes = [*unit.causes, *([cause] if cause else [])]
    serialize = rules.isolation is Isolation.SERIALIZE
    written, read = (frozenset(unit.written), frozenset(unit.read)) if serialize else (frozenset(), frozenset())
    meta = UnitMeta(
        uow=unit.uow,
        count=unit.count,
        shards=tuple(unit.shards),
        fragments=tuple(unit.fragments),
        number=unit.number,
        kind=unit.kind,
        conflict=journal.state.conflicts.find(written, read),
        cause="; ".join(causes) or None,
        offending=unit.offending,
    )
    if meta.cause:
        event(_logger, logging.ERROR, "unit failed", uow=unit.uow, cause=meta.cause)
    journal.write(EntryKind.UNIT, meta, _data(fragment), written, read)


def _keep(journal: Journal, shard: str, merged: OpenUnit, fragment: Fragment, old: OpenUnit | None) -> None:
    """Writes a FRAGMENT entry: the unit stays open."""
    causes = merged.causes[len(old.causes) if old else 0 :]
    for reject in fragment.rejects:
        event(_logger, logging.ERROR, "delta refused", uow=merged.uow, cause=reject.cause, line=reject.line)
    has_end = bool(fragment.ends)
    meta = FragmentMeta(
        uow=fragment.uow,
        shard=shard,
        count=len(fragment.deltas),
        ordinals=tuple(delta.ordinal for delta in fragment.deltas if delta.ordinal is not None),
        end_count=merged.end_count if has_end else None,
        number=merged.number if has_end else None,
        unit_kind=merged.kind,
        causes=tuple(causes),
        offending=merged.offending if causes else None,
    )
    journal.write(EntryKind.FRAGMENT, meta, _data(fragment), fragment.written, fragment.read)


def _data(fragment: Fragment | None) -> bytes:
    if fragment is None or not fragment.deltas:
        return b""
    return orjson.dumps([delta.to_json() for delta in fragment.deltas])
