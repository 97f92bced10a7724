"""The fold of log entries into units of work: the only code that says what an entry does to a unit.

A unit's life::

    (nothing) ── FRAGMENT ──► open ── UNIT ──► in progress ──► committed
                                │                 │    ▲
                                └── UNIT with     ▼    │ retry
                                    a cause ──► failed ┴──► discarded
                                in progress ──► blocked ──► in progress

A unit that failed before all its deltas had come goes on collecting, as a failed unit (``UnitState.late``): FRAGMENT
entries behind its UNIT entry add to its deltas, and their signatures to what it holds back. Its place in the order
stays that of its UNIT entry.

=================  ==========================================================================
entry              effect on the unit
=================  ==========================================================================
FRAGMENT           opens the unit, or adds deltas, causes and its end to the open unit, or to the failed
                   one that still collects
UNIT               dispatches the unit: as failed when the entry has a cause, else in progress
STATUS             sets status and cause; the job instance stays when an outcome names none.
                   IN_PROGRESS after FAILED is a retry. COMMITTED and DISCARDED resolve the unit
REFIT              replaces the failed unit's deltas, signatures, tables and scheme; the unit is no misfit any more
others             none
=================  ==========================================================================

The fold may begin anywhere in a log, for example at the low-water mark of a truncated log. A unit whose
first fragments are truncated then lacks their deltas, signatures and causes while it is open; its UNIT
entry repeats everything but the data. Outcomes of units that the fold has not seen have no effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache

from kainite.base.value_class import value_class
from kainite.log.format.entry import Entry, Fault, FragmentMeta, Outcome, RefitMeta, StatusMeta, UnitMeta, UnitStatus
from kainite.uow.delta import UnitKind
from kainite.uow.identity import Identity, split_digests
from kainite.uow.scheme import merged

RESOLVED = (UnitStatus.COMMITTED, UnitStatus.DISCARDED)
"""The statuses of a unit that nobody will apply any more."""

UNIT_BYTES = 1_200
"""About what an unresolved unit takes in memory beside its signatures: its state, its name, its places in indexes."""

SIGNATURE_BYTES = 150
"""About what a signature of an unresolved unit takes in memory: in the unit's set, and in the index of conflicts."""

IDENTITY_BYTES = 100
"""About what the identity of a delta takes in memory, of a failed unit that still collects."""


@dataclass(slots=True)
class OpenUnit:
    """A unit whose deltas or end are still to come.

    Attributes:
        uow: the unit's name.
        opened_ms: when its first fragment was appended, in milliseconds since the epoch.
        fragments: transaction ids of its FRAGMENT entries.
        shards: the shards that its deltas came through, each once, in order of appearance.
        count: how many deltas have come.
        ordinals: the ordinals of the deltas that have one.
        written, read: signatures so far.
        end_count: how many deltas its end announced; None before the end has come.
        number, kind: from its end.
        causes: why the unit will fail.
        offending: the emitted line that was no delta.
        digests: the identities of the deltas without an ordinal.
        repeated: how many deltas without an ordinal were dropped, because an equal one had come.
        misfits: why deltas that have come do not fit the target's catalogue.
        tables, unsigned, scheme: as in :class:`~kainite.log.format.entry.FragmentMeta`, of all deltas so far.
        given_up: why it was given up before its turn came; counts while it is not whole.
        time, arrived_ms: as in :class:`~kainite.log.format.entry.FragmentMeta`, the latest ones.
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
    digests: set[bytes] = field(default_factory=set)
    repeated: int = 0
    misfits: list[str] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    unsigned: set[str] = field(default_factory=set)
    scheme: str | None = None
    given_up: str | None = None
    time: int | None = None
    arrived_ms: int | None = None

    @property
    def whole(self) -> bool:
        """Tells whether the end and all deltas have come."""
        return self.end_count is not None and self.count >= self.end_count

    @property
    def sound(self) -> bool:
        """Tells whether the unit is whole, and nothing is wrong with it."""
        return self.whole and not (self.causes or self.misfits or self.given_up or self.offending)

    @property
    def complete(self) -> bool:
        """Tells whether the end has come, and either all deltas or a cause for which the unit fails anyway."""
        return self.whole or (self.end_count is not None and (bool(self.causes) or self.given_up is not None))

    @property
    def lacks(self) -> str | None:
        """Returns what keeps the unit from being whole and sound; None for nothing."""
        if self.end_count is None:
            return f"its end has not come; {self.count} deltas have"
        if not self.whole:
            return f"{self.count} of its {self.end_count} deltas have come"
        return "; ".join(self.causes) or None

    def copy(self) -> OpenUnit:
        """Returns a copy that further fragments do not change."""
        return replace(
            self,
            fragments=list(self.fragments),
            shards=list(self.shards),
            causes=list(self.causes),
            misfits=list(self.misfits),
            tables=set(self.tables),
            unsigned=set(self.unsigned),
            ordinals=set(self.ordinals),
            digests=set(self.digests),
            written=set(self.written),
            read=set(self.read),
        )

    def has(self, identity: Identity) -> bool:
        """Tells whether a delta with this identity has come."""
        return identity in (self.ordinals if isinstance(identity, int) else self.digests)

    def add(self, tid: int, entry: Entry, meta: FragmentMeta) -> None:
        """Adds a FRAGMENT entry of this unit."""
        self.fragments.append(tid)
        if meta.shard not in self.shards:
            self.shards.append(meta.shard)
        if meta.count:
            self.scheme = merged(self.scheme, meta.scheme) if self.count else meta.scheme
        self.count += meta.count
        self.ordinals.update(meta.ordinals)
        if meta.digests:
            self.digests.update(split_digests(meta.digests))
        self.repeated += meta.repeated
        self.written |= entry.written
        self.read |= entry.read
        if meta.fault is Fault.INCOMPLETE:
            self.given_up = "; ".join(meta.causes)
        else:
            self.causes.extend(meta.causes)
        self.misfits.extend(meta.misfits)
        self.tables.update(meta.tables)
        self.unsigned.update(meta.unsigned)
        self.offending = self.offending or meta.offending
        if meta.time is not None or meta.arrived_ms is not None:
            self.time, self.arrived_ms = latest(self.time, meta.time), latest(self.arrived_ms, meta.arrived_ms)
        if meta.end_count is not None:
            self.end_count, self.number, self.kind = meta.end_count, meta.number, meta.unit_kind


def latest(one: int | None, other: int | None) -> int | None:
    """Returns the later one of two times that may not be known."""
    return max((time for time in (one, other) if time is not None), default=None)


@value_class(frozen=True, slots=True)
class UnitState:
    """A dispatched unit. Immutable: a snapshot is written from a copy of the dictionary while the log goes on.

    Of a unit that still collects, what ``fragments``, ``written``, ``read``, ``shards`` and ``late`` refer to grows in
    place, so that late parts cost time linear in their deltas; a snapshot needs a :meth:`copy` of such a unit.

    Attributes:
        tid: the transaction id of its UNIT entry: its place in the order.
        attempt: how often it was retried.
        fault: why it was dispatched as failed; None for a unit that was sound when it was dispatched.
        late: what was collected of a unit that failed before it was whole, also once it is; else None.
        refit: the transaction id of the REFIT entry, which has all its deltas, once it was judged anew.
    """

    tid: int
    uow: str
    count: int
    kind: UnitKind
    status: UnitStatus
    fragments: Sequence[int] = ()
    written: AbstractSet[int] = frozenset()
    read: AbstractSet[int] = frozenset()
    shards: Sequence[str] = ()
    number: int | None = None
    conflict: int | None = None
    instance: int | None = None
    cause: str | None = None
    attempt: int = 0
    fault: Fault | None = None
    tables: tuple[str, ...] = ()
    unsigned: tuple[str, ...] = ()
    scheme: str | None = None
    refit: int | None = None
    late: OpenUnit | None = None

    @classmethod
    def dispatched(cls, tid: int, entry: Entry, meta: UnitMeta, opened: OpenUnit | None = None) -> UnitState:
        """Returns the state of a unit right after its UNIT entry.

        Args:
            tid: the entry's transaction id.
            entry: the entry.
            meta: the entry's.
            opened: the unit as it was collected so far; None when all of it is in the entry, or was truncated.
        """
        unit = cls(
            tid,
            meta.uow,
            meta.count,
            meta.kind,
            UnitStatus.FAILED if meta.cause else UnitStatus.IN_PROGRESS,
            meta.fragments,
            entry.written,
            entry.read,
            meta.shards,
            meta.number,
            meta.conflict,
            cause=meta.cause,
            fault=meta.fault,
            tables=shared_tables(meta.tables),
            unsigned=meta.unsigned,
            scheme=meta.scheme,
        )
        if meta.fault is not None and opened is not None and _lacks_parts(meta, opened):
            if unit.fault is not Fault.MALFORMED:
                opened.causes = []  # they are told; from here on only what is wrong with late parts counts
            return unit.growing(opened)
        return unit

    def growing(self, late: OpenUnit) -> UnitState:
        """Returns the unit as one that goes on collecting where ``late`` is, without changing what this one has."""
        return replace(
            self,
            fragments=list(self.fragments),
            written=set(self.written),
            read=set(self.read),
            shards=list(self.shards),
            late=late,
        )

    def copy(self) -> UnitState:
        """Returns a copy that parts that come late do not change."""
        return self if self.late is None else self.growing(self.late.copy())

    @property
    def collecting(self) -> bool:
        """Tells whether parts that come late still belong to the unit."""
        return self.late is not None and not self.late.whole

    @property
    def malformed(self) -> bool:
        """Tells whether no retry can ever apply the unit."""
        return self.fault in (Fault.MALFORMED, Fault.MISSING_NUMBER)

    @property
    def obstacle(self) -> str | None:
        """Returns why a retry cannot apply the unit now; None when it can, or when nothing was wrong at dispatch."""
        if self.malformed:
            return self.cause
        if self.fault is Fault.LATE and self.late is not None:
            return "; ".join(self.late.causes) or None
        return self.late.lacks if self.late is not None else None

    def with_late(self, tid: int, entry: Entry, meta: FragmentMeta) -> UnitState:
        """Returns the unit with a FRAGMENT entry that came after the unit had failed; this one is not used any more."""
        assert self.late is not None
        assert isinstance(self.fragments, list)
        assert isinstance(self.shards, list)
        assert isinstance(self.written, set)
        assert isinstance(self.read, set)
        self.late.add(tid, entry, meta)
        self.fragments.append(tid)
        if meta.shard not in self.shards:
            self.shards.append(meta.shard)
        self.written.update(entry.written)
        self.read.update(entry.read)
        has_end = meta.end_count is not None
        return replace(
            self,
            count=self.count + meta.count,
            number=meta.number if has_end else self.number,
            kind=meta.unit_kind if has_end else self.kind,
            tables=shared_tables(tuple(sorted({*self.tables, *meta.tables}))),
            unsigned=tuple(sorted({*self.unsigned, *meta.unsigned})),
            scheme=self._scheme_with(meta),
        )

    def _scheme_with(self, meta: FragmentMeta) -> str | None:
        if not meta.count:
            return self.scheme
        return merged(self.scheme, meta.scheme) if self.count else meta.scheme

    @property
    def first_tid(self) -> int:
        """Returns the lowest transaction id that holds any of the unit's data."""
        return min(self.fragments[0], self.tid) if self.fragments else self.tid

    @property
    def entries(self) -> tuple[int, ...]:
        """Returns the transaction ids of the entries that hold the unit's deltas, in order."""
        return (*self.fragments, self.tid) if self.refit is None else (self.refit,)

    @property
    def resolved(self) -> bool:
        """Tells whether the unit is committed or discarded."""
        return self.status in RESOLVED

    @property
    def memory(self) -> int:
        """Returns about how many bytes of memory the unit takes while it is unresolved."""
        identities = 0 if self.late is None else len(self.late.ordinals) + len(self.late.digests)
        return (
            UNIT_BYTES
            + SIGNATURE_BYTES * (len(self.written) + len(self.read))
            + 40 * len(self.fragments)
            + IDENTITY_BYTES * identities
        )

    def settled(self, outcome: Outcome) -> UnitState:
        """Returns the unit after an outcome of it."""
        retried = outcome.status is UnitStatus.IN_PROGRESS and self.status is UnitStatus.FAILED
        return replace(
            self,
            status=outcome.status,
            cause=outcome.cause,
            attempt=self.attempt + retried,
            instance=self.instance if outcome.instance is None else outcome.instance,
        )

    def judged_anew(self, tid: int, entry: Entry, meta: RefitMeta) -> UnitState:
        """Returns the unit after its REFIT entry ``tid``."""
        return replace(
            self,
            refit=tid,
            fault=None,
            late=None,
            unsigned=(),
            count=meta.count,
            tables=shared_tables(meta.tables),
            scheme=meta.scheme,
            written=entry.written,
            read=entry.read,
        )


def _lacks_parts(meta: UnitMeta, opened: OpenUnit) -> bool:
    """Returns whether a failed unit lacked parts when it was dispatched.

    Such a unit has all its deltas, and its end if that has come, in FRAGMENT entries. What a UNIT entry brings itself
    makes its unit whole, and is not in ``opened``. What is late has no end, and never lacks nothing.
    """
    if meta.fault is Fault.LATE:
        return True
    brings = meta.count > opened.count or (opened.end_count is None and meta.fault is not Fault.INCOMPLETE)
    return not (opened.whole or brings)


@lru_cache(maxsize=1024)
def shared_tables(tables: tuple[str, ...]) -> tuple[str, ...]:
    """Returns one tuple for all units that touch the same tables: a backlog may have a million of them."""
    return tables


class UnitFold:
    """The units that a run of entries adds up to.

    Args:
        keep_resolved: keep committed and discarded units (a view of the whole log) instead of
            forgetting them (what remains to be done).

    Attributes:
        open: units that are being collected, by name, oldest first.
        units: dispatched units by transaction id, in order. A unit is in ``open`` or in ``units``, never in both.
        late: the transaction ids of unresolved units that failed before they were whole, by name.
        statuses: how many of ``units`` have each status.
    """

    def __init__(self, *, keep_resolved: bool = False) -> None:
        self.open: dict[str, OpenUnit] = {}
        self.units: dict[int, UnitState] = {}
        self.late: dict[str, int] = {}
        self.statuses: Counter[UnitStatus] = Counter()
        self._keep_resolved = keep_resolved

    def apply(self, tid: int, entry: Entry, time_ms: int) -> list[UnitState]:
        """Applies one entry.

        Args:
            tid: the entry's transaction id; higher than that of every entry before.
            entry: the entry; its data is not looked at.
            time_ms: when the entry's batch was formed, in milliseconds since the epoch.

        Returns:
            The units that the entry resolved, as they were before.
        """
        match entry.meta:
            case UnitMeta() as meta:
                self.dispatch(tid, entry, meta)
            case FragmentMeta(uow=uow) as meta if uow in self.late:
                failed = self.units[self.late[uow]]
                self.units[failed.tid] = failed.with_late(tid, entry, meta)
            case FragmentMeta() as meta:
                self.collect(tid, entry, meta, time_ms)
            case RefitMeta() as meta if meta.unit in self.units:
                self.late.pop(meta.uow, None)
                self.units[meta.unit] = self.units[meta.unit].judged_anew(tid, entry, meta)
            case StatusMeta(outcomes=outcomes):
                return [unit for outcome in outcomes for unit in self._settle(outcome)]
        return []

    def collect(self, tid: int, entry: Entry, meta: FragmentMeta, time_ms: int) -> OpenUnit:
        """Applies a FRAGMENT entry of a unit that is not in :attr:`late`; returns the unit."""
        unit = self.open.get(meta.uow)
        if unit is None:
            unit = self.open[meta.uow] = OpenUnit(meta.uow, time_ms)
        unit.add(tid, entry, meta)
        return unit

    def dispatch(self, tid: int, entry: Entry, meta: UnitMeta) -> UnitState:
        """Applies a UNIT entry; returns the unit."""
        unit = UnitState.dispatched(tid, entry, meta, self.open.pop(meta.uow, None))
        self.add(unit)
        return unit

    def add(self, unit: UnitState) -> None:
        """Adds a dispatched unit."""
        self.units[unit.tid] = unit
        self.statuses[unit.status] += 1
        if unit.late is not None:
            self.late[unit.uow] = unit.tid

    def _settle(self, outcome: Outcome) -> Iterator[UnitState]:
        """Yields the unit if the outcome resolves it."""
        unit = self.units.get(outcome.tid)
        if unit is None:
            return
        self.statuses[unit.status] -= 1
        resolved = outcome.status in RESOLVED
        if resolved and not self._keep_resolved:  # nearly all: nobody asks any more what it has become
            del self.units[outcome.tid]
        else:
            self.units[outcome.tid] = unit.settled(outcome)
            self.statuses[outcome.status] += 1
        if resolved:
            if unit.late is not None:
                self.late.pop(unit.uow, None)
            yield unit
