"""A unit of work whose deltas or end are still to come: the result of folding its FRAGMENT entries."""

from __future__ import annotations

from typing import Final

import msgspec

from kainite.base.words import counted
from kainite.log.format.entry import Digest, Fault, FragmentMeta, Natural
from kainite.log.state.ordinal_pages import OrdinalPages, add_ordinals, has_ordinal
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.identity import Identity
from kainite.uow.touches import Touched, TouchedSoFar

MOST_CAUSES: Final = 100
"""The most causes, and the most misfits, that an open unit keeps: people read the first, and each was logged."""


class OpenUnit(msgspec.Struct, array_like=True, gc=False):
    """A unit whose deltas or end are still to come.

    Attributes:
        uow: the unit's name.
        opened_ms: when its first fragment was appended, in milliseconds since the epoch.
        fragments: transaction ids of its FRAGMENT entries.
        shards: the shards that its deltas came through, each once, in order of appearance.
        count: how many deltas have come.
        ordinals: the ordinals of the deltas that have one.
        touched: the rows and tables that the deltas touch.
        end: the unit's end; None before the end has come.
        causes: why the unit will fail; the first :data:`MOST_CAUSES`.
        offending: the emitted line that was no delta.
        digests: the identities of the deltas without an ordinal.
        repeated: how many deltas without an ordinal were dropped, because an equal one had come.
        misfits: why deltas that have come do not fit the target's catalogue; the first :data:`MOST_CAUSES`.
        given_up: why the unit was given up before its turn came; this cause counts while the unit is not whole.
        time, arrived_ms: the latest ones that decide when the unit ends
            (:class:`~kainite.log.format.entry.FragmentMeta`); None where the watermark does not end it.
        too_large: whether the unit is larger than the log takes (:mod:`kainite.log.collecting.too_large`): its
            identities and signatures are not held any more, and deltas that come are not counted.
    """

    uow: str
    opened_ms: int
    fragments: list[Natural] = []
    shards: list[str] = []
    count: Natural = 0
    ordinals: OrdinalPages = {}
    touched: TouchedSoFar = msgspec.field(default_factory=TouchedSoFar)
    end: UnitEnd | None = None
    causes: list[str] = []
    offending: str | None = None
    digests: set[Digest] = set()
    repeated: Natural = 0
    misfits: list[str] = []
    given_up: str | None = None
    time: int | None = None
    arrived_ms: int | None = None
    too_large: bool = False

    @property
    def number(self) -> int | None:
        """Returns the number in the unit's end."""
        return None if self.end is None else self.end.number

    @property
    def kind(self) -> UnitKind:
        """Returns the kind in the unit's end; NORMAL before the end has come."""
        return UnitKind.NORMAL if self.end is None else self.end.kind

    @property
    def whole(self) -> bool:
        """Tells whether the end and all deltas have come."""
        return self.end is not None and self.count >= self.end.count

    @property
    def complete(self) -> bool:
        """Tells whether the end has come, and either all deltas or a cause for which the unit fails anyway."""
        return self.whole or (self.end is not None and (bool(self.causes) or self.given_up is not None))

    @property
    def held(self) -> int:
        """Returns how many deltas there are of which the identity is held."""
        return 0 if self.too_large else self.count

    @property
    def lacks(self) -> str | None:
        """Returns the reason why the unit is not whole, or not sound; None for a whole and sound unit."""
        if self.end is None:
            return f"its end has not come; {counted(self.count, 'delta')} {'has' if self.count == 1 else 'have'}"
        if not self.whole:
            have = "has" if self.end.count == 1 else "have"
            return f"{self.count} of its {counted(self.end.count, 'delta')} {have} come"
        return "; ".join(self.causes) or None

    def copy(self) -> OpenUnit:
        """Returns a copy that further fragments do not change."""
        return msgspec.structs.replace(
            self,
            fragments=list(self.fragments),
            shards=list(self.shards),
            causes=list(self.causes),
            misfits=list(self.misfits),
            ordinals=dict(self.ordinals),
            digests=set(self.digests),
            touched=self.touched.copy(),
        )

    def has(self, identity: Identity) -> bool:
        """Tells whether a delta with this identity has come."""
        return has_ordinal(self.ordinals, identity) if isinstance(identity, int) else identity in self.digests

    def add(self, tid: int, meta: FragmentMeta, touched: Touched) -> None:
        """Adds a FRAGMENT entry of this unit."""
        if not self.too_large or not self.fragments:
            self.fragments.append(tid)
        if meta.shard not in self.shards:
            self.shards.append(meta.shard)
        self.touched.add(touched, meta.count, self.count)
        self.count += meta.count
        add_ordinals(self.ordinals, meta.ordinals)
        if meta.digests:
            self.digests.update(meta.digests)
        self.repeated += meta.repeated
        if meta.fault is Fault.INCOMPLETE:
            self.given_up = "; ".join(meta.causes)
        elif meta.causes:
            self.causes.extend(meta.causes[: MOST_CAUSES - len(self.causes)])
        if meta.misfits:
            self.misfits.extend(meta.misfits[: MOST_CAUSES - len(self.misfits)])
        self.offending = self.offending or meta.offending
        if meta.watermark:
            self.time, self.arrived_ms = latest(self.time, meta.time), latest(self.arrived_ms, meta.arrived_ms)
        if meta.end is not None:
            self.end = meta.end
        if meta.fault is Fault.TOO_LARGE:
            self._let_go()

    def _let_go(self) -> None:
        """Lets go of what grows with the deltas."""
        self.too_large = True
        self.ordinals, self.digests = {}, set()
        self.touched.blur()


def latest(one: int | None, other: int | None) -> int | None:
    """Returns the later one of two times, each of which may be unknown."""
    return max((time for time in (one, other) if time is not None), default=None)
