"""Ends units of which no further part came: units that have waited too long, and units that the watermark completes.

:mod:`kainite.log.collecting.waiting` decides which units are overdue, :mod:`kainite.log.collecting.watermark` how far
all shards have been read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from kainite.log.collecting.standing import may_go, next_number, without_number, wrong_number
from kainite.log.collecting.unit_entries import dispatch, release_ready
from kainite.log.collecting.watermark import Ended, ended, ripe
from kainite.log.format.entry import MISSING, Entry, EntryKind, Fault, FragmentMeta, UnitMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.open_unit import OpenUnit
from kainite.settings import UowEnd, UowOrder, UowSettings

RELEASED: Final = 500
"""The most units that one decision releases; so many take some milliseconds."""


def expire(state: FoldedLog, rules: UowSettings, now_ms: int, overdue: Collection[str]) -> list[Entry]:
    """Fails open units that have waited too long, and units that stand for numbers that did not come.

    Args:
        state: the folded log, which the entries change.
        rules: the settings by which units are collected.
        now_ms: the time of the entries, in milliseconds since the epoch.
        overdue: the open units that have waited too long.
    """
    journal = Journal(state, now_ms)
    waited = f"within {rules.timeout:g} s"
    for unit in [unit for unit in state.open.values() if unit.uow in overdue and not unit.complete]:
        if rules.end is UowEnd.WATERMARK and unit.arrived_ms is not None and unit.end is None:
            cause = f"the stream's clock did not pass its commit time, {unit.time} ns, by uowGraceMillis {waited}"
            dispatch(journal, rules, unit, ended=Ended(late=cause))
        else:
            _give_up(journal, rules, unit, _missing(unit, waited))
    if rules.order is UowOrder.DENSE:
        release_ready(journal, rules)
        _skip_gap(journal, rules, overdue, waited)
    else:  # units that waited for their turn while uowOrder was dense: only this releases them now
        for _, uow in sorted(journal.state.ready.items()):
            dispatch(journal, rules, journal.state.open[uow])
    return journal.entries


def release(state: FoldedLog, rules: UowSettings, now_ms: int, until_ms: float) -> list[Entry]:
    """Dispatches units that the watermark has made complete, at most :data:`RELEASED` of them.

    Args:
        state: the folded log, which the entries change.
        rules: the settings by which units are collected.
        now_ms: the time of the entries, in milliseconds since the epoch.
        until_ms: the watermark (:mod:`kainite.log.collecting.watermark`).
    """
    journal = Journal(state, now_ms)
    for unit in ripe(state.open.values(), rules, until_ms)[:RELEASED]:
        complete, how = ended(unit, state, rules)
        dispatch(journal, rules, complete, ended=how)
    return journal.entries


def _give_up(journal: Journal, rules: UowSettings, unit: OpenUnit, cause: str) -> None:
    number = unit.number
    if rules.order is UowOrder.DENSE and number is not None and wrong_number(unit.uow, number, journal.state, rules):
        unit = msgspec.structs.replace(unit, end=without_number(unit.end))  # another unit has the number
    if may_go(unit.number, journal.state, rules):
        dispatch(journal, rules, msgspec.structs.replace(unit, given_up=cause))
    else:
        meta = FragmentMeta(unit.uow, unit.shards[-1], 0, end=unit.end, causes=(cause,), fault=Fault.INCOMPLETE)
        journal.write(EntryKind.FRAGMENT, meta)


def _missing(unit: OpenUnit, waited: str) -> str:
    if unit.end is None:
        missing = f"no end came {waited}; {unit.count} deltas did"
    else:
        missing = f"{unit.count} of {unit.end.count} deltas came {waited}"
    if not unit.repeated:
        return missing
    return (
        f"{missing}; {unit.repeated} more without an ordinal came that equals one of them, and counts as sent again: "
        "equal deltas of one unit need ordinals"
    )


def _skip_gap(journal: Journal, rules: UowSettings, overdue: Collection[str], waited: str) -> None:
    state = journal.state
    numbered = [(unit.number, unit.uow) for unit in state.open.values() if unit.number is not None]
    numbered.sort(reverse=True)
    while state.ready and (first := next_number(state, rules)) not in state.ready:
        while numbered[-1][1] not in state.open:
            numbered.pop()  # it was released behind a gap
        waiting = state.open[state.ready[min(state.ready)]]
        known = numbered[-1][0]
        if waiting.uow not in overdue or known <= first:
            return
        # One unit stands for the whole gap: a source that jumps ahead by millions must not cost as many entries.
        last = known - 1
        gap = f"{first}" if first == last else f"{first}-{last}"
        cause = f"no unit number {gap} came {waited}, and unit {waiting.uow} (number {waiting.number}) waits for it"
        meta = UnitMeta(uow=f"{MISSING}{gap}", count=0, number=last, cause=cause, fault=Fault.MISSING_NUMBER)
        journal.write(EntryKind.UNIT, meta)
        release_ready(journal, rules)
