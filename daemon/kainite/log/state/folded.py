"""The state of a serialization log: the result of folding all its entries.

:class:`FoldedLog` is changed by :meth:`FoldedLog.apply` alone, one entry at a time, in order of
transaction ids. The owner folds the entries that it appends; the apply job and the demo fold the entries that
they read. Equal entries give equal states. A snapshot is a state as bytes: folding from a snapshot
gives the same state as folding from the beginning of the log.

The units' part of the fold is :mod:`kainite.log.state.units`, which the views of the log use too.

Invariants:

* ``units`` holds every dispatched unit that is neither committed nor discarded, by transaction id;
* a unit is in ``open`` or in ``units``, never in both, and ``recent`` names the unit once it is dispatched, until the
  name leaves (:mod:`kainite.log.state.recent_units`);
* ``ready`` names units of ``open`` alone, each complete and under the number that its end has now. Of several such
  units with one number it names the first; collecting takes the number from the others;
* ``positions`` are of ``stream``; None before the first mount;
* ``positions[shard]`` is the last record whose deltas are in the log: a record at or before this
  position that is delivered again is recognised;
* ``ended`` has the deltas of the units that the watermark ended lately (:mod:`kainite.log.state.ended_units`);
  ``latest_time`` is the highest commit time, with the name, of such units that were on time;
* ``schemes`` has every scheme that an open or unresolved unit names; ``misfits`` are the unresolved units that a retry
  has to judge anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from kainite.base.position import Position
from kainite.log.format.entry import (
    LEASED,
    NAMES,
    SNAPSHOT,
    STARTED,
    STREAM,
    ControlMeta,
    Entry,
    Fault,
    FragmentMeta,
    Meta,
    OperationMeta,
    PositionMeta,
    RefitMeta,
    SchemeMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.ended_units import EndedUnits, on_time_name
from kainite.log.state.handed_out import HandedOut
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.operations import DoneOperations
from kainite.log.state.ordinal_pages import ordinals_in
from kainite.log.state.recent_units import RecentUnits
from kainite.log.state.target_parts import TargetParts
from kainite.log.state.unit_state import UnitState
from kainite.log.state.units import UnitFold
from kainite.uow.scheme import Scheme

MOST_SCHEMES = 16
"""The number of schemes beyond which a snapshot drops unused ones; a scheme that is used again is noted again."""

ANSWERED_REQUESTS = 1_000
"""How many answered requests are remembered, so that none whose answer was lost is carried out twice."""

# Looking a member up in its enum takes Python 3.11 0.1 µs.
_MISFIT, _MISSING_NUMBER = Fault.MISFIT, Fault.MISSING_NUMBER


def oldest_needed(opened: Iterable[OpenUnit], units: Iterable[UnitState], next_id: int) -> int:
    """Returns the lowest transaction id whose data the units may still need; ``next_id`` when they need none."""
    return min(chain((unit.fragments[0] for unit in opened), (unit.first_tid for unit in units)), default=next_id)


class FoldedLog:
    """The folded log."""

    def __init__(self) -> None:
        self.fold = UnitFold()
        """The units' part of the fold."""
        self.next_id = 0
        self.stream: str | None = None
        """Identity of the stream that is collected."""
        self.positions: dict[str, Position] = {}
        self.ready: dict[int, str] = {}
        """Complete units that wait for their turn (``uowOrder=dense``): number to name."""
        self.recent = RecentUnits()
        self.next_number: int | None = None
        """The number of the unit that is dispatched next; None before the first numbered unit."""
        self.through = -1
        """The owner has copied the outcomes partition up to this id."""
        self.answered: dict[str, None] = {}
        self.snapshot_id = -1
        """Transaction id of the latest snapshot's entry; -1 without one."""
        self.snapshot_since = -1
        """The latest snapshot is the state that the entries below this id add up to."""
        self.waiting_bytes = 0
        """About how much memory the units that are not resolved take."""
        self.open_deltas = 0
        """How many deltas the units have that are being collected, without units that are too large."""
        self.schemes: dict[str, Scheme] = {}
        self.misfits: dict[int, None] = {}
        self.ended = EndedUnits()
        self.handed_out = HandedOut()
        """What the units had that the owner of this state has dispatched; not folded, and in no snapshot."""
        self.latest_time: tuple[int, str] | None = None
        self.started: dict[str, int] = {}
        """The log's beginning, by stream, where it is not the beginning of the shards (:mod:`kainite.log.client`)."""
        self.awaited: set[str] = set()
        """Of several streams those that have begun, and whose leases nobody has seen for certain."""
        self.operations = DoneOperations()
        """What people did, and whether applying is paused."""
        self.targets = TargetParts()
        """What each of several targets has of the unresolved units; empty where there is one target."""

    @property
    def started_ms(self) -> int | None:
        """Returns the latest of the log's beginnings: a unit from before it may lack its part of that stream."""
        return max(self.started.values(), default=None)

    @property
    def open(self) -> dict[str, OpenUnit]:
        """Returns the units that are being collected, by name."""
        return self.fold.open

    @property
    def units(self) -> dict[int, UnitState]:
        """Returns the dispatched units that are not resolved, by transaction id."""
        return self.fold.units

    @property
    def statuses(self) -> Mapping[UnitStatus, int]:
        """Returns how many of :attr:`units` have each status; a status that no unit has may be missing."""
        return self.fold.statuses

    def apply(self, tid: int, entry: Entry, time_ms: int) -> None:
        """Applies one entry.

        Args:
            tid: the entry's transaction id; must be :attr:`next_id`.
            entry: the entry; its data is not looked at.
            time_ms: when the entry's batch was formed, in milliseconds since the epoch.

        Raises:
            ValueError: ``tid`` is not :attr:`next_id`.
        """
        if tid != self.next_id:
            raise ValueError(f"entry {tid} folded where {self.next_id} is next")
        self.next_id += 1
        if isinstance(entry.meta, UnitMeta):  # most entries are units
            self._remember_ended(entry.meta)
            self._leave_ready(entry.meta.uow)
            if (opened := self.fold.open.get(entry.meta.uow)) is not None:
                self.open_deltas -= opened.held
            unit = self.fold.dispatch(tid, entry, entry.meta)
            self.targets.begin(unit)
            self._dispatched(entry.meta)
            self._wait_for(unit)
            return
        if isinstance(entry.meta, FragmentMeta) and entry.meta.uow not in self.fold.late:  # most of the others
            if entry.meta.end is not None:  # it may take the unit's number away
                self._leave_ready(entry.meta.uow)
            if entry.meta.fault is Fault.TOO_LARGE and (opened := self.open.get(entry.meta.uow)) is not None:
                self.open_deltas -= opened.held
            self._collected(self.fold.collect(tid, entry.meta, entry.touched, time_ms))
            self.open_deltas += entry.meta.count
            return
        self._remember_late(entry.meta)
        if isinstance(entry.meta, RefitMeta) and entry.meta.unit in self.units:
            self._forget(self.units[entry.meta.unit])
        late = self.failed(entry.meta.uow) if isinstance(entry.meta, FragmentMeta) else None
        before = late.memory if late is not None else 0
        for unit in self.fold.apply(tid, entry, time_ms):
            self._forget(unit)
            self.targets.forget(unit.tid)
        self.targets.fold(entry.meta, self.units, late)
        match entry.meta:
            case FragmentMeta() if late is not None:
                self.waiting_bytes += self.units[late.tid].memory - before
            case RefitMeta() as meta if meta.unit in self.units:
                self._wait_for(self.units[meta.unit])
            case SchemeMeta(scheme, tables):
                self.schemes[scheme] = Scheme.from_entry(tables)
            case StatusMeta() as meta:
                self._status(meta)
            case OperationMeta() as meta:
                self.operations.add(meta)
            case PositionMeta() as meta:
                self.positions[meta.shard] = meta.position
            case ControlMeta(what=what, since=int(since)) if what == SNAPSHOT:
                self.snapshot_id, self.snapshot_since = tid, since
                if len(self.schemes) > MOST_SCHEMES:
                    self.schemes = self.schemes_in_use()
            case ControlMeta(what=what, count=count, key=key, forget=forget) if what == NAMES:
                self.recent.move(count, key, forget)
            case ControlMeta(what=what, since=int(since), key=key) if what == STARTED:
                self._begin(key or "", since)
            case ControlMeta(what=what, key=str(key)) if what == LEASED:
                self.awaited.discard(key)
            case ControlMeta(what=what, key=key) if what == STREAM:
                if self.stream not in (None, key):
                    self.positions.clear()
                    self.started.clear()
                    self.awaited.clear()
                self.stream = key

    def _begin(self, stream: str, since: int) -> None:
        """Notes that shards of a stream are to be read; ``since`` is 0 where that is from their own beginning on."""
        if since:
            self.started[stream] = since
        if stream:
            self.awaited.add(stream)

    def _remember_ended(self, meta: UnitMeta) -> None:
        """Remembers the deltas of a unit that the watermark ends; called before the entry is folded."""
        if not meta.watermark or meta.arrived_ms is None or (unit := self.open.get(meta.uow)) is None:
            return
        due_ms = max(meta.arrived_ms, (meta.time or 0) // 1_000_000)
        self.ended.add(on_time_name(meta.uow), due_ms, (*ordinals_in(unit.ordinals), *unit.digests))
        if meta.time is not None and meta.fault is not Fault.LATE:
            self.latest_time = max(self.latest_time or (0, ""), (meta.time, meta.uow))

    def _remember_late(self, meta: Meta) -> None:
        """Remembers late deltas of a unit that the watermark has ended; called before the entry is folded."""
        match meta:
            case FragmentMeta(watermark=True, arrived_ms=int(arrived)) if self.failed(meta.uow) is not None:
                self.ended.add(on_time_name(meta.uow), arrived, (*meta.ordinals, *meta.digests))

    def _wait_for(self, unit: UnitState) -> None:
        """Indexes a unit that is not resolved."""
        self.waiting_bytes += unit.memory
        if unit.fault is _MISFIT:
            self.misfits[unit.tid] = None

    def restore_units(self, units: Iterable[UnitState]) -> None:
        """Takes the unresolved units of a snapshot."""
        for unit in units:
            self.fold.add(unit.copy())
            self._wait_for(unit)

    def lend_units(self) -> tuple[list[OpenUnit], list[UnitState]]:
        """Returns the open and the unresolved units, which later entries do not change (:meth:`UnitFold.lend`)."""
        return self.fold.lend(self.next_id)

    def take_units_back(self) -> None:
        """Notes that nobody looks any more at the units that were lent."""
        self.fold.take_back()

    def collecting(self, uow: str) -> UnitState | None:
        """Returns the failed unit to which parts that come late still belong; None when there is none."""
        unit = self.failed(uow)
        return unit if unit is not None and unit.collecting else None

    def failed(self, uow: str) -> UnitState | None:
        """Returns the unresolved unit ``uow`` if it failed before it was whole, also when it is whole now."""
        return self.fold.failed(uow)

    def late_units(self) -> Iterator[UnitState]:
        """Yields the unresolved units that failed before they were whole: entries behind theirs may belong to them."""
        return (self.units[tid] for tid in self.fold.late.values() if tid in self.units)

    def find(self, uow: str) -> UnitState | None:
        """Returns the unresolved unit called ``uow``; None when there is none."""
        return next((unit for unit in self.units.values() if unit.uow == uow), None)

    def schemes_in_use(self) -> dict[str, Scheme]:
        """Returns the schemes that an open or unresolved unit names."""
        named = {unit.touched.scheme for unit in self.open.values()} | {unit.scheme for unit in self.units.values()}
        return {name: scheme for name, scheme in self.schemes.items() if name in named}

    def _forget(self, unit: UnitState) -> None:
        """Takes a unit out of the indexes."""
        self.waiting_bytes -= unit.memory
        self.misfits.pop(unit.tid, None)

    def _collected(self, unit: OpenUnit) -> None:
        if unit.complete and unit.number is not None:
            self.ready.setdefault(unit.number, unit.uow)

    def _leave_ready(self, uow: str) -> None:
        """Takes a unit out of :attr:`ready`; called before an entry that dispatches it or changes its end is folded."""
        number = unit.number if (unit := self.fold.open.get(uow)) is not None else None
        if number is not None and self.ready.get(number) == uow:
            del self.ready[number]

    def _dispatched(self, meta: UnitMeta) -> None:
        self.recent.add(meta.uow, meta.number, real=meta.fault is not _MISSING_NUMBER)
        if meta.number is not None:
            self.next_number = max(self.next_number or 0, meta.number + 1)

    def _status(self, meta: StatusMeta) -> None:
        if meta.through is not None:
            self.through = max(self.through, meta.through)
        for request in meta.requests:
            self.answered[request] = None
        while len(self.answered) > ANSWERED_REQUESTS:
            del self.answered[next(iter(self.answered))]
