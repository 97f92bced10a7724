"""The fold of log entries into units of work: the only code that says what an entry does to a unit.

A unit's life::

    (nothing) ── FRAGMENT ──► open ── UNIT ──► in progress ──► committed
                                │                 │    ▲
                                └── UNIT with     ▼    │ retry
                                    a cause ──► failed ┴──► discarded
                                in progress ──► blocked ──► in progress

=================  ==========================================================================
entry              effect on the unit
=================  ==========================================================================
FRAGMENT           opens the unit, or adds deltas, causes and its end to the open unit
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

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from kainite.log.format.entry import Entry, Fault, FragmentMeta, Outcome, RefitMeta, StatusMeta, UnitMeta, UnitStatus
from kainite.uow.delta import UnitKind
from kainite.uow.identity import Identity, split_digests
from kainite.uow.scheme import merged

UNIT_BYTES = 1_200
"""About what an unresolved unit takes in memory beside its signatures: its state, its name, its places in indexes."""

SIGNATURE_BYTES = 150
"""About what a signature of an unresolved unit takes in memory: in the unit's set, and in the index of conflicts."""


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

    @property
    def complete(self) -> bool:
        """Tells whether the end has come, and either all deltas or a cause for which the unit fails anyway."""
        return self.end_count is not None and (bool(self.causes) or self.count >= self.end_count)

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
        self.digests.update(split_digests(meta.digests))
        self.repeated += meta.repeated
        self.written |= entry.written
        self.read |= entry.read
        self.causes.extend(meta.causes)
        self.misfits.extend(meta.misfits)
        self.tables.update(meta.tables)
        self.unsigned.update(meta.unsigned)
        self.offending = self.offending or meta.offending
        if meta.end_count is not None:
            self.end_count, self.number, self.kind = meta.end_count, meta.number, meta.unit_kind


@dataclass(frozen=True, slots=True)
class UnitState:
    """A dispatched unit; ``attempt`` counts its retries. Immutable, so that a snapshot may be written from a copy of
    the dictionary while the log goes on.

    ``malformed`` is set when the unit was dispatched as failed, and no retry can apply it. ``fault`` is the kind of the
    cause with which it was dispatched, if the log says it; a misfit can be applied once it was judged anew, and
    ``refit`` is then the transaction id of the REFIT entry, which has all its deltas.
    """

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
    fault: Fault | None = None
    tables: tuple[str, ...] = ()
    unsigned: tuple[str, ...] = ()
    scheme: str | None = None
    refit: int | None = None

    @classmethod
    def dispatched(cls, tid: int, entry: Entry, meta: UnitMeta) -> UnitState:
        """Returns the state of a unit right after its UNIT entry."""
        return cls(
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
            malformed=meta.cause is not None and meta.fault is not Fault.MISFIT,
            fault=meta.fault,
            tables=shared_tables(meta.tables),
            unsigned=meta.unsigned,
            scheme=meta.scheme,
        )

    @property
    def first_tid(self) -> int:
        """Returns the lowest transaction id that holds any of the unit's data."""
        return self.fragments[0] if self.fragments else self.tid

    @property
    def entries(self) -> tuple[int, ...]:
        """Returns the transaction ids of the entries that hold the unit's deltas, in order."""
        return (*self.fragments, self.tid) if self.refit is None else (self.refit,)

    @property
    def resolved(self) -> bool:
        """Tells whether the unit is committed or discarded."""
        return self.status in (UnitStatus.COMMITTED, UnitStatus.DISCARDED)

    @property
    def memory(self) -> int:
        """Returns about how many bytes of memory the unit takes while it is unresolved."""
        return UNIT_BYTES + SIGNATURE_BYTES * (len(self.written) + len(self.read)) + 40 * len(self.fragments)

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
            unsigned=(),
            count=meta.count,
            tables=shared_tables(meta.tables),
            scheme=meta.scheme,
            written=entry.written,
            read=entry.read,
        )


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
    """

    def __init__(self, *, keep_resolved: bool = False) -> None:
        self.open: dict[str, OpenUnit] = {}
        self.units: dict[int, UnitState] = {}
        self._keep_resolved = keep_resolved

    def apply(self, tid: int, entry: Entry, time_ms: int) -> list[UnitState]:
        """Applies one entry.

        Args:
            tid: the entry's transaction id; higher than that of every entry before.
            entry: the entry; its data is not looked at.
            time_ms: when the entry's batch was formed, in milliseconds since the epoch.

        Returns:
            The units that the entry resolved.
        """
        match entry.meta:
            case FragmentMeta() as meta:
                self.open.setdefault(meta.uow, OpenUnit(meta.uow, time_ms)).add(tid, entry, meta)
            case UnitMeta() as meta:
                self.open.pop(meta.uow, None)
                self.units[tid] = UnitState.dispatched(tid, entry, meta)
            case RefitMeta() as meta if meta.unit in self.units:
                self.units[meta.unit] = self.units[meta.unit].judged_anew(tid, entry, meta)
            case StatusMeta(outcomes=outcomes):
                return [unit for outcome in outcomes for unit in self._settle(outcome)]
        return []

    def _settle(self, outcome: Outcome) -> Iterator[UnitState]:
        """Yields the unit if the outcome resolves it."""
        unit = self.units.get(outcome.tid)
        if unit is None:
            return
        unit = self.units[outcome.tid] = unit.settled(outcome)
        if unit.resolved:
            if not self._keep_resolved:
                del self.units[outcome.tid]
            yield unit
