"""Collects units of work: fragments arrive in any order, complete units are dispatched.

Pure decisions over :class:`~kainite.log.state.folded.FoldedLog`. Each function decides which entries to
append, folds them at once, and returns them; the owner makes them durable in one batch and
acknowledges them afterwards. A crash before the batch is durable loses the whole append, and its records are
delivered again. A crash afterwards leaves the shard's position in the log, by which the records are recognised.

A unit is complete when its end has come and as many deltas as the end announced (*Trans ID In* equals
*Trans ID Out*; docs/glossary.md), whichever shards they came through. The reason why a unit cannot be
applied is a *cause*. A unit with causes is dispatched as failed when its end comes, so that it
has its place in the order, and later units with its signatures are held back.

====================================================  ==========================================
input                                                 effect
====================================================  ==========================================
a delta whose identity is there already               dropped: a duplicate (:mod:`kainite.uow.identity`); a unit
                                                      that then stays incomplete has them in its cause
anything for a unit that was dispatched               dropped: a duplicate, and reported; but see below
a unit whose name is not known any more, but whose    dropped with ``dense``; it fails with ``arrival``, where nobody
number is (:mod:`kainite.log.state.recent_units`)     promised that a number is used once: a retry applies it
two ends that agree                                   the second is dropped
two ends that disagree                                the unit fails
more deltas than announced                            the unit fails
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
====================================================  ==========================================

:mod:`kainite.log.collecting.waiting` decides which units are overdue: time counts only while all shards are read near
their tips.

A unit that failed before it was whole goes on collecting. What comes late is appended behind its UNIT entry, and
belongs to it: the unit keeps its place in the order, and from then on also holds back what the late deltas touch. When
it is whole, its cause says so, and a retry applies it, if its fault is only that parts came late. Units behind it that
touch what only the late deltas touch may have been applied before; whether that matters, a person decides
(docs/operations.md, *A failed unit*). A unit that fails with parts missing has all its deltas in FRAGMENT entries,
never in its UNIT entry, so the identities of all of them are known when copies come late.

A late end that brings a number whose turn has not passed frees that number: an empty unit ``number:N`` takes its turn.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from kainite.base.logs import event
from kainite.base.position import Position
from kainite.log.collecting.watermark import Ended, Straggler, ended, reserved, ripe, straggler
from kainite.log.format.entry import (
    MISSING,
    STARTED,
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    Outcome,
    PositionMeta,
    SchemeMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.units import OpenUnit, UnitState, latest
from kainite.settings import Isolation, UowEnd, UowOrder, UowSettings
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.fragment import Fragment
from kainite.uow.identity import Identity, join_digests
from kainite.uow.scheme import Scheme, merged

_logger = logging.getLogger(__name__)

RELEASED: Final = 500
"""Units that one decision releases: as many as take some milliseconds."""

_NONE: Final = frozenset[int]()

_COPY: Final = (
    "number {} is that of a unit whose name is not remembered any more: discard this unit if it is that one, sent again"
)


def collect(
    state: FoldedLog,
    rules: UowSettings,
    shard: str,
    last: Position,
    fragments: Sequence[Fragment],
    now_ms: int,
    started_ms: int | None = None,
) -> list[Entry]:
    """Decides one append: the fragments of one ``processRecords`` call, and the shard's position.

    Args:
        state: changed by the entries.
        rules: how units are collected.
        shard: that the records came through.
        last: the position of the last one.
        fragments: what was emitted.
        now_ms: for the entries, milliseconds since the epoch.
        started_ms: as in :meth:`~kainite.log.client.LogClient.append`.
    """
    journal = Journal(state, now_ms)
    _note_start(journal, rules, shard, started_ms)
    again: list[str] = []
    for fragment in fragments if rules.end is UowEnd.MARKER else map(reserved, fragments):
        failed = state.failed(fragment.uow)
        if failed is not None and failed.collecting:
            _collect_late(journal, rules, shard, failed, fragment)
        elif failed is not None or fragment.uow in state.recent:  # its name may have left before it
            late = straggler(state, fragment) if rules.end is UowEnd.WATERMARK else None
            if late is None:
                again.append(fragment.uow)
            else:
                _collect_straggler(journal, rules, shard, late)
        elif _collect_fragment(journal, rules, shard, fragment):
            again.append(fragment.uow)
    if again:
        event(_logger, logging.WARNING, "units sent again, dropped", units=len(again), first=again[0], shard=shard)
    journal.write(EntryKind.POSITION, PositionMeta(shard, last))
    return journal.entries


def begin(state: FoldedLog, rules: UowSettings, shard: str, now_ms: int, started_ms: int | None) -> list[Entry]:
    """Decides an append that has no records, and tells since when a shard is read."""
    journal = Journal(state, now_ms)
    _note_start(journal, rules, shard, started_ms)
    return journal.entries


def _note_start(journal: Journal, rules: UowSettings, shard: str, started_ms: int | None) -> None:
    if rules.end is UowEnd.WATERMARK and started_ms is not None and started_ms > (journal.state.started_ms or 0):
        journal.write(EntryKind.CONTROL, ControlMeta(STARTED, since=started_ms, key=shard))


def expire(state: FoldedLog, rules: UowSettings, now_ms: int, overdue: Collection[str]) -> list[Entry]:
    """Fails what has waited too long: open units, and numbers that do not come.

    Args:
        state: changed by the entries.
        rules: how units are collected.
        now_ms: for the entries, milliseconds since the epoch.
        overdue: the open units that have waited too long.
    """
    journal = Journal(state, now_ms)
    waited = f"within {rules.timeout:g} s"
    for unit in [unit for unit in state.open.values() if unit.uow in overdue and not unit.complete]:
        if rules.end is UowEnd.WATERMARK and unit.arrived_ms is not None and unit.end_count is None:
            cause = f"the stream's clock did not pass its commit time, {unit.time} ns, by uowGraceMillis {waited}"
            _dispatch(journal, rules, unit, ended=Ended(late=cause))
        else:
            _give_up(journal, rules, unit, _missing(unit, waited))
    if rules.order is UowOrder.DENSE:
        _release_ready(journal, rules)
        _skip_gap(journal, rules, overdue, waited)
    else:  # units that waited for their turn while uowOrder was dense; nothing else would release them now
        for _, uow in sorted(journal.state.ready.items()):
            _dispatch(journal, rules, journal.state.open[uow])
    return journal.entries


def release(
    state: FoldedLog, rules: UowSettings, now_ms: int, until_ms: float, started_ms: int | None = None
) -> list[Entry]:
    """Dispatches units that the watermark has made complete, at most :data:`RELEASED` of them.

    Args:
        state: changed by the entries.
        rules: how units are collected.
        now_ms: for the entries, milliseconds since the epoch.
        until_ms: the watermark (:mod:`kainite.log.collecting.watermark`).
        started_ms: the latest time at which reading a shard began, as far as only its reader knows.
    """
    begun_ms = latest(state.started_ms, started_ms)
    journal = Journal(state, now_ms)
    for unit in ripe(state.open.values(), rules, until_ms)[:RELEASED]:
        complete, how = ended(unit, state, rules, begun_ms)
        _dispatch(journal, rules, complete, ended=how)
    return journal.entries


def _give_up(journal: Journal, rules: UowSettings, unit: OpenUnit, cause: str) -> None:
    number = unit.number
    if rules.order is UowOrder.DENSE and number is not None and _wrong_number(unit.uow, number, journal.state, rules):
        unit = replace(unit, number=None)  # another unit has the number
    if _may_go(unit.number, journal.state, rules):
        _dispatch(journal, rules, replace(unit, given_up=cause))
    else:
        meta = FragmentMeta(
            unit.uow, unit.shards[-1], 0, (), unit.end_count, unit.number, unit.kind, (cause,), fault=Fault.INCOMPLETE
        )
        journal.write(EntryKind.FRAGMENT, meta)


def _missing(unit: OpenUnit, waited: str) -> str:
    if unit.end_count is None:
        missing = f"no end came {waited}; {unit.count} deltas did"
    else:
        missing = f"{unit.count} of {unit.end_count} deltas came {waited}"
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
    while state.ready and (first := _next_number(state, rules)) not in state.ready:
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
        _release_ready(journal, rules)


def note_scheme(journal: Journal, scheme: Scheme | None) -> None:
    """Writes a SCHEME entry, unless the log knows the scheme."""
    if scheme is not None and scheme.id not in journal.state.schemes:
        tables = {name: (table.digest, table.parents) for name, table in scheme.tables.items()}
        journal.write(EntryKind.SCHEME, SchemeMeta(scheme.id, tables))


def _collect_fragment(journal: Journal, rules: UowSettings, shard: str, fragment: Fragment) -> bool:
    """Collects a fragment of a unit that is open, or not known; returns whether it was dropped as sent again."""
    state = journal.state
    unit = state.open.get(fragment.uow)
    if unit is None and is_plain(fragment, state, rules):
        _collect_plain(journal, rules, shard, fragment)
        return False
    unit = unit or OpenUnit(fragment.uow, journal.now_ms)  # the fold opens it, not this
    news = _news(unit, fragment)
    if news.dropped:
        event(_logger, logging.WARNING, "deltas sent again, dropped", deltas=news.dropped, uow=unit.uow, shard=shard)
    if not (news.fragment.count or news.fragment.ends or news.fragment.rejects or news.repeated):
        return False
    standing = _judge(unit, news, state, rules)
    if standing.copy:
        _drop_copy(journal, unit, standing)
        return True
    note_scheme(journal, news.fragment.scheme)
    going = standing.complete and _may_go(standing.number, state, rules)
    if going and standing.whole and rules.end is UowEnd.MARKER:
        _dispatch(journal, rules, _merged(unit, news, standing, shard), news.fragment, late=standing.late_number)
    else:
        _keep(journal, rules, shard, news, standing)
        # It fails with parts missing, and goes on collecting; or what comes again of it is told by its deltas, which
        # the log remembers of FRAGMENT entries (kainite.log.state.ended_units).
        if going:
            _dispatch(journal, rules, state.open[fragment.uow], late=standing.late_number)
    if going:
        _release_ready(journal, rules)
    return False


def is_plain(fragment: Fragment, state: FoldedLog, rules: UowSettings) -> bool:
    """Returns whether a fragment of a unit that is not open is all of it, and there is nothing to decide about it.

    Nearly all units are plain. What follows for them is what the general way comes to, in a fraction of the time.
    """
    if rules.end is not UowEnd.MARKER or len(fragment.ends) != 1:
        return False
    identities, end = fragment.identities, fragment.ends[0]
    return (
        0 < len(identities) == end.count == len(set(identities))
        and not (fragment.rejects or fragment.misfits or fragment.without)
        and _is_undoubted(fragment.uow, end.number, state, rules)
    )


def _is_undoubted(uow: str, number: int | None, state: FoldedLog, rules: UowSettings) -> bool:
    """Returns whether nothing is wrong with the number of a unit that is not open."""
    if rules.order is UowOrder.DENSE:
        return not state.recent.had(number) and _wrong_number(uow, number, state, rules) is None
    return not state.ready and not state.recent.may_have_had(number)


def _collect_plain(journal: Journal, rules: UowSettings, shard: str, fragment: Fragment) -> None:
    note_scheme(journal, fragment.scheme)
    if not _may_go(fragment.ends[0].number, journal.state, rules):
        _keep_plain(journal, shard, fragment)
        return
    _dispatch_plain(journal, rules, shard, fragment)
    if journal.state.ready:
        _release_ready(journal, rules)


def _keep_plain(journal: Journal, shard: str, fragment: Fragment) -> None:
    """Writes the FRAGMENT entry of a unit that is all there, and whose turn has not come."""
    end, ordinals = fragment.ends[0], _ordinals(fragment)
    meta = FragmentMeta(
        fragment.uow,
        shard,
        end.count,
        ordinals,
        end.count,
        end.number,
        end.kind,
        digests="" if len(ordinals) == end.count else _digests(fragment),
        tables=fragment.tables,
        unsigned=fragment.unsigned,
        scheme=_scheme_id(fragment),
        source_time=fragment.time,
        arrival_ms=fragment.arrived_ms,
    )
    signed = fragment.written, fragment.read, fragment.piece, fragment.signed
    journal.write(EntryKind.FRAGMENT, meta, b"", *signed)


def _ordinals(fragment: Fragment) -> tuple[int, ...]:
    return tuple([identity for identity in fragment.identities if isinstance(identity, int)])


def _digests(fragment: Fragment) -> str:
    return join_digests(identity for identity in fragment.identities if isinstance(identity, bytes))


def _dispatch_plain(journal: Journal, rules: UowSettings, shard: str, fragment: Fragment) -> None:
    serialize, end = rules.isolation is Isolation.SERIALIZE, fragment.ends[0]
    written, read = (fragment.written, fragment.read) if serialize else (_NONE, _NONE)
    meta = UnitMeta(
        fragment.uow,
        end.count,
        (shard,),
        (),
        end.number,
        end.kind,
        journal.state.conflicts.find(written, read),
        tables=_sorted(fragment.tables) if serialize and fragment.tables else (),
        unsigned=_sorted(fragment.unsigned) if serialize and fragment.unsigned else (),
        scheme=_scheme_id(fragment) if serialize else None,
        source_time=fragment.time,
        arrival_ms=fragment.arrived_ms,
    )
    journal.write(EntryKind.UNIT, meta, b"", written, read, fragment.piece, fragment.signed if serialize else b"")


@lru_cache(maxsize=1024)
def _sorted(names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns names in order, each once."""
    return tuple(sorted(set(names)))


def _drop_copy(journal: Journal, unit: OpenUnit, standing: _Standing) -> None:
    """Takes a unit out that its number tells to be a copy; once it is dispatched, the rest of it is recognised."""
    if standing.whole and unit.uow not in journal.state.open:
        return
    cause = "sent again: its number was dispatched before"
    tid = journal.state.next_id
    journal.write(
        EntryKind.UNIT, UnitMeta(unit.uow, unit.count, tuple(unit.shards), tuple(unit.fragments), cause=cause)
    )
    journal.write(EntryKind.STATUS, StatusMeta((Outcome(tid, UnitStatus.DISCARDED, cause=cause),)))


def _collect_late(
    journal: Journal,
    rules: UowSettings,
    shard: str,
    unit: UnitState,
    fragment: Fragment,
    copies: Collection[Identity] = (),
) -> None:
    """Adds what comes late to a failed unit, and says in its cause when all of it has come.

    Args:
        journal: gets the entries.
        rules: how units are collected.
        shard: that the fragment came through.
        unit: the failed unit.
        fragment: what comes late.
        copies: the identities of deltas in it that another unit has.
    """
    assert unit.late is not None
    news = _news(unit.late, fragment, copies)
    if not (news.fragment.count or news.fragment.ends or news.fragment.rejects or news.repeated):
        return
    numbered = unit.late.end_count is not None
    if rules.isolation is Isolation.SERIALIZE:
        note_scheme(journal, news.fragment.scheme)
    else:
        none = frozenset[int]()
        news = replace(
            news, fragment=replace(news.fragment, written=none, read=none, tables=(), unsigned=(), scheme=None)
        )
    standing = _stand(unit.late, news)
    if news.fragment.ends and not numbered and journal.state.recent.may_have_had(standing.number):
        standing.causes.append(_COPY.format(standing.number))
    _keep(journal, rules, shard, news, standing)
    unit = journal.state.units[unit.tid]
    if not numbered and rules.order is UowOrder.DENSE:
        _pass_number(journal, rules, shard, unit)
    assert unit.late is not None
    if unit.late.whole:
        told = unit.late.lacks or f"all {unit.count} deltas have come since"
        retry = "" if unit.obstacle else "; kainite uow retry applies the unit in its place"
        event(_logger, logging.WARNING, "failed unit is whole now", uow=unit.uow, id=unit.tid, lacks=unit.late.lacks)
        cause = f"{unit.cause}; {told}{retry}"
        journal.write(EntryKind.STATUS, StatusMeta((Outcome(unit.tid, UnitStatus.FAILED, cause=cause),)))


def _collect_straggler(journal: Journal, rules: UowSettings, shard: str, late: Straggler) -> None:
    """Adds what came after its unit was dispatched to the late unit, or dispatches that as failed."""
    name = late.fragment.uow
    if (unit := journal.state.collecting(name)) is not None:
        _collect_late(journal, rules, shard, unit, late.fragment, late.copies)
        return
    news = _news(OpenUnit(name, journal.now_ms), late.fragment, late.copies)
    note_scheme(journal, news.fragment.scheme)
    _keep(journal, rules, shard, news, _stand(OpenUnit(name, journal.now_ms), news))
    _dispatch(journal, rules, journal.state.open[name], ended=Ended(late=late.cause))


def _pass_number(journal: Journal, rules: UowSettings, shard: str, unit: UnitState) -> None:
    """Lets an empty unit take the turn of a number that only a late end has told."""
    if unit.number is not None and _wrong_number(unit.uow, unit.number, journal.state, rules) is None:
        stand_in = Fragment(f"number:{unit.number}", ends=(UnitEnd(0, unit.number),))
        _collect_fragment(journal, rules, shard, stand_in)


@dataclass(frozen=True, slots=True)
class _News:
    """The new part of a fragment.

    Attributes:
        fragment: without the deltas that the unit has.
        dropped: how many deltas were left out.
        repeated: how many of these have no ordinal.
    """

    fragment: Fragment
    dropped: int = 0
    repeated: int = 0


def _news(unit: OpenUnit, fragment: Fragment, copies: Collection[Identity] = ()) -> _News:
    fresh: dict[Identity, None] = {}
    without: list[int] = []
    repeated = 0
    for place, identity in enumerate(fragment.identities):
        if identity in fresh or identity in copies or unit.has(identity):
            without.append(place)
            repeated += isinstance(identity, bytes)
        else:
            fresh[identity] = None
    if not without:
        return _News(fragment)
    kept = replace(
        fragment,
        deltas=(),
        identities=tuple(fresh),
        piece=fragment.piece if fresh else None,
        without=tuple(without) if fresh else (),
    )
    return _News(kept, len(without), repeated)


@dataclass(slots=True)
class _Standing:
    """The progress of a unit, with a fragment that is not folded yet.

    Attributes:
        count: how many deltas have come.
        end_count, number, kind: from its end, as :class:`~kainite.log.state.units.OpenUnit` has them.
        failing: whether the unit had a cause before the fragment.
        causes: those that the fragment adds.
        late_number: whether its only cause is that its number was given up, or that it may be a copy.
        copy: whether its number tells that it was dispatched before.
    """

    count: int
    end_count: int | None
    number: int | None
    kind: UnitKind
    failing: bool
    causes: list[str]
    late_number: bool = False
    copy: bool = False

    @property
    def whole(self) -> bool:
        return self.end_count is not None and self.count >= self.end_count

    @property
    def complete(self) -> bool:
        return self.whole or (self.end_count is not None and (self.failing or bool(self.causes)))


def _judge(unit: OpenUnit, news: _News, state: FoldedLog, rules: UowSettings) -> _Standing:
    """Returns the unit's standing with the fragment, and with what is wrong with its number or its end."""
    standing = _stand(unit, news)
    if rules.order is UowOrder.TIME and news.fragment.ends and not news.fragment.rejects:
        standing.causes.append("an end came, and with uowOrder=time units have none")
    told = bool(news.fragment.ends) and unit.end_count is None
    if told and rules.order is UowOrder.DENSE and state.recent.had(standing.number):
        standing.copy = True
        return standing
    numbered = bool(news.fragment.ends) or (standing.complete and standing.number is not None)
    if rules.order is UowOrder.DENSE and numbered:
        wrong = _wrong_number(unit.uow, standing.number, state, rules)
        if wrong is not None:
            standing.late_number = wrong.late and not (unit.causes or standing.causes)
            standing.causes.append(wrong.cause)
            standing.number = None
    elif told and state.recent.may_have_had(standing.number):
        standing.late_number = not (unit.causes or standing.causes)
        standing.causes.append(_COPY.format(standing.number))
        standing.number = None
    return standing


def _stand(unit: OpenUnit, news: _News) -> _Standing:
    """Returns the unit's standing with the fragment.

    Looks at nothing but what is new: collecting a unit takes time linear in its deltas, however many fragments it has.
    """
    fragment = news.fragment
    standing = _Standing(
        unit.count + fragment.count, unit.end_count, unit.number, unit.kind,
        bool(unit.causes) or unit.given_up is not None, [reject.cause for reject in fragment.rejects],
    )  # fmt: skip
    for end in fragment.ends:
        _add_end(standing, end)
    if standing.end_count is not None and standing.count > standing.end_count:
        standing.causes.append(f"{standing.count} deltas came, its end announced {standing.end_count}")
    return standing


def _add_end(standing: _Standing, end: UnitEnd) -> None:
    if standing.end_count is None:
        standing.end_count, standing.number, standing.kind = end.count, end.number, end.kind
    elif (end.count, end.number, end.kind) != (standing.end_count, standing.number, standing.kind):
        standing.causes.append(
            f"two ends disagree: count {standing.end_count}, number {standing.number}, {standing.kind} "
            f"and count {end.count}, number {end.number}, {end.kind}"
        )


def _merged(unit: OpenUnit, news: _News, standing: _Standing, shard: str) -> OpenUnit:
    """Returns the open unit as it would be with the fragment; the state does not change."""
    fragment = news.fragment
    return replace(
        unit,
        shards=unit.shards if shard in unit.shards else [*unit.shards, shard],
        count=standing.count,
        written=unit.written | fragment.written,
        read=unit.read | fragment.read,
        end_count=standing.end_count,
        number=standing.number,
        kind=standing.kind,
        causes=[*unit.causes, *standing.causes],
        offending=unit.offending or _offending(fragment),
        repeated=unit.repeated + news.repeated,
        misfits=[*unit.misfits, *(misfit.cause for misfit in fragment.misfits)],
        tables=unit.tables.union(fragment.tables),
        unsigned=unit.unsigned.union(fragment.unsigned),
        scheme=_scheme_of(unit, fragment),
    )


def _scheme_of(unit: OpenUnit, fragment: Fragment) -> str | None:
    if not fragment.count:
        return unit.scheme
    return merged(unit.scheme, _scheme_id(fragment)) if unit.count else _scheme_id(fragment)


def _scheme_id(fragment: Fragment) -> str | None:
    return fragment.scheme.id if fragment.scheme else None


def _offending(fragment: Fragment) -> str | None:
    return next((reject.line for reject in (*fragment.rejects, *fragment.misfits)), None)


@dataclass(frozen=True, slots=True)
class _WrongNumber:
    """The cause for which a unit's number is wrong.

    ``late``: no other unit is known to have the number, which may have been given up.
    """

    cause: str
    late: bool = False


def _wrong_number(uow: str, number: int | None, state: FoldedLog, rules: UowSettings) -> _WrongNumber | None:
    if number is None:
        return _WrongNumber("its end has no number, and uowOrder is dense")
    holder = state.recent.holder(number) or state.ready.get(number)
    if holder is not None and holder != uow and not holder.startswith(MISSING):
        return _WrongNumber(f"number {number} is that of unit {holder} too")
    if holder is None and number in state.recent.numbers:
        return _WrongNumber(f"number {number} is that of another unit too, which was dispatched before")
    if number < _next_number(state, rules):
        cause = f"number {number} comes after it was given up or dispatched, or below uowFirstNumber"
        return _WrongNumber(cause, late=number >= rules.first_number)
    return None


def _next_number(state: FoldedLog, rules: UowSettings) -> int:
    return rules.first_number if state.next_number is None else state.next_number


def _may_go(number: int | None, state: FoldedLog, rules: UowSettings) -> bool:
    """Returns whether a complete unit is dispatched now; one without a number, or with a past one, need not wait."""
    return rules.order is not UowOrder.DENSE or number is None or number <= _next_number(state, rules)


def _release_ready(journal: Journal, rules: UowSettings) -> None:
    state = journal.state
    while (uow := state.ready.get(_next_number(state, rules))) is not None:
        unit = state.open[uow]
        if unit.sound and rules.end is UowEnd.MARKER:
            _dispatch_sound(journal, rules, unit)
        else:
            _dispatch(journal, rules, unit)


def _dispatch_sound(journal: Journal, rules: UowSettings, unit: OpenUnit) -> None:
    """Writes the UNIT entry of a unit that is all in the log, and of which nothing is wrong; as :func:`_dispatch`."""
    serialize = rules.isolation is Isolation.SERIALIZE
    written, read = (frozenset(unit.written), frozenset(unit.read)) if serialize else (_NONE, _NONE)
    meta = UnitMeta(
        unit.uow,
        unit.count,
        tuple(unit.shards),
        tuple(unit.fragments),
        unit.number,
        unit.kind,
        journal.state.conflicts.find(written, read),
        tables=tuple(sorted(unit.tables)) if serialize else (),
        unsigned=tuple(sorted(unit.unsigned)) if serialize and unit.unsigned else (),
        scheme=unit.scheme if serialize else None,
    )
    journal.write(EntryKind.UNIT, meta, b"", written, read)


def _dispatch(
    journal: Journal,
    rules: UowSettings,
    unit: OpenUnit,
    fragment: Fragment | None = None,
    *,
    late: bool = False,
    ended: Ended | None = None,
) -> None:
    """Writes the UNIT entry.

    Args:
        journal: gets the entry.
        rules: how units are collected.
        unit: all of it that has come.
        fragment: the part of the unit that is not in the log yet.
        late: whether the unit's only cause is that its number was given up, or that it may be a copy.
        ended: how the watermark ends the unit; None: it has an end.
    """
    incomplete = unit.given_up is not None and not unit.whole
    causes = [*unit.causes, *([unit.given_up] if unit.given_up is not None and incomplete else [])]
    fault: Fault | None
    if unit.causes:
        fault = Fault.LATE_NUMBER if late else Fault.MALFORMED
    elif ended is not None and ended.late is not None:
        fault = Fault.LATE
        causes.append(ended.late)
    elif incomplete:
        fault = Fault.INCOMPLETE
    else:
        fault = Fault.MISFIT if unit.misfits else None
    causes += unit.misfits
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
        fault=fault,
        tables=tuple(sorted(unit.tables)) if serialize else (),
        unsigned=tuple(sorted(unit.unsigned)) if serialize else (),
        scheme=unit.scheme if serialize else None,
        without=fragment.without if fragment is not None else (),
        time=ended.time if ended else None,
        arrived_ms=unit.arrived_ms if ended or rules.end is UowEnd.WATERMARK else None,
        source_time=fragment.time if fragment is not None else None,
        arrival_ms=fragment.arrived_ms if fragment is not None else None,
    )
    if meta.cause:
        event(_logger, logging.ERROR, "unit failed", uow=unit.uow, cause=meta.cause)
    journal.write(EntryKind.UNIT, meta, b"", written, read, fragment.piece if fragment is not None else None)


def _keep(journal: Journal, rules: UowSettings, shard: str, news: _News, standing: _Standing) -> None:
    """Writes a FRAGMENT entry: the unit stays open, or goes on collecting although it has failed."""
    fragment = news.fragment
    for reject in (*fragment.rejects, *fragment.misfits):
        event(_logger, logging.ERROR, "delta refused", uow=fragment.uow, cause=reject.cause, line=reject.line)
    has_end = bool(fragment.ends)
    timed = rules.end is UowEnd.WATERMARK and bool(fragment.count or fragment.rejects)  # copies delay nothing
    meta = FragmentMeta(
        uow=fragment.uow,
        shard=shard,
        count=fragment.count,
        ordinals=_ordinals(fragment),
        end_count=standing.end_count if has_end else None,
        number=standing.number if has_end else None,
        unit_kind=standing.kind,
        causes=tuple(standing.causes),
        offending=_offending(fragment),
        digests=_digests(fragment),
        repeated=news.repeated,
        misfits=tuple(misfit.cause for misfit in fragment.misfits),
        tables=fragment.tables,
        unsigned=fragment.unsigned,
        scheme=_scheme_id(fragment),
        without=fragment.without,
        time=fragment.time if timed else None,
        arrived_ms=fragment.arrived_ms if timed else None,
        source_time=None if timed else fragment.time,
        arrival_ms=None if timed else fragment.arrived_ms,
    )
    journal.write(EntryKind.FRAGMENT, meta, b"", fragment.written, fragment.read, fragment.piece)
