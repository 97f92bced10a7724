"""Decides when units without an end of their own are complete, by how far all shards have been read. No I/O.

With ``uowEnd=watermark`` a unit has no end. Its deltas tell its commit time *T* (the source's clock); each of its
records has an arrival (Kinesis' clock), of which the latest is *A*. The *watermark* is the time, by Kinesis' clock,
such that every record that arrived up to it, in any shard of the stream, is in the log. A unit is complete when

    watermark >= max(T, A) + grace

so when every shard has been read past the unit's commit time plus the grace, and past its latest record plus the grace.
``uowOrder=time`` also demands that every open unit with an earlier (T, name) goes first.

**What is assumed.** Of each unit, a record arrives within the grace after the commit, or within the grace after the
unit's record before it. With ``uowOrder=time``: the first one within the grace after the commit. The grace has to cover
the way into the stream, the difference between the source's clock and Kinesis', and the inaccuracy of arrival times.
A source's clock that runs behind cannot tear a unit, since A counts too; one that runs ahead holds units back by as
much, and a unit that its clock holds back for ``uowTimeoutMillis`` fails. A record that breaks the assumption is *late*
(:func:`straggler`): it fails visibly, and is never applied without a person's decision.

**What is reported of a shard.** The shard's consumer reports two things, and only of records that are durable in the
log (:class:`~kainite.log.client.ReadingReport`):

* *arrived*: the arrival of the last record; records of a shard come in the order of their arrival;
* *tip*: an age, since when the shard was open and held nothing that is not in the log. Only a reply without records, of
  a shard that goes on, tells it: a shard that was split or merged has records behind it, in its children, from the
  moment at which it was closed, and it tells nothing beyond that moment.

A tip is a time by a host's boot clock. What Kinesis' clock showed then is not asked: a wall clock may jump. It is
bounded from below by the records themselves: a record with the arrival *a* that is here when this clock shows *b* says
that Kinesis' clock is at least *a - b* ahead of this one. The best such bound is kept; it becomes worse by
:data:`DRIFT` with the time between record and tip, since clocks do not run at one pace. A unit's own record is such
evidence, so that a unit on an idle stream waits for the grace, and one reading of each shard; after a mount, the open
units' latest arrival is.

===================================================  ============================================================
event                                                effect
===================================================  ============================================================
a mount, a crash, another owner                      nothing is known: every shard has to tell anew. What units waited
                                                     for is in the log (``time``, ``arrived_ms``)
no report, no shard, hash keys without a lease       no watermark
a shard that nobody reads, whose records break       it holds the watermark, and :meth:`Watermark.held_by` names it
every child, or whose parent is still read
a shard lags                                         its last record's arrival counts
shards are read from LATEST, or AT_TIMESTAMP         a unit whose commit is not later than the log's beginning by the
                                                     grace fails as late: records of it may stand before. The beginning
                                                     is durable before a shard is read (:mod:`kainite.log.client`)
a shard is split or merged                           the parent stays where it was closed until it is at SHARD_END; its
                                                     children have leases by then, and count until they are read
an old report (a daemon that was cut off)            it names parents in place of their children: the watermark stays
a stream is added                                    it counts from before its first lease, whoever does not know it
                                                     yet, and whoever owns the log (:mod:`.reported_shards`)
a wall clock jumps                                   no effect, but for the source's own
===================================================  ============================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from kainite.base.clock import boot_seconds
from kainite.log.client import ReadingReport
from kainite.log.collecting.reported_shards import ReportedShards
from kainite.log.format.entry import Fault
from kainite.log.state.ended_units import is_late_name, late_name
from kainite.log.state.folded import FoldedLog
from kainite.log.state.open_unit import OpenUnit
from kainite.settings import UowOrder, UowSettings
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.identity import Identity

DRIFT: Final = 0.001
"""How much faster this clock may run than Kinesis', in seconds a second; ten times the usual tolerance of clocks."""

TIMELESS: Final = "'time' is missing: with uowEnd=watermark a unit's deltas tell its commit time"


_TORN: Final = (
    "its commit time, {} ns, is not later by uowGraceMillis than {} ms, when reading began: records of it may "
    "stand before that place, and are never read (initialPositionInStream); compare it with the source, then discard "
    "or retry it"
)


@dataclass(frozen=True, slots=True)
class Held:
    """The shard that holds the watermark back.

    Attributes:
        shard: the shard that is read least far; None while no shard is known.
        seconds: how far the watermark is behind the present; None while no report tells of the shard.
    """

    shard: str | None
    seconds: float | None

    def __str__(self) -> str:
        if self.shard is None:
            return "nothing is known of the shards yet"
        if self.seconds is None:
            return f"nobody tells how far shard {self.shard} is read"
        return f"shard {self.shard} is read up to {self.seconds:.0f} s ago"


class Watermark:
    """The watermark of one mount.

    Args:
        clock: returns seconds that never run backwards, and that run on while the host sleeps.
        awaited: returns the streams that the log awaits.

    Attributes:
        reported: the shards that are to be read.
    """

    def __init__(
        self, clock: Callable[[], float] = boot_seconds, awaited: Callable[[], Collection[str]] = frozenset
    ) -> None:
        self._clock = clock
        self.reported = ReportedShards(clock, awaited)
        self._shards: frozenset[str] = frozenset()
        self._tips: dict[str, float] = {}  # by this clock, seconds
        self._waiting: frozenset[str] = frozenset()
        self._arrived: dict[str, int] = {}
        self._ahead = -math.inf  # of Kinesis' clock before this one at _ahead_at, at least, milliseconds
        self._ahead_at = 0.0

    def report(self, report: ReadingReport) -> ReadingReport:
        """Takes a reader's report; returns it with all shards that are to be read (:mod:`.reported_shards`)."""
        now = self._clock()
        report = replace(report, shards=self.reported.after(report.shards))
        self._shards, self._waiting = report.shards, report.waiting
        for shard, age in report.tips.items():
            self._tips[shard] = max(self._tips.get(shard, -math.inf), now - max(0.0, age))
        for shard, arrived in report.arrived.items():
            self._arrived[shard] = max(self._arrived.get(shard, arrived), arrived)
            self.learn(arrived)
        for known in (self._tips, self._arrived):
            for shard in known.keys() - self._shards:
                del known[shard]
        return report

    def learn(self, arrived_ms: int) -> None:
        """Notes the arrival of a record that is here: Kinesis' clock shows at least this time."""
        now = self._clock()
        ahead = arrived_ms - now * 1000
        if ahead >= self._ahead_when(now):
            self._ahead, self._ahead_at = ahead, now

    def until_ms(self) -> float:
        """Returns the time up to which every record that arrived is in the log; the distant past while it is unknown.

        Milliseconds since the epoch, by Kinesis' clock.
        """
        return min((self._of(shard) for shard in self._to_be_read()), default=-math.inf)

    def read_until_ms(self) -> float:
        """Returns :meth:`until_ms` of the shards that can be read now: a shard behind its parent is not read before."""
        return min((self._of(shard) for shard in self._to_be_read() - self._waiting), default=-math.inf)

    def seconds_until(self, due_ms: float) -> float:
        """Returns after how many seconds Kinesis' clock surely shows a time.

        No tip can raise the watermark to the time before. The result is 0 or less if Kinesis' clock surely shows the
        time already, and infinite while nothing is known of that clock.
        """
        now = self._clock()
        return (due_ms - now * 1000 - self._ahead_when(now)) / 1000

    def held_by(self) -> Held:
        """Returns what holds the watermark back most."""
        if not self._shards:
            return Held(None, None)
        shard = min(self._to_be_read(), key=lambda name: (self._of(name), name))
        now = self._clock()
        behind = (now * 1000 + self._ahead_when(now) - self._of(shard)) / 1000
        return Held(shard, max(0.0, behind) if math.isfinite(behind) else None)

    def _to_be_read(self) -> frozenset[str]:
        """Returns the shards as of the latest report, with those of streams that are awaited since."""
        return self._shards | self.reported.unread()

    def _of(self, shard: str) -> float:
        """Returns the arrival up to which the log has all the shard's records; the distant past while it is unknown."""
        arrived, tip = self._arrived.get(shard), self._tips.get(shard)
        # Of two records with the same arrival one may be unread.
        by_records = -math.inf if arrived is None else arrived - 1
        return max(by_records, -math.inf if tip is None else tip * 1000 + self._ahead_when(tip))

    def _ahead_when(self, at: float) -> float:
        """Returns how far Kinesis' clock was ahead of this one at a time, before the best record or after it."""
        return self._ahead - abs(at - self._ahead_at) * 1000 * DRIFT


def ripe(units: Iterable[OpenUnit], rules: UowSettings, until_ms: float) -> list[OpenUnit]:
    """Returns the units that are complete, in the order in which they are released: by commit time, ties by name.

    Args:
        units: the units that are being collected; a unit with an end of its own, or without a known arrival, is not
            ripe.
        rules: the order and the grace.
        until_ms: the watermark.
    """
    waiting = _waiting(units, rules)
    complete = [unit for due_ms, unit in waiting if due_ms <= until_ms]
    if complete and rules.order is UowOrder.TIME and len(complete) < len(waiting):
        others = (unit for due_ms, unit in waiting if due_ms > until_ms and unit.time is not None)
        first = min(map(_place, others), default=None)
        complete = [unit for unit in complete if first is None or unit.time is None or _place(unit) < first]
    return sorted(complete, key=_place)


def _waiting(units: Iterable[OpenUnit], rules: UowSettings) -> list[tuple[float, OpenUnit]]:
    """Returns the units that the watermark ends, each with the watermark at which it is complete."""
    return [(_due_ms(unit, rules), unit) for unit in units if unit.end is None and unit.arrived_ms is not None]


def next_due_ms(units: Iterable[OpenUnit], rules: UowSettings) -> float:
    """Returns the watermark at which :func:`ripe` has a unit; infinity while no unit waits for it."""
    waiting = _waiting(units, rules)
    if rules.order is not UowOrder.TIME:
        return min((due_ms for due_ms, _ in waiting), default=math.inf)
    # All other units with a commit time follow the first of these units.
    timed = (unit for _, unit in waiting if unit.time is not None)
    first = min(timed, key=_place, default=None)
    return min((due_ms for due_ms, unit in waiting if unit.time is None or unit is first), default=math.inf)


def _place(unit: OpenUnit) -> tuple[int, str]:
    return unit.time or 0, unit.uow


def _due_ms(unit: OpenUnit, rules: UowSettings) -> float:
    """Returns the watermark at which the unit is complete."""
    arrived_ms, committed_ms = unit.arrived_ms or 0, -(-(unit.time or 0) // 1_000_000)
    return (arrived_ms if arrived_ms > committed_ms else committed_ms) + rules.grace * 1000


@dataclass(frozen=True, slots=True)
class Ended:
    """The way in which the watermark ends a unit.

    Attributes:
        time: the unit's place in the order of commits; None where it has no commit time.
        late: why the unit is late; None when it is on time.
    """

    time: int | None = None
    late: str | None = None


def ended(unit: OpenUnit, state: FoldedLog, rules: UowSettings) -> tuple[OpenUnit, Ended]:
    """Returns a complete unit, with a cause if it lacks a commit time, and the way in which the watermark ends it."""
    if unit.time is None:
        return msgspec.structs.replace(unit, causes=[*unit.causes, *(() if unit.causes else (TIMELESS,))]), Ended()
    if may_be_torn(unit.time, state, rules):
        return unit, Ended(late=_TORN.format(unit.time, state.started_ms))
    return unit, _ended_at(unit, unit.time, state, rules)


def may_be_torn(time: int, state: FoldedLog, rules: UowSettings) -> bool:
    """Tells whether records of a unit with this commit time may stand before the place where reading began."""
    return state.started_ms is not None and time <= (state.started_ms + rules.grace * 1000) * 1_000_000


def _ended_at(unit: OpenUnit, time: int, state: FoldedLog, rules: UowSettings) -> Ended:
    first = state.latest_time
    if rules.order is not UowOrder.TIME or first is None or (time, unit.uow) > first:
        return Ended(time)
    return Ended(
        late=f"its commit time, {time} ns, is before that of unit {first[1]}, {first[0]} ns, which went first: its "
        "records came later than uowGraceMillis"
    )


def reserved(fragment: Fragment) -> Fragment:
    """Returns a fragment; if its unit has the name of a late unit, the returned fragment makes the unit fail."""
    if not is_late_name(fragment.uow):
        return fragment
    reject = Reject("names that end with +late are those of late units (uowEnd=watermark)", "")
    return replace(fragment, rejects=(*fragment.rejects, reject))


@dataclass(frozen=True, slots=True)
class Straggler:
    """The late part of a unit.

    Attributes:
        fragment: the late fragment, under the name of the late unit that it belongs to.
        copies: the identities of deltas in the fragment that its unit has already.
        cause: why the late unit fails.
    """

    fragment: Fragment
    copies: frozenset[Identity]
    cause: str


def straggler(state: FoldedLog, fragment: Fragment) -> Straggler | None:
    """Returns the late part of a fragment of a dispatched unit; None when all its deltas are duplicates."""
    known = zip(fragment.identities, state.ended.has(fragment.uow, fragment.identities), strict=True)
    copies = frozenset(identity for identity, has in known if has)
    unit = state.find(fragment.uow) if fragment.rejects else None
    told = unit is not None and unit.fault is Fault.MALFORMED  # it has failed for this, or for something like it
    rejects = () if fragment.ends or told else fragment.rejects
    if copies.issuperset(fragment.identities) and not rejects:
        return None
    late = replace(fragment, uow=late_unit(state, fragment.uow), ends=(), rejects=rejects)
    return Straggler(late, copies, _late_cause(state, fragment))


def late_unit(state: FoldedLog, uow: str) -> str:
    """Returns the name of the late unit that still collects, or else of the next one."""
    number = 1
    while _is_taken(state, name := late_name(uow, number)):
        number += 1
    return name


def _is_taken(state: FoldedLog, name: str) -> bool:
    return name in state.open or (name in state.recent and state.collecting(name) is None)


def _late_cause(state: FoldedLog, fragment: Fragment) -> str:
    due_ms = state.ended.due_ms(fragment.uow)
    if due_ms is None:
        return (
            f"it came after unit {fragment.uow} was taken for complete, or was sent again: the deltas of that unit are "
            "not remembered any more; compare it with the target, then retry or discard it"
        )
    late_ms = (fragment.arrived_ms or 0) - due_ms
    return (
        f"it came after unit {fragment.uow} was taken for complete: {late_ms} ms after that unit's commit and last "
        "record (uowGraceMillis); a retry applies it now"
    )
