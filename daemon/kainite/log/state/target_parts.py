"""A unit in several targets: its part in each of them, folded from the log.

The log's owner notes which tables belong to which target (CONTROL ``targets``). A unit that is dispatched behind this
entry has a *part* in each target that has one of its tables; a unit without a table has one in the first target. Each
target has an apply job of its own, which reads the whole log, applies its parts alone, and writes their outcomes to an
outcomes partition of its own. The owner copies them into the log: a TARGET entry with the outcomes of one target, and
in the same batch a STATUS entry with what they mean for the units (:meth:`TargetParts.meant`). So whoever looks at
whole units needs the STATUS entries alone, and a log of one target has neither parts nor TARGET entries.

Another design would be one apply job that applies a unit in all targets. Then a target that is away would hold up
every micro-batch, or each micro-batch would need what a target's own job has: a fence, an order and a backlog of its
own. Here these exist once a target, and no process has to be alive for another one's target.

=================  ==================================================================================
state of a part    next
=================  ==================================================================================
in progress        committed, failed, blocked (its target's job); discarding (a person, on the unit)
failed             in progress (a person's retry of the unit, in all targets where it failed, or of this part
                   alone); discarded (a person, the unit or this part alone); discarding, where a part of the unit
                   has not failed
blocked            in progress, committed, discarding
discarding         committed or discarded: its target's job asks its target's acknowledgements
committed,         (end)
discarded
=================  ==================================================================================

The status of the unit follows from its parts: discarding, failed, blocked, in progress, whichever any part that is not
resolved has, in this order; resolved when each part is, and then discarded if any part is.

Invariants:

* each unresolved unit that was dispatched behind the assignment has parts, one a target, and one of them is unresolved;
* a unit is committed only when each of its parts is committed, each by its own target's acknowledgement;
* the parts of a unit change only before it was in progress (late deltas, deltas judged anew): they are failed then, and
  no target has any of it. A correction may have replaced some: these are discarded, and stay so, with whatever comes;
* an outcome of one target changes no other part.

What a crash leaves:

==========================================  ============================================================================
crash                                       then
==========================================  ============================================================================
owner, before the assignment is durable     no unit was dispatched under it; the next owner writes it
apply job, after its target's commit        the unit is in progress in this target: it is tried again there, and found
                                            acknowledged; other targets are not concerned
apply job, after its outcomes are durable   the next job of this target lays them over the parts; the owner copies them
owner, before it copied a target's          the next owner reads on behind this target's ``through``; TARGET and STATUS
outcomes                                    are in one batch, so a part and its unit never differ
one target away, for any time               its parts stay in progress: no entry of them is truncated, and the bound of
                                            the backlog counts them
==========================================  ============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kainite.log.format.entry import (
    TARGETS,
    ControlMeta,
    FragmentMeta,
    Meta,
    Natural,
    Outcome,
    RefitMeta,
    StatusMeta,
    TargetMeta,
    UnitStatus,
)
from kainite.log.state.unit_state import RESOLVED, UnitState
from kainite.settings.assignment import NO_TARGETS, TableAssignment, assignment_from

_WORST: Final = (UnitStatus.DISCARDING, UnitStatus.FAILED, UnitStatus.BLOCKED, UnitStatus.IN_PROGRESS)


class TargetPart(msgspec.Struct, frozen=True, array_like=True):
    """What one target has of a unit.

    Attributes:
        tables: the unit's tables there.
        status, cause, instance: as in :class:`~kainite.log.state.unit_state.UnitState`, in this target.
    """

    tables: tuple[str, ...]
    status: UnitStatus = UnitStatus.IN_PROGRESS
    cause: str | None = None
    instance: int | None = None

    @property
    def resolved(self) -> bool:
        """Tells whether the part is committed or discarded."""
        return self.status in RESOLVED

    def told(self) -> dict[str, object]:
        """Returns the part as JSON tells it."""
        return {
            "status": self.status.value, "tables": list(self.tables), "instance": self.instance, "cause": self.cause,
        }  # fmt: skip

    def settled(self, outcome: Outcome) -> TargetPart:
        """Returns the part after an outcome of it; what is resolved stays so, and what is discarding until then."""
        if self.resolved or (self.status is UnitStatus.DISCARDING and outcome.status not in RESOLVED):
            return self
        instance = self.instance if outcome.instance is None else outcome.instance
        return TargetPart(self.tables, outcome.status, outcome.cause, instance)


class TargetParts:
    """The parts of the unresolved units, and how far the owner has copied each target's outcomes.

    Attributes:
        assignment: which target a table of a unit that is dispatched now belongs to.
        through: by target, the id up to which its outcomes partition is copied.
        units: the parts by target, by transaction id.
    """

    def __init__(self) -> None:
        self.assignment: TableAssignment = NO_TARGETS
        self.through: dict[str, int] = {}
        self.units: dict[int, dict[str, TargetPart]] = {}

    def copy(self) -> TargetParts:
        """Returns a copy, which later entries do not change."""
        copied = TargetParts()
        copied.assignment, copied.through = self.assignment, dict(self.through)
        copied.units = {tid: dict(parts) for tid, parts in self.units.items()}
        return copied

    def fold(self, meta: Meta, units: Mapping[int, UnitState], late: UnitState | None) -> None:
        """Applies an entry that the units have in them already; :meth:`begin` does so for a unit that is dispatched.

        Args:
            meta: of the entry.
            units: the unresolved units.
            late: the failed unit that the entry adds deltas to, as it was before.
        """
        match meta:
            case FragmentMeta() if late is not None:
                self.begin(units[late.tid])
            case RefitMeta(unit=tid) if tid in units:
                self.begin(units[tid])
            case TargetMeta(target, outcomes, through):
                self.settle(target, outcomes, through)
            case StatusMeta(outcomes=outcomes, through=None) if self.units:
                for outcome in outcomes:
                    self.decide(outcome)
            case ControlMeta(what=what, key=key) if what == TARGETS:
                self.assignment = assignment_from(key)

    def begin(self, unit: UnitState) -> None:
        """Gives a unit its parts: one that is dispatched, or that has only failed parts, and perhaps other tables."""
        if self.assignment and self.has_only_failed(unit.tid):
            tables = self.assignment.parts(unit.tables)
            status = UnitStatus.FAILED if unit.status is UnitStatus.FAILED else UnitStatus.IN_PROGRESS
            parts = {name: TargetPart(own, status, unit.cause) for name, own in tables.items()}
            self.units[unit.tid] = _kept(self.units[unit.tid], parts) if unit.tid in self.units else parts

    def settle(self, target: str, outcomes: Iterable[Outcome], through: int | None) -> None:
        """Applies outcomes of one target, or what a person has decided about parts there."""
        if through is not None:
            self.through[target] = max(self.through.get(target, -1), through)
        for outcome in outcomes:
            parts = self.units.get(outcome.tid)
            if parts is not None and target in parts:
                parts[target] = parts[target].settled(outcome)

    def decide(self, outcome: Outcome) -> None:
        """Applies what a person, or the owner, has decided about a whole unit."""
        parts = self.units.get(outcome.tid, {})
        for name, part in parts.items():
            retried = outcome.status is UnitStatus.IN_PROGRESS
            if not part.resolved and (not retried or part.status is UnitStatus.FAILED):
                parts[name] = part.settled(outcome)

    def forget(self, tid: int) -> None:
        """Forgets the parts of a unit that is resolved."""
        self.units.pop(tid, None)

    def meant(self, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
        """Returns what outcomes of one target, which were applied to the parts, mean for the whole units."""
        latest = {outcome.tid: outcome for outcome in outcomes if outcome.tid in self.units}
        return tuple(_meant(self.units[tid], outcome) for tid, outcome in latest.items())

    def has_only_failed(self, tid: int) -> bool:
        """Tells whether each part that is not resolved has failed, so that no apply job tries the unit."""
        parts = self.units.get(tid, {})
        return all(part.resolved or part.status is UnitStatus.FAILED for part in parts.values())

    def with_status(self, tid: int, *statuses: UnitStatus) -> list[str]:
        """Returns the targets in which a unit has one of these statuses."""
        return [name for name, part in self.units.get(tid, {}).items() if part.status in statuses]

    def counts(self) -> dict[str, tuple[int, int]]:
        """Returns by target how many units are not resolved there, and how many of them have failed there."""
        waiting = {name: [0, 0] for name in self.assignment.names}
        for parts in self.units.values():
            for name, part in parts.items():
                if not part.resolved:
                    counted = waiting.setdefault(name, [0, 0])
                    counted[0] += 1
                    counted[1] += part.status is UnitStatus.FAILED
        return {name: (all_of_them, failed) for name, (all_of_them, failed) in waiting.items()}


def through_of(target: str, through: int, parts: TargetParts) -> int:
    """Returns up to which id a target's outcomes are copied; ``through`` is that of the only target, without a name."""
    return parts.through.get(target, -1) if target else through


def seen_by(target: str, unit: UnitState, parts: TargetParts) -> UnitState | None:
    """Returns an unresolved unit as one target has it; None where the target has nothing of it, or resolved it.

    Args:
        target: one of several targets; empty for the only one, which has the unit as it is.
        unit: the unit.
        parts: of the units.
    """
    if not target:
        return unit
    part = parts.units.get(unit.tid, {}).get(target)
    if part is None or part.resolved:
        return None
    return msgspec.structs.replace(unit, status=part.status, cause=part.cause, instance=part.instance)


def units_of(target: str, units: Mapping[int, UnitState], parts: TargetParts) -> Iterator[UnitState]:
    """Yields the unresolved units of a target, in log order; arguments as :func:`seen_by`."""
    found = (seen_by(target, unit, parts) for unit in units.values())
    return (unit for unit in found if unit is not None)


def _kept(before: Mapping[str, TargetPart], now: Mapping[str, TargetPart]) -> dict[str, TargetPart]:
    """Returns the parts of a unit whose tables may have changed: what is resolved stays, and one part is not."""
    parts = {**now, **{name: part for name, part in before.items() if part.resolved}}
    left = any(not part.resolved for part in parts.values())
    return parts if left else {**parts, **{name: part for name, part in before.items() if not part.resolved}}


def _meant(parts: Mapping[str, TargetPart], latest: Outcome) -> Outcome:
    """Returns the outcome of a whole unit; the time is that of the last commit."""
    status, name = _overall(parts)
    cause = parts[name].cause
    if name and cause is not None:
        cause = f"{name}: {cause}" if status is not UnitStatus.BLOCKED else cause
    at_ms = latest.at_ms if status is UnitStatus.COMMITTED else None
    return Outcome(latest.tid, status, latest.instance, cause, at_ms)


def _overall(parts: Mapping[str, TargetPart]) -> tuple[UnitStatus, str]:
    """Returns the status of a unit, and the first target that is the reason for it."""
    for status in _WORST:
        found = [name for name, part in parts.items() if part.status is status]
        if found:
            return status, next((name for name in found if parts[name].cause is not None), found[0])
    discarded = next((name for name, part in parts.items() if part.status is UnitStatus.DISCARDED), None)
    return (UnitStatus.COMMITTED, next(iter(parts))) if discarded is None else (UnitStatus.DISCARDED, discarded)


class PartsOfUnit(msgspec.Struct, frozen=True, array_like=True):
    """The parts of one unit, as a snapshot has them."""

    tid: Natural
    parts: dict[str, TargetPart]
