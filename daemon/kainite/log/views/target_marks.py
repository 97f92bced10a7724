"""What each of several targets has of the units, and how far each is, as the log and the apply jobs say now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from kainite.log.contract import LogStore
from kainite.log.state.folded import FoldedLog
from kainite.log.state.loading import load_state
from kainite.log.state.outcomes import outcomes_of, stored_batches
from kainite.log.state.target_parts import TargetPart, through_of, units_of
from kainite.log.state.unit_state import RESOLVED
from kainite.log.views.unit_table import LogRow

Parts: TypeAlias = Mapping[int, Mapping[str, TargetPart]]
"""What each target has of the unresolved units: by transaction id and target."""


@dataclass(frozen=True, slots=True)
class TargetMarks:
    """How far the targets are.

    Attributes:
        next_id: the id that the log's next entry gets.
        marks: by target, the id below which every unit is resolved there; the name is empty for an only target.
        parts: by unit and target, what the target has of each unresolved unit.
    """

    next_id: int
    marks: Mapping[str, int]
    parts: Parts

    @property
    def common(self) -> int:
        """Returns the id below which every unit is resolved in each target."""
        return min(self.marks.values())


def read_marks(store: LogStore, partition: str, targets: tuple[str, ...]) -> TargetMarks:
    """Reads how far the targets are, with the outcomes that the owner has not copied into the log yet.

    Args:
        store, partition: the log.
        targets: the names of several targets; none for an only one. Those that the log has besides have marks, too:
            the settings file may be ahead of the log's owner.

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    # Before the log: then the log may have some of them already, and none is missed that was truncated since.
    stored = {name: stored_batches(store, partition, name) for name in targets or ("",)}
    state = load_state(store, partition)
    marks = {}
    for name in dict.fromkeys((*stored, *(state.targets.counts() if targets else ()))):
        through = through_of(name, state.through, state.targets)
        outcomes = {outcome.tid: outcome for outcome in outcomes_of(stored.get(name, ()), through + 1)}
        marks[name] = _mark(state, name, {tid for tid, outcome in outcomes.items() if outcome.status in RESOLVED})
        if name:
            state.targets.settle(name, outcomes.values(), through)
    return TargetMarks(state.next_id, marks, state.targets.units)


def in_targets(row: LogRow, parts: Parts) -> dict[str, str]:
    """Returns the status of a unit in each of its targets; none where it is resolved, or not dispatched yet."""
    return {name: part.status.value for name, part in (parts.get(row.id, {}) if row.id is not None else {}).items()}


def rows_of_target(rows: Iterable[LogRow], parts: Parts, target: str) -> list[LogRow]:
    """Returns the rows of the units that are not resolved in a target, with their status and cause there."""
    found = ((row, parts.get(row.id, {}).get(target)) for row in rows if row.id is not None)
    return [
        replace(row, status=part.status.value, cause=part.cause, instance=part.instance)
        for row, part in found
        if part is not None and not part.resolved
    ]


def _mark(state: FoldedLog, target: str, resolved: set[int]) -> int:
    """Returns the id of the first unit that is not resolved in a target; the next id where there is none.

    A unit that was dispatched before there were several targets counts in each of them.
    """
    seen = {unit.tid for unit in units_of(target, state.units, state.targets)}
    return min((seen | (state.units.keys() - state.targets.units.keys())) - resolved, default=state.next_id)
