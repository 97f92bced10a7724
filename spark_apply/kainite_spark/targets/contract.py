"""What a target must offer to the apply job.

A database keeps two tables of Kainite's own, so that they change in the same transactions as the data:

* ``kainite_applied (log_partition, transaction_id, uow, applied_at)``: the acknowledgement of a
  unit, written in the unit's own transaction. What stands there is applied, whatever else says.
  ``log_partition`` is the log's table and partition, for several logs may share a target;
* ``kainite_fence (log_partition, generation, micro_batch)``: which apply job, and which of its
  micro-batches, may write. Each transaction of :meth:`TargetSession.apply` reads that row under a
  shared lock and gives up when it is not its own, so a task that Spark or the operating system
  forgot and that wakes up later changes nothing. Advancing the fence therefore waits for the
  transactions of the micro-batch before, and acknowledgements may be trimmed safely.

A crash at any point leaves either both a unit's rows and its acknowledgement, or neither. What a loader of the
user's own owes for the same is said in docs/targets.md.

Units come in log order. ``apply`` is all or nothing for the whole group; the caller splits a
group that is refused (:mod:`kainite_spark.executor.group_commit`), down to the unit that is at fault.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta
from kainite_spark.targets.fence import Fence


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of work as the target sees it.

    Attributes:
        tid: its transaction id in the log partition.
        uow: its name.
        deltas: in the source's own order, where that is known (ordinals), else as they arrived.
        written, read: its signatures, for finding conflicts inside a group.
    """

    tid: int
    uow: str
    deltas: tuple[Delta, ...]
    written: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()


class TargetSession(Protocol):
    """One connection, used by one job instance at a time."""

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        """Which of these units the target has acknowledged."""

    def apply(self, fence: Fence, units: Sequence[Unit]) -> None:
        """Apply units in one transaction, set-based, with their acknowledgements; all or nothing.

        Within a layer of units that do not conflict: inserts and upserts by ascending precedence,
        then updates, then deletes by descending precedence.

        Raises:
            TargetRejectedError: the target refused a row, or an update or delete met no row.
            TargetUnavailableError: connection lost, deadlock, serialization failure: try again.
            TargetFencedError: the fence is not ours any more.
        """

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        """Apply one unit a delta at a time in its own order; raises as :meth:`apply`."""

    def close(self) -> None:
        """Give it back. May be called again."""


class Target(Protocol):
    """What units are applied to; picklable, so that tasks can carry it."""

    def connect(self) -> TargetSession:
        """Open a connection; raises TargetUnavailableError."""

    def prepare(self, catalogue: Catalogue) -> None:
        """Create Kainite's own tables where they are missing; refuse what cannot be served.

        Args:
            catalogue: the target's tables; empty for a loader that is told of none.

        Raises:
            CatalogueError: a cycle of tables without deferrable constraints, spelled out.
        """

    def raise_generation(self, log_partition: str, generation: int) -> None:
        """Take the target over for an apply job; waits for transactions under the old fence.

        Raises:
            TargetFencedError: a higher generation owns it.
        """

    def begin_micro_batch(self, fence: Fence) -> None:
        """Let ``fence`` in, and every micro-batch before it out.

        Raises:
            TargetFencedError: another generation owns the target.
        """

    def trim(self, fence: Fence, below: int) -> int:
        """Delete acknowledgements of units below ``below``; returns how many."""

    def close(self) -> None:
        """Give back what this side holds of the target, but for sessions. May be called again."""
