"""Ends units of which no further part came: units that have waited too long, and units that the watermark completes.

:mod:`kainite.log.collecting.waiting` decides which units are overdue, :mod:`kainite.log.collecting.watermark` how far
all shards have been read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from kainite.base.words import counted
from kainite.log.collecting.standing import may_go, next_number, without_number, wrong_number
from kainite.log.collecting.unit_entries import RELEASED, dispatch, release_ready
from kainite.log.collecting.watermark import Ended, ended, ripe
from kainite.log.format.entry import MISSING, Entry, EntryKind, Fault, FragmentMeta, UnitMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.open_unit import OpenUnit
from kainite.settings import UowEnd, UowOrder, UowSettings

SKIPPED_FOR_ONE: Final = 1_000
"""The most numbers that are given up for each complete unit that waits behind them.

A number that a source made up, or that was read wrongly, is anywhere; if the order followed it, every later unit would
come too late. A source that really goes on further on brings one unit after another. Until they are so many, a unit
with such a number fails alone, and a person may let the order go on there (``kainite log skip``).
"""


def expire(state: FoldedLog, rules: UowSettings, now_ms: int, overdue: Collection[str]) -> list[Entry]:
    """Fails open units that have waited too long, and units that stand for numbers that did not come.

    Also releases units whose turn has come. One decision that has :data:`~kainite.log.collecting.unit_entries.RELEASED`
    entries, or more, may have left some to the next one.

    Args:
        state: the folded log, which the entries change.
        rules: the settings by which units are collected.
        now_ms: the time of the entries, in milliseconds since the epoch.
        overdue: the names of units that have waited too long; those in front go first.
    """
    journal = Journal(state, now_ms)
    waited = f"within {rules.timeout:g} s"
    late = [state.open[uow] for uow in overdue if uow in state.open and not state.open[uow].complete]
    for unit in late[:RELEASED]:
        if rules.end is UowEnd.WATERMARK and unit.arrived_ms is not None and unit.end is None:
            cause = f"the stream's clock did not pass its commit time, {unit.time} ns, by uowGraceMillis {waited}"
            dispatch(journal, rules, unit, ended=Ended(late=cause))
        else:
            _give_up(journal, rules, unit, _missing(unit, waited))
    if rules.order is UowOrder.DENSE:
        release_ready(journal, rules)
        _skip_gaps(journal, rules, overdue, waited)
    else:  # units that waited for their turn while uowOrder was dense: only this releases them now
        for _, uow in sorted(journal.state.ready.items())[:RELEASED]:
            dispatch(journal, rules, journal.state.open[uow])
    return journal.entries


def release_turn(state: FoldedLog, rules: UowSettings, now_ms: int) -> list[Entry]:
    """Dispatches complete units whose turn has come, at most RELEASED of them, without a look at the other units."""
    journal = Journal(state, now_ms)
    if rules.order is UowOrder.DENSE:
        release_ready(journal, rules)
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
        missing = f"no end came {waited}; {counted(unit.count, 'delta')} did"
    else:
        missing = f"{unit.count} of {counted(unit.end.count, 'delta')} came {waited}"
    if not unit.repeated:
        return missing
    return (
        f"{missing}; {unit.repeated} more without an ordinal came that equals one of them, and counts as sent again: "
        "equal deltas of one unit need ordinals"
    )


def _skip_gaps(journal: Journal, rules: UowSettings, overdue: Collection[str], waited: str) -> None:
    """Gives up numbers that did not come, and the numbers of units that are too far behind them."""
    state = journal.state
    if not state.ready or next_number(state, rules) in state.ready or state.ready[min(state.ready)] not in overdue:
        return
    waiting = sorted(state.ready, reverse=True)
    numbered = [(unit.number, unit.uow) for unit in state.open.values() if unit.number is not None]
    numbered.sort(reverse=True)
    while state.ready and len(journal.entries) < RELEASED:
        while waiting[-1] not in state.ready:
            waiting.pop()  # it was released behind a gap
        while numbered[-1][1] not in state.open:
            numbered.pop()
        first, known, uow = next_number(state, rules), numbered[-1][0], state.ready[waiting[-1]]
        if uow not in overdue or known <= first:
            return
        if known - first <= SKIPPED_FOR_ONE * len(state.ready):
            give_up_numbers(
                journal, first, known - 1, f"came {waited}, and unit {uow} (number {waiting[-1]}) waits for it"
            )
            release_ready(journal, rules)
        elif known == waiting[-1]:
            _fail_far(journal, rules, state.open[uow], first, waited)
        else:
            return  # the unit with the lowest number will be complete, or be given up


def give_up_numbers(journal: Journal, first: int, last: int, cause: str) -> None:
    """Writes one unit that stands for all numbers from ``first`` to ``last``.

    A source that jumps ahead must not cost as many entries.
    """
    gap = f"{first}" if first == last else f"{first}-{last}"
    cause = f"no unit number {gap} {cause}"
    meta = UnitMeta(uow=f"{MISSING}{gap}", count=0, number=last, cause=cause, fault=Fault.MISSING_NUMBER)
    journal.write(EntryKind.UNIT, meta)


def _fail_far(journal: Journal, rules: UowSettings, unit: OpenUnit, first: int, waited: str) -> None:
    cause = (
        f"its number {unit.number} is too far ahead: number {first} is next, and did not come {waited}; if the source "
        f"goes on there, kainite log skip {unit.number} lets the order go on there too; then, or if only this number "
        "is wrong, kainite uow retry applies the unit, without its number"
    )
    dispatch(journal, rules, msgspec.structs.replace(unit, end=without_number(unit.end)), far=cause)
