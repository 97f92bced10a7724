"""The log, folded: what its entries add up to.

:class:`FoldedLog` is changed by :meth:`FoldedLog.apply` alone, one entry at a time, in order of
transaction ids. The owner folds what it appends, the apply job and ``kainite log show`` what they
read; equal entries give equal states. A snapshot is a state as bytes; folding from it gives what
folding from the beginning gives.

A unit's life::

    (nothing) ── FRAGMENT ──► open ── UNIT ──► in progress ──► committed
                                │                 │    ▲
                                └── UNIT with     ▼    │ retry
                                    a cause ──► failed ┴──► discarded
                                in progress ──► blocked ──► in progress

Invariants:

* ``units`` holds every dispatched unit that is neither committed nor discarded, by transaction id;
* a unit is in ``open`` or in ``units``, never in both, and ``recent`` names it once dispatched;
* ``positions[shard]`` is the last record whose deltas are in the log: a record at or before it
  that is delivered again is recognised.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kainite.base.position import Position
from kainite.log.format.entry import (
    ControlMeta,
    Entry,
    FragmentMeta,
    Outcome,
    PositionMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.recent_units import RecentUnits
from kainite.uow.conflicts import LatestConflicts
from kainite.uow.delta import UnitKind

ANSWERED_REQUESTS = 1_000
"""How many answered requests are remembered, so that one whose answer was lost is not done twice."""


@dataclass(slots=True)
class OpenUnit:
    """A unit whose deltas or end are still to come.

    Attributes:
        uow: its name.
        opened_ms: when its first fragment was appended.
        fragments: transaction ids of its FRAGMENT entries.
        shards: the shards they came through, each once, in order of appearance.
        count: how many deltas have come.
        ordinals: of those that have one.
        written, read: signatures so far.
        end_count: how many deltas its end announced; None while no end has come.
        number, kind: from its end.
        causes: why it will fail.
        offending: what was emitted for it that was no delta.
    """

    uow: str
    opened_ms: int
    fragments: list[int] = field(default_factory=list)
    shards: list[str] = field(default_factory=list)
    count: int = 0
    ordinals: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)
    read: set[int] = field(default_factory=set)
    end_count: int | None = None
    number: int | None = None
    kind: UnitKind = UnitKind.NORMAL
    causes: list[str] = field(default_factory=list)
    offending: str | None = None

    @property
    def complete(self) -> bool:
        """Its end has come, and with it either all deltas or a reason why it fails anyway."""
        return self.end_count is not None and (bool(self.causes) or self.count >= self.end_count)


@dataclass(slots=True)
class UnitState:
    """A dispatched unit that is not resolved yet; ``attempt`` counts its retries."""

    tid: int
    uow: str
    count: int
    kind: UnitKind
    status: UnitStatus
    fragments: tuple[int, ...] = ()
    written: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()
    shards: tuple[str, ...] = ()
    number: int | None = None
    conflict: int | None = None
    instance: int | None = None
    cause: str | None = None
    malformed: bool = False
    attempt: int = 0

    @property
    def first_tid(self) -> int:
        """The lowest transaction id that holds any of the unit's data."""
        return min((*self.fragments, self.tid))


class FoldedLog:
    """The folded log.

    Args:
        dedup_window: how many dispatched units are remembered by name, so that one that its
            source sends again is recognised.
    """

    def __init__(self, dedup_window: int = 100_000) -> None:
        self.next_id = 0
        self.positions: dict[str, Position] = {}
        self.open: dict[str, OpenUnit] = {}
        self.ready: dict[int, str] = {}
        """Complete units that wait for their turn (``uowOrder=dense``): number to name."""
        self.units: dict[int, UnitState] = {}
        self.recent = RecentUnits(dedup_window)
        self.conflicts = LatestConflicts()
        self.next_number: int | None = None
        """The number that is dispatched next; None before the first numbered unit."""
        self.through = -1
        """The outcomes partition is taken over up to this id."""
        self.answered: dict[str, None] = {}
        self.snapshot_id = -1

    def apply(self, tid: int, entry: Entry, time_ms: int) -> None:
        """Fold one entry; ``tid`` must be :attr:`next_id`."""
        if tid != self.next_id:
            raise ValueError(f"entry {tid} folded where {self.next_id} is next")
        self.next_id += 1
        match entry.meta:
            case FragmentMeta() as meta:
                self._fragment(tid, entry, meta, time_ms)
            case UnitMeta() as meta:
                self._unit(tid, entry, meta)
            case StatusMeta() as meta:
                self._status(meta)
            case PositionMeta(shard, position):
                self.positions[shard] = position
            case ControlMeta():
                self.snapshot_id = tid

    def oldest_needed(self) -> int:
        """The lowest transaction id whose data somebody may still ask for."""
        opened = (unit.fragments[0] for unit in self.open.values())
        return min((*opened, *(unit.first_tid for unit in self.units.values())), default=self.next_id)

    def find(self, uow: str) -> UnitState | None:
        """The unresolved unit called ``uow``."""
        return next((unit for unit in self.units.values() if unit.uow == uow), None)

    def _fragment(self, tid: int, entry: Entry, meta: FragmentMeta, time_ms: int) -> None:
        unit = self.open.setdefault(meta.uow, OpenUnit(meta.uow, time_ms))
        unit.fragments.append(tid)
        if meta.shard not in unit.shards:
            unit.shards.append(meta.shard)
        unit.count += meta.count
        unit.ordinals.update(meta.ordinals)
        unit.written |= entry.written
        unit.read |= entry.read
        unit.causes.extend(meta.causes)
        unit.offending = unit.offending or meta.offending
        if meta.end_count is not None:
            unit.end_count, unit.number, unit.kind = meta.end_count, meta.number, meta.unit_kind
        if unit.complete and unit.number is not None:
            self.ready[unit.number] = unit.uow

    def _unit(self, tid: int, entry: Entry, meta: UnitMeta) -> None:
        self.open.pop(meta.uow, None)
        self.recent.add(meta.uow, meta.number)
        if meta.number is not None:
            if self.ready.get(meta.number) == meta.uow:
                del self.ready[meta.number]
            self.next_number = max(self.next_number or 0, meta.number + 1)
        self.units[tid] = UnitState(
            tid=tid,
            uow=meta.uow,
            count=meta.count,
            kind=meta.kind,
            status=UnitStatus.FAILED if meta.cause else UnitStatus.IN_PROGRESS,
            fragments=meta.fragments,
            written=entry.written,
            read=entry.read,
            shards=meta.shards,
            number=meta.number,
            conflict=meta.conflict,
            cause=meta.cause,
            malformed=meta.cause is not None,
        )
        self.conflicts.add(tid, entry.written, entry.read)

    def _status(self, meta: StatusMeta) -> None:
        for outcome in meta.outcomes:
            self._outcome(outcome)
        if meta.through is not None:
            self.through = max(self.through, meta.through)
        for request in meta.requests:
            self.answered[request] = None
        while len(self.answered) > ANSWERED_REQUESTS:
            del self.answered[next(iter(self.answered))]

    def _outcome(self, outcome: Outcome) -> None:
        unit = self.units.get(outcome.tid)
        if unit is None:
            return
        if outcome.status in (UnitStatus.COMMITTED, UnitStatus.DISCARDED):
            del self.units[outcome.tid]
            self.conflicts.remove(outcome.tid, unit.written, unit.read)
            return
        if outcome.status is UnitStatus.IN_PROGRESS and unit.status is UnitStatus.FAILED:
            unit.attempt += 1
        unit.status, unit.cause = outcome.status, outcome.cause
        if outcome.instance is not None:
            unit.instance = outcome.instance
