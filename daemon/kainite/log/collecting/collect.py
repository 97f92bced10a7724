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
a delta whose identity the unit has already           dropped: a duplicate (:mod:`kainite.uow.identity`); if the unit
                                                      stays incomplete, its cause counts its duplicates
a fragment of a unit that was dispatched              dropped: a duplicate, and reported; but see below
the same, with a delta, an end or a line that the     a failed unit ``NAME+late``, while the owner remembers
unit did not have                                     what the unit had (:mod:`kainite.log.collecting.later_parts`)
a unit whose name is not known any more, but whose    dropped with ``dense``. With ``arrival`` no source promised to
number is (:mod:`kainite.log.state.recent_units`)     use a number once, so the unit fails: a retry applies it
two ends that agree                                   the second end is dropped
two ends that disagree                                the unit fails
more deltas than announced                            the unit fails
more deltas or signatures than the log takes of one   the unit fails (:mod:`kainite.log.collecting.too_large`)
unit
a delta that does not fit the target's catalogue      the unit fails when it is whole; its deltas are kept, and a
                                                      retry judges them anew
overdue: not all deltas, or no end                    the unit fails, with what is missing
``dense``: an end without a number                    the unit fails
``dense``: a number that another unit had             the unit fails
``dense``: a number that another unit took while      the unit fails when it is complete, or when
the unit was incomplete                               it is overdue
``dense``: a number that was given up                 the unit fails, with its deltas; a retry applies it
``dense``: numbers that do not come while a unit      one failed unit ``missing:N-M`` stands in for
that waits for them is overdue                        them all, and the others go on
``dense``: the same, and the numbers are very many    the unit that waits for them fails, without its number
``dense``: a name that such a unit might have         the unit fails, as ``reserved:NAME``
====================================================  ==========================================

:mod:`kainite.log.collecting.waiting` decides which units are overdue: time counts only while all shards are read near
their tips.

A unit that failed before it was whole goes on collecting. Its late parts are appended behind its UNIT entry: the unit
keeps its place in the order, and from then on also holds back units that touch the rows of the late deltas. When the
unit is whole, its cause says so, and a retry applies it, if its only fault is that parts came late. Units behind it
that touch rows of the late deltas alone may have been applied before; a person decides whether that matters
(docs/operations.md, *A failed unit*). A unit that fails with parts missing has all its deltas in FRAGMENT entries,
never in its UNIT entry, so the identities of all of them are known when copies come late.

A late end that brings a number whose turn has not passed frees that number: an empty unit ``number:N`` takes its turn.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from kainite.base.logs import event
from kainite.base.position import Position
from kainite.log.collecting.later_parts import later_part
from kainite.log.collecting.standing import COPY, News, Standing, judge, may_go, news_of, stand, wrong_number
from kainite.log.collecting.too_large import within_bounds
from kainite.log.collecting.unit_entries import (
    dispatch,
    keep,
    note_scheme,
    offending_of,
    release_ready,
    remember,
)
from kainite.log.collecting.watermark import Ended, Straggler, reserved, straggler
from kainite.log.collecting.whole_units import taken_whole
from kainite.log.format.entry import (
    LEASED,
    MISSING,
    STARTED,
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    Outcome,
    PositionMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.unit_fields import UnitCommand, unit_fields
from kainite.log.state.unit_state import UnitState
from kainite.settings import Isolation, UowEnd, UowOrder, UowSettings
from kainite.uow.delta import UnitEnd
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.identity import Identity
from kainite.uow.touches import NOTHING

_logger = logging.getLogger(__name__)

# Looking a member up in its enum takes Python 3.11 0.1 µs.
_WATERMARK, _DENSE = UowEnd.WATERMARK, UowOrder.DENSE

NUMBER: Final = "number:"
"""The prefix in the names of empty units that take the turn of a number that came with a late end."""

_STAND_IN: Final = re.compile(r"(missing|number):[0-9]", re.ASCII)


def collect(
    state: FoldedLog,
    rules: UowSettings,
    shard: str,
    last: Position,
    fragments: Sequence[Fragment],
    now_ms: int,
) -> list[Entry]:
    """Decides one append: the fragments of one ``processRecords`` call, and the shard's position.

    Args:
        state: the folded log, which the entries change.
        rules: the settings by which units are collected.
        shard: the shard that the records came through.
        last: the position of the last record.
        fragments: the fragments that the child emitted.
        now_ms: the time of the entries, in milliseconds since the epoch.
    """
    journal = Journal(state, now_ms)
    again: list[str] = []
    for fragment in map(partial(_reserved, rules), fragments):
        if fragment.uow in state.open:  # no name is both open and that of a dispatched unit
            if _collect_fragment(journal, rules, shard, fragment):
                again.append(fragment.uow)
            continue
        failed = state.failed(fragment.uow)
        if failed is not None and failed.collecting:
            _collect_late(journal, rules, shard, failed, fragment)
        elif failed is not None or fragment.uow in state.recent:  # its name may have left before it
            late = (straggler if rules.end is UowEnd.WATERMARK else later_part)(state, fragment)
            if late is None:
                again.append(fragment.uow)
            else:
                _collect_straggler(journal, rules, shard, late)
                state.handed_out.add_late(fragment.uow, fragment)
        elif _collect_fragment(journal, rules, shard, fragment):
            again.append(fragment.uow)
    if again:
        event(_logger, logging.WARNING, "units sent again, dropped", units=len(again), first=again[0], shard=shard)
    journal.write(EntryKind.POSITION, PositionMeta.of(shard, last))
    return journal.entries


def _reserved(rules: UowSettings, fragment: Fragment) -> Fragment:
    """Returns a fragment of which the unit's name is none that the log gives; where it was one, the unit fails."""
    if rules.end is _WATERMARK:
        return reserved(fragment)
    if rules.order is _DENSE and fragment.uow.startswith((MISSING, NUMBER)) and _STAND_IN.match(fragment.uow):
        reject = Reject(f"unit {fragment.uow} has a name that the log gives units in place of missing ones", "")
        return replace(fragment, uow=f"reserved:{fragment.uow}", rejects=(*fragment.rejects, reject))
    return fragment


def begin(state: FoldedLog, at_ms: int, now_ms: int, stream: str = "") -> list[Entry]:
    """Decides the entry that notes the log's beginning, and of several streams that one is awaited; none if it is so.

    Args:
        state, now_ms: as in :func:`collect`.
        at_ms, stream: as in :meth:`~kainite.log.client.LogClient.begin`.
    """
    journal = Journal(state, now_ms)
    begins = at_ms > 0 and stream not in state.started
    if begins or (stream and stream not in state.awaited):
        since = state.started.get(stream, at_ms)
        journal.write(EntryKind.CONTROL, ControlMeta(STARTED, since=since, key=stream or None))
    return journal.entries


def leased(state: FoldedLog, streams: Iterable[str], now_ms: int) -> list[Entry]:
    """Decides the entries by which streams are awaited no more."""
    journal = Journal(state, now_ms)
    for stream in sorted(state.awaited.intersection(streams)):
        journal.write(EntryKind.CONTROL, ControlMeta(LEASED, key=stream))
    return journal.entries


def _collect_fragment(journal: Journal, rules: UowSettings, shard: str, fragment: Fragment) -> bool:
    """Collects a fragment of an open or unknown unit; returns whether the fragment was dropped as a duplicate."""
    state = journal.state
    unit = state.open.get(fragment.uow)
    if unit is None and taken_whole(journal, rules, shard, fragment):
        if state.ready:
            release_ready(journal, rules)
        return False
    unit = unit or OpenUnit(fragment.uow, journal.now_ms)  # the fold opens the unit in the log; this is a stand-in
    news = within_bounds(unit, news_of(unit, fragment))
    if news.dropped:
        event(_logger, logging.WARNING, "deltas sent again, dropped", deltas=news.dropped, uow=unit.uow, shard=shard)
    if news.nothing:
        return False
    standing = judge(unit, news, state, rules)
    if standing.copy:
        _drop_copy(journal, unit, standing)
        return True
    note_scheme(journal, news.fragment.scheme)
    going = standing.complete and may_go(standing.number, state, rules)
    if going and standing.whole and rules.end is UowEnd.MARKER and not news.beyond:
        _dispatch_with(journal, rules, shard, unit, news, standing)
    else:
        keep(journal, rules, shard, news, standing)
        # Either the unit fails with parts missing, and goes on collecting; or duplicates of it will be recognised by
        # its deltas, which the log remembers from FRAGMENT entries alone (kainite.log.state.ended_units).
        if going:
            dispatch(journal, rules, state.open[fragment.uow], late=standing.late_number)
    if going and state.ready:
        release_ready(journal, rules)
    return False


def _dispatch_with(
    journal: Journal, rules: UowSettings, shard: str, unit: OpenUnit, news: News, standing: Standing
) -> None:
    """Dispatches the open unit together with the fragment, which is the unit's part that is not in the log yet."""
    fragment = news.fragment
    whole = msgspec.structs.replace(
        unit,
        shards=unit.shards if shard in unit.shards else [*unit.shards, shard],
        count=standing.count,
        end=standing.end,
        causes=[*unit.causes, *standing.causes],
        offending=unit.offending or offending_of(fragment),
        misfits=[*unit.misfits, *[misfit.cause for misfit in fragment.misfits]],
    )
    touched = unit.touched.with_(fragment.touched, fragment.count, unit.count) if unit.fragments else fragment.touched
    dispatch(journal, rules, whole, touched, fragment, late=standing.late_number)


def _drop_copy(journal: Journal, unit: OpenUnit, standing: Standing) -> None:
    """Drops a unit whose number shows that it is a copy; later fragments under its name count as duplicates then."""
    if standing.whole and unit.uow not in journal.state.open:
        return
    cause = "sent again: its number was dispatched before"
    tid = journal.state.next_id
    meta = UnitMeta(unit.uow, unit.count, tuple(unit.shards), tuple(unit.fragments), cause=cause, fault=Fault.MALFORMED)
    journal.write(EntryKind.UNIT, meta)
    journal.write(EntryKind.STATUS, StatusMeta((Outcome(tid, UnitStatus.DISCARDED, cause=cause),)))


def _collect_late(
    journal: Journal,
    rules: UowSettings,
    shard: str,
    unit: UnitState,
    fragment: Fragment,
    copies: Collection[Identity] = (),
) -> None:
    """Adds a late fragment to a failed unit, and notes in the unit's cause when all parts have come.

    Args:
        journal: gets the entries.
        rules: the settings by which units are collected.
        shard: the shard that the fragment came through.
        unit: the failed unit.
        fragment: the late fragment.
        copies: the identities of deltas in the fragment that another unit has.
    """
    assert unit.late is not None
    news = within_bounds(unit.late, news_of(unit.late, fragment, copies))
    if news.nothing:
        return
    numbered = unit.late.end is not None
    if rules.isolation is Isolation.SERIALIZE:
        note_scheme(journal, news.fragment.scheme)
    else:
        news = replace(news, fragment=replace(news.fragment, touched=NOTHING, scheme=None))
    standing = stand(unit.late, news)
    if news.fragment.ends and not numbered and journal.state.recent.may_have_had(standing.number):
        standing.causes.append(COPY.format(standing.number))
    keep(journal, rules, shard, news, standing)
    unit = journal.state.units[unit.tid]
    if not numbered and rules.order is UowOrder.DENSE:
        _pass_number(journal, rules, shard, unit)
    assert unit.late is not None
    if unit.late.whole:
        told = unit.late.lacks or f"all {unit.count} deltas have come since"
        retry = "" if unit.obstacle else "; kainite uow retry applies the unit in its place"
        if not unit.obstacle:
            remember(journal.state, unit.late)
        helps = UnitCommand.SHOW if unit.obstacle else UnitCommand.RETRY
        event(_logger, logging.WARNING, "failed unit is whole now",
              **unit_fields(unit.uow, unit.tid, unit.tables, helps), lacks=unit.late.lacks)  # fmt: skip
        cause = f"{unit.cause}; {told}{retry}"
        journal.write(EntryKind.STATUS, StatusMeta((Outcome(unit.tid, UnitStatus.FAILED, cause=cause),)))


def _collect_straggler(journal: Journal, rules: UowSettings, shard: str, late: Straggler) -> None:
    """Adds a fragment of a dispatched unit to the late unit, or dispatches a new late unit as failed."""
    name = late.fragment.uow
    if (unit := journal.state.collecting(name)) is not None:
        _collect_late(journal, rules, shard, unit, late.fragment, late.copies)
        return
    begun = OpenUnit(name, journal.now_ms)
    news = within_bounds(begun, news_of(begun, late.fragment, late.copies))
    note_scheme(journal, news.fragment.scheme)
    keep(journal, rules, shard, news, stand(begun, news))
    dispatch(journal, rules, journal.state.open[name], ended=Ended(late=late.cause))


def _pass_number(journal: Journal, rules: UowSettings, shard: str, unit: UnitState) -> None:
    """Lets an empty unit take the turn of a number that came only with a late end."""
    if unit.number is not None and wrong_number(unit.uow, unit.number, journal.state, rules) is None:
        stand_in = Fragment(f"{NUMBER}{unit.number}", ends=(UnitEnd(0, unit.number),))
        _collect_fragment(journal, rules, shard, stand_in)
