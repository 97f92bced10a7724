"""The failed units that corrections pass, and what the log shows of those that they may touch. Pure.

:mod:`kainite.log.state.corrections` has the rule. A correction *passes* the units that it replaces from the moment at
which it is examined until it is examined again, fails, or is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kainite.log.state.corrections import replaces
from kainite.log.state.unit_state import UnitState
from kainite.uow.conflicts import conflict
from kainite.uow.delta import UnitKind
from kainite.uow.scheme import Comparisons
from kainite_spark.plan.holders import Holders

MAY_TOUCH: Final = "this correction may touch it, but certainly writes none of its rows"
"""A part of the cause of a correction that has met a failed unit which it does not replace."""

OVERTAKEN: Final = "overtaken by"
"""The beginning of the cause of a failed unit that a correction has replaced."""

_NAMED: Final = 3
"""The most failed units that a correction's cause names."""


# Looking a member up in its enum takes Python 3.11 0.1 µs.
_NORMAL: Final = UnitKind.NORMAL


class Passing:
    """The failed units that each correction passes.

    Args:
        units: the folded log's units, by transaction id.
        schemes: the schemes that units name.
    """

    def __init__(self, units: Mapping[int, UnitState], schemes: Comparisons) -> None:
        self._units = units
        self._schemes = schemes
        self._passed: dict[int, tuple[int, ...]] = {}

    def replaced(self, unit: UnitState, failed: Iterable[int]) -> tuple[int, ...]:
        """Returns which of the failed units a unit replaces, in log order; none for a unit that is no correction."""
        if unit.kind is _NORMAL:
            return ()
        return tuple(sorted(tid for tid in failed if replaces(unit, self._units[tid], self._schemes)))

    def begin(self, unit: UnitState, replaced: tuple[int, ...]) -> None:
        """Notes that a correction passes failed units."""
        if replaced:
            self._passed[unit.tid] = replaced

    def end(self, tid: int) -> tuple[int, ...]:
        """Notes that a unit passes no failed unit any more; returns those that it passed."""
        return self._passed.pop(tid, ())

    def corrects_the_same(self, unit: UnitState, others: Iterable[UnitState]) -> bool:
        """Returns whether a unit is another correction of a failed unit that one of ``others`` passes."""
        if unit.kind is _NORMAL:
            return False
        passed = (tid for one in others for tid in self._passed.get(one.tid, ()))
        return any(conflict(self._units[tid], unit) for tid in passed)

    def left(self, unit: UnitState, failed: Iterable[int]) -> str | None:
        """Returns the cause of a correction behind failed units that it may touch; None for any other unit."""
        if unit.kind is _NORMAL:
            return None
        left = sorted(tid for tid in failed if tid < unit.tid and self._may_touch(unit, self._units[tid]))
        return f"{self._named(left)} stays failed: {_help(self._units[left[0]])}" if left else None

    def waits_for(self, tid: int, holder: int, failed: Mapping[int, str | None]) -> str:
        """Returns the cause of a blocked unit."""
        cause = f"waits for {holder}"
        if holder not in failed or self._units[tid].kind is _NORMAL:
            return cause
        return f"{cause}, which has failed: {_help(self._units[holder])}"

    def _may_touch(self, correction: UnitState, unit: UnitState) -> bool:
        if conflict(unit, correction):
            return not replaces(correction, unit, self._schemes)
        alone = Holders(self._schemes)
        alone.add(unit)
        return alone.find(correction) is not None

    def _named(self, tids: Sequence[int]) -> str:
        more = f" and {len(tids) - _NAMED} more" if len(tids) > _NAMED else ""
        return ", ".join(f"{self._units[tid].uow} (id {tid})" for tid in tids[:_NAMED]) + more


def _help(unit: UnitState) -> str:
    return f"{MAY_TOUCH}; compare the rows, then kainite uow discard {unit.uow}, or retry"
