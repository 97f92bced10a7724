"""What each of several targets has of the units that are followed (:mod:`kainite.log.views.followed_units`).

The parts of units (:mod:`kainite.log.state.target_parts`) are not in the log's index from the low-water mark on alone:
the entry that says which tables belong to which target may be truncated. So they begin as the log's latest snapshot
and what stands behind it have them, and follow the entries from there on. The parts of a unit that was resolved before
are not known; those of one that is resolved later are kept as long as the unit.

=====================================  =================================================================================
what happens                           effect
=====================================  =================================================================================
the reading of the units begins anew   the parts do, too
a target's outcomes are not copied     they are laid over the parts of the units that they are about; the parts that
                                       follow the log stay as they are
the file names other targets than the  the targets of the log are shown; outcomes that are not copied are read of the
log                                    file's targets
=====================================  =================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kainite.log.contract import LogStore
from kainite.log.format.entry import Entry, FragmentMeta, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.loading import load_state
from kainite.log.state.target_parts import TargetPart, TargetParts
from kainite.log.state.unit_state import RESOLVED, UnitState
from kainite.log.state.units import UnitFold


@dataclass(slots=True)
class TargetStanding:
    """How one target stands.

    Attributes:
        name: its name.
        mark: the id below which every unit is resolved there.
        first: the first unit that is not resolved there; None where all are.
        statuses: how many units that are not resolved there have each status there.
    """

    name: str
    mark: int
    first: UnitState | None = None
    statuses: dict[str, int] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """Returns how many units are not resolved there."""
        return sum(self.statuses.values())

    @property
    def failed(self) -> int:
        return self.statuses.get(UnitStatus.FAILED, 0)

    @property
    def blocked(self) -> int:
        return self.statuses.get(UnitStatus.BLOCKED, 0)


class FollowedParts:
    """The parts of units, which follow a log's entries and the targets' outcomes.

    Args:
        store, partition: the log.
    """

    def __init__(self, store: LogStore, partition: str) -> None:
        self._store = store
        self._partition = partition
        self._next_id = 0
        self._parts = TargetParts()
        self._over: Mapping[int, Mapping[str, TargetPart]] = {}
        self._ended: dict[int, Mapping[str, TargetPart]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the targets, in the order of the settings file that the log's owner has."""
        return self._parts.assignment.names

    def begin(self) -> None:
        """Begins anew with the parts as the log has them now.

        Raises:
            LogUnavailableError, LogCorruptError: the log cannot be read.
        """
        state = load_state(self._store, self._partition)
        self._parts, self._next_id = state.targets, state.next_id
        self._over, self._ended = {}, {}

    def through(self, target: str) -> int:
        """Returns the id up to which the log has a target's outcomes."""
        return self._parts.through.get(target, -1)

    def take(self, tid: int, entry: Entry, units: UnitFold, late: UnitState | None) -> None:
        """Follows an entry that the units have in them already.

        Args:
            tid: the entry's id.
            entry: the entry.
            units: the units.
            late: the failed unit that the entry adds deltas to, as it was before.
        """
        if tid < self._next_id:
            return
        self._next_id = tid + 1
        match entry.meta:
            case UnitMeta():
                self._parts.begin(units.units[tid])
            case FragmentMeta() if late is None:
                return
            case meta:
                self._parts.fold(meta, units.units, late)
        if isinstance(entry.meta, StatusMeta):
            for outcome in entry.meta.outcomes:
                self._end(units.units.get(outcome.tid))

    def lay_over(self, fresh: Mapping[str, tuple[Outcome, ...]]) -> tuple[Outcome, ...]:
        """Lays outcomes over the parts that the log does not have yet; returns what they mean for the whole units."""
        laid = TargetParts()
        outcomes = [outcome for of_target in fresh.values() for outcome in of_target]
        for outcome in outcomes:
            if (parts := self._parts.units.get(outcome.tid)) is not None:
                laid.units.setdefault(outcome.tid, dict(parts))
        for target, of_target in fresh.items():
            laid.settle(target, of_target, self.through(target))
        self._over = laid.units
        return laid.meant(outcomes)

    def of(self, tid: int) -> Mapping[str, TargetPart]:
        """Returns what each target has of a unit; nothing where that is not known."""
        return self._over.get(tid) or self._parts.units.get(tid) or self._ended.get(tid, {})

    def unresolved(self, target: str) -> Iterator[tuple[int, TargetPart]]:
        """Yields the units that are not resolved in a target, by id, with their parts there, in the log's order."""
        for tid in self._parts.units:
            part = self.of(tid).get(target)
            if part is not None and not part.resolved:
                yield tid, part

    def standings(self, units: UnitFold, next_id: int) -> tuple[TargetStanding, ...]:
        """Returns how each target stands.

        A unit that was dispatched before there were several targets has no parts, and counts in each of them.

        Args:
            units: the units.
            next_id: the id of the log's next entry.
        """
        left = sum(number for status, number in units.statuses.items() if status not in RESOLVED)
        # Few logs have such units: of most logs not all units are looked at.
        looked_at = units.units.values() if left > len(self._parts.units) else ()
        before = [unit for unit in looked_at if not unit.resolved and not self.of(unit.tid)]
        return tuple(self._standing(name, units.units, before, next_id) for name in self.names)

    def forget_below(self, low: int) -> None:
        """Forgets the parts of resolved units with ids below ``low``: the log has truncated them."""
        for tid in [tid for tid in self._ended if tid < low]:
            del self._ended[tid]

    def _standing(
        self, name: str, units: Mapping[int, UnitState], before: list[UnitState], next_id: int
    ) -> TargetStanding:
        found = [(unit.tid, unit.status.value) for unit in before]
        found += [(tid, part.status.value) for tid, part in self.unresolved(name)]
        standing = TargetStanding(name, min((tid for tid, _ in found), default=next_id))
        standing.first = units.get(standing.mark)
        for _, status in found:
            standing.statuses[status] = standing.statuses.get(status, 0) + 1
        return standing

    def _end(self, unit: UnitState | None) -> None:
        if unit is not None and unit.resolved and (parts := self._parts.units.pop(unit.tid, None)) is not None:
            self._ended[unit.tid] = parts
