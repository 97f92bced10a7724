"""The state of a serialization log as far as an apply job needs it: units, schemes, what people did.

:class:`FollowedLog` folds the same entries as :class:`~kainite.log.state.folded.FoldedLog`, by the same fold of units
(:mod:`kainite.log.state.units`). It leaves out what only the log's owner asks for: the names of dispatched units,
turns, positions, bounds.

Most units that come in parts have one part before their UNIT entry, and the entry of a unit without a cause says again
all that was folded of it. So a unit's first part is only noted, where it is small, and folded when a second one comes
or when the unit has a cause. That halves what the fold of such a unit costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kainite.log.format.entry import Entry, FragmentMeta, OperationMeta, SchemeMeta, StatusMeta, UnitMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.operations import DoneOperations
from kainite.log.state.target_parts import TargetParts
from kainite.log.state.unit_state import UnitState
from kainite.log.state.units import UnitFold
from kainite.uow.scheme import Scheme
from kainite.uow.touches import Touched

NOTED: Final = 100
"""The most deltas of a part that is only noted: a note of more would take more memory than the unit."""


class _Part(NamedTuple):
    """The arguments with which a FRAGMENT entry is folded."""

    tid: int
    meta: FragmentMeta
    touched: Touched
    time_ms: int


class FollowedLog:
    """The folded log of a follower.

    Args:
        state: the state to begin with; nobody else uses it any more.

    Attributes:
        next_id: the transaction id of the next entry.
        through: the owner has copied the outcomes partition up to this id.
        schemes: every scheme that was noted.
        operations: what people did, and whether applying is paused.
        targets: what each of several targets has of the units.
    """

    def __init__(self, state: FoldedLog | None = None) -> None:
        state = state or FoldedLog()
        self._fold: UnitFold = state.fold
        self._noted: dict[str, _Part] = {}  # of units that are not open in the fold
        self.next_id = state.next_id
        self.through = state.through
        self.schemes: dict[str, Scheme] = state.schemes
        self.operations: DoneOperations = state.operations
        self.targets: TargetParts = state.targets

    @property
    def units(self) -> Mapping[int, UnitState]:
        """Returns the dispatched units that are not resolved, by transaction id."""
        return self._fold.units

    def failed(self, uow: str) -> UnitState | None:
        """Returns the unresolved unit ``uow`` if it failed before it was whole, also when it is whole now."""
        return self._fold.failed(uow)

    def apply(self, tid: int, entry: Entry, time_ms: int) -> None:
        """Applies one entry; arguments and errors as of :meth:`FoldedLog.apply`."""
        if tid != self.next_id:
            raise ValueError(f"entry {tid} folded where {self.next_id} is next")
        self.next_id += 1
        meta = entry.meta
        if isinstance(meta, UnitMeta):  # most entries are units
            noted = self._noted.pop(meta.uow, None)
            if noted is not None and meta.cause:
                self._fold.collect(*noted)
            self.targets.begin(self._fold.dispatch(tid, entry, meta))
            return
        if isinstance(meta, FragmentMeta) and meta.uow not in self._fold.late:  # most of the others
            self._collect(_Part(tid, meta, entry.touched, time_ms))
            return
        late = self.failed(meta.uow) if isinstance(meta, FragmentMeta) else None
        for unit in self._fold.apply(tid, entry, time_ms):
            self.targets.forget(unit.tid)
        self.targets.fold(meta, self.units, late)
        match meta:
            case SchemeMeta(scheme, tables):
                self.schemes[scheme] = Scheme.from_entry(tables)
            case StatusMeta(through=int(through)):
                self.through = max(self.through, through)
            case OperationMeta():
                self.operations.add(meta)

    def _collect(self, part: _Part) -> None:
        """Notes a unit's first part, where it is small; else folds it, behind the one that is noted."""
        uow = part.meta.uow
        first = self._noted.pop(uow, None)
        if first is not None:
            self._fold.collect(*first)
        elif uow not in self._fold.open and part.meta.count <= NOTED:
            self._noted[uow] = part
            return
        self._fold.collect(*part)
