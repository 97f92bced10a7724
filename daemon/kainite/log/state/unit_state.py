"""A dispatched unit of work: its UNIT entry, and the effects of later entries on the unit."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec

from kainite.log.format.entry import Fault, FragmentMeta, Natural, Outcome, RefitMeta, UnitMeta, UnitStatus
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.ordinal_pages import PAGE_BYTES
from kainite.uow.delta import UnitKind
from kainite.uow.touches import NOTHING, Touched, TouchedSoFar

RESOLVED = (UnitStatus.COMMITTED, UnitStatus.DISCARDED)
"""The statuses of a unit that nobody will apply any more."""

# Looking a member up in its enum takes Python 3.11 0.1 µs.
_IN_PROGRESS = UnitStatus.IN_PROGRESS

UNIT_BYTES = 1_200
"""About how many bytes an unresolved unit takes besides its signatures: its state, its name, its places in indexes."""

SIGNATURE_BYTES = 150
"""About how many bytes a signature of an unresolved unit takes, in the unit's set and in a reader's index."""

DIGEST_BYTES = 100
"""About how many bytes the identity of a delta without an ordinal takes, in a unit that collects."""


class UnitState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A dispatched unit. Immutable: a snapshot is written from a copy of the dictionary while the log goes on.

    ``late`` of a unit that still collects grows in place, so that late parts cost time linear in their deltas; a
    snapshot needs a :meth:`copy` of such a unit.

    Attributes:
        tid: the transaction id of its UNIT entry: its place in the order.
        meta: the meta of its UNIT entry, with its present ``count``, ``number``, ``kind`` and ``fault``.
        status: the unit's status.
        own: the rows and tables that its deltas touch; not used for a unit with ``late``.
        cause: why the unit failed, which unit it waits for, or who decided.
        instance: the job instance that tried the unit last.
        attempt: how often the unit was retried.
        refit: the transaction id of the REFIT entry, which has all its deltas, once it was judged anew.
        late: of a unit that failed before it was whole, also once it is whole: all that was collected of it.
    """

    tid: Natural
    meta: UnitMeta
    status: UnitStatus = UnitStatus.IN_PROGRESS
    own: Touched = NOTHING
    cause: str | None = None
    instance: int | None = None
    attempt: Natural = 0
    refit: int | None = None
    late: OpenUnit | None = None

    @classmethod
    def dispatched(cls, tid: int, meta: UnitMeta, touched: Touched, opened: OpenUnit | None = None) -> UnitState:
        """Returns the state of a unit right after its UNIT entry.

        Args:
            tid: the entry's transaction id.
            meta: the entry's meta.
            touched: the rows and tables that the entry touches.
            opened: the unit as it was collected so far; None when the entry has the whole unit, or the log has
                truncated its earlier parts.
        """
        if not meta.cause:
            return cls(tid, meta, _IN_PROGRESS, touched)
        if opened is None or not _lacks_parts(meta, opened):
            return cls(tid, meta, UnitStatus.FAILED, touched, meta.cause)
        if meta.fault is not Fault.MALFORMED:
            opened.causes = []  # the UNIT entry has these causes; from here on only the causes of late parts count
        # The entry repeats all but the data: the log may be folded from behind the unit's first fragments.
        opened.fragments, opened.shards = list(meta.fragments), list(meta.shards)
        opened.touched = TouchedSoFar.of(touched)
        return cls(tid, meta, UnitStatus.FAILED, NOTHING, meta.cause, late=opened)

    @property
    def uow(self) -> str:
        """Returns the unit's name."""
        return self.meta.uow

    @property
    def count(self) -> int:
        """Returns how many deltas the unit has."""
        return self.meta.count

    @property
    def kind(self) -> UnitKind:
        return self.meta.kind

    @property
    def number(self) -> int | None:
        """Returns the source's own dense number."""
        return self.meta.number

    @property
    def fault(self) -> Fault | None:
        """Returns why the unit was dispatched as failed; None if it was sound then, or was judged again since."""
        return self.meta.fault

    @property
    def fragments(self) -> Sequence[int]:
        """Returns the transaction ids of its FRAGMENT entries, in order."""
        return self.meta.fragments if self.late is None else self.late.fragments

    @property
    def shards(self) -> Sequence[str]:
        """Returns the shards that its deltas came through."""
        return self.meta.shards if self.late is None else self.late.shards

    @property
    def written(self) -> AbstractSet[int]:
        """Returns the signatures that it writes; of a unit that still collects they grow."""
        return self.own.written if self.late is None else self.late.touched.written

    @property
    def read(self) -> AbstractSet[int]:
        """Returns the signatures that it reads; of a unit that still collects they grow."""
        return self.own.read if self.late is None else self.late.touched.read

    @property
    def tables(self) -> tuple[str, ...]:
        """Returns the tables that it touches."""
        return self.own.tables if self.late is None else tuple(sorted(self.late.touched.tables))

    @property
    def unsigned(self) -> tuple[str, ...]:
        """Returns the tables in :attr:`tables` with a delta whose row is not known."""
        return self.own.unsigned if self.late is None else tuple(sorted(self.late.touched.unsigned))

    @property
    def scheme(self) -> str | None:
        """Returns the id of the scheme of its signatures."""
        return self.own.scheme if self.late is None else self.late.touched.scheme

    @property
    def collecting(self) -> bool:
        """Tells whether parts that come late still belong to the unit."""
        return self.late is not None and not self.late.whole

    @property
    def heard_ms(self) -> int | None:
        """Returns when its latest record arrived, or else when the source committed it; None where nothing tells."""
        meta = self.meta
        return meta.arrived_ms if meta.arrived_ms is not None else None if meta.time is None else meta.time // 1_000_000

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

    @property
    def first_tid(self) -> int:
        """Returns the lowest transaction id that holds any of the unit's data."""
        fragments = self.fragments
        return min(fragments[0], self.tid) if fragments else self.tid

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
        if (late := self.late) is None:
            return UNIT_BYTES + SIGNATURE_BYTES * self.own.size + 40 * len(self.meta.fragments)
        identities = PAGE_BYTES * len(late.ordinals) + DIGEST_BYTES * len(late.digests)
        return UNIT_BYTES + SIGNATURE_BYTES * late.touched.size + 40 * len(late.fragments) + identities

    def copy(self) -> UnitState:
        """Returns a copy, which late parts do not change."""
        return self if self.late is None else msgspec.structs.replace(self, late=self.late.copy())

    def with_late(self, tid: int, meta: FragmentMeta, touched: Touched) -> UnitState:
        """Returns the unit with a FRAGMENT entry that came after the unit had failed; this one is not used any more."""
        assert self.late is not None
        self.late.add(tid, meta, touched)
        number, kind = self.number, self.kind
        if meta.end is not None:
            number, kind = meta.end.number, meta.end.kind
        grown = msgspec.structs.replace(self.meta, count=self.count + meta.count, number=number, kind=kind)
        return msgspec.structs.replace(self, meta=grown)

    def settled(self, outcome: Outcome) -> UnitState:
        """Returns the unit after an outcome of it.

        What an apply job found before it read that the unit is to be discarded changes nothing, unless it resolves the
        unit.
        """
        if self.status is UnitStatus.DISCARDING and outcome.status not in RESOLVED:
            return self
        retried = outcome.status is UnitStatus.IN_PROGRESS and self.status is UnitStatus.FAILED
        return msgspec.structs.replace(
            self,
            status=outcome.status,
            cause=outcome.cause,
            attempt=self.attempt + retried,
            instance=self.instance if outcome.instance is None else outcome.instance,
        )

    def judged_anew(self, tid: int, meta: RefitMeta, touched: Touched) -> UnitState:
        """Returns the unit after its REFIT entry ``tid``."""
        now = msgspec.structs.replace(
            self.meta, count=meta.count, fault=None, fragments=tuple(self.fragments), shards=tuple(self.shards)
        )
        return msgspec.structs.replace(self, meta=now, own=touched, refit=tid, late=None)


def _lacks_parts(meta: UnitMeta, opened: OpenUnit) -> bool:
    """Returns whether a failed unit lacked parts when it was dispatched.

    Such a unit has all its deltas, and its end if that has come, in FRAGMENT entries. Deltas in the UNIT entry itself
    make the unit whole, and are not in ``opened``. A late unit has no end, so it always lacks a part.
    """
    if meta.fault is Fault.LATE:
        return True
    brings = meta.count > opened.count or (opened.end is None and meta.fault is not Fault.INCOMPLETE)
    return not (opened.whole or brings)
