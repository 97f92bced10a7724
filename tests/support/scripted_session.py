"""A connection to a target that does what a test says, for the executor's tests without a database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kainite.base.errors import (
    TargetBusyError,
    TargetInterruptedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence


@dataclass
class Scripted:
    """A target that refuses some units, is away at some calls, and may commit without saying so."""

    refused: Collection[int] = ()
    refused_in_order: Collection[int] | None = None
    away: Collection[int] = ()
    lost_answers: Collection[int] = ()
    locked: Collection[int] = ()
    deadly: Collection[int] = ()
    committed: list[int] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    folded: list[bool] = field(default_factory=list)
    calls: int = 0

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        self._call()
        return set(tids) & set(self.committed)

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        self.folded.append(folded)
        self._apply(units, self.refused)

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self._apply([unit], self.refused if self.refused_in_order is None else self.refused_in_order)

    def close(self) -> None: ...

    def _apply(self, units: Sequence[Unit], refused: Collection[int]) -> None:
        call = self._call()
        tids = [unit.tid for unit in units]
        self.groups.append(tids)
        if set(tids) & set(refused):
            raise TargetRejectedError(f"refused {sorted(set(tids) & set(refused))}")
        if set(tids) & set(self.locked):
            raise TargetBusyError("locked")
        if set(tids) & set(self.deadly):
            raise TargetInterruptedError("the connection broke")
        assert not set(tids) & set(self.committed)
        self.committed += tids
        if call in self.lost_answers:
            raise TargetUnavailableError("connection lost in the commit")

    def _call(self) -> int:
        self.calls += 1
        if self.calls in self.away:
            raise TargetUnavailableError("away")
        return self.calls
