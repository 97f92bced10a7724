"""The contract between the apply job and its targets.

A database has two tables of Kainite's own, which change in the same transactions as the data:

* ``kainite_applied (log_partition, transaction_id, uow, applied_at)``: the acknowledgement of a
  unit, written in the unit's own transaction. A unit with a row there is applied, whatever the log says.
  ``log_partition`` is the log's table and partition, because several logs may share a target;
* ``kainite_fence (log_partition, generation, micro_batch)``: which apply job, and which of its
  micro-batches, may write. Each transaction of :meth:`TargetSession.apply` reads that row under a
  shared lock and rolls back if another fence is in it, so a task that was given up and wakes up
  later changes nothing. To advance the fence therefore waits for the transactions of the
  micro-batch before.

Whatever takes away what a task relies on, or decides by what the tasks have reported, first makes the fence of
every task fail: :meth:`Target.trim` and :meth:`Target.close_micro_batch` advance the fence to a number that no
task has, in the transaction of the deletion, or before the question. Otherwise a task that was given up, and whose
retry has committed, could commit its units again when it wakes up and their acknowledgements are gone; or it could
apply a unit that has failed and was discarded meanwhile. So a micro-batch's number is used once: for its
tasks, for a closing or for a trimming.

Each of the driver's calls compares the target with a *mark* first, so that a target that was set back to an earlier
state is noticed (:mod:`kainite_spark.targets.mark`).

A crash at any point leaves either both a unit's rows and its acknowledgement, or neither. docs/targets.md
says what a loader must do to give the same guarantee.

A third table, ``kainite_log_table``, says which log writes each table (:mod:`kainite_spark.targets.log_tables`).

Of several targets, each has one more: ``kainite_mark (log_partition, everywhere_below, noted_at)``, the common
mark (:mod:`kainite_spark.driver.common_mark`).

Units come in log order. ``apply`` is all or nothing for the whole group; the caller bisects a
refused group (:mod:`kainite_spark.executor.group_commit`) down to the refused unit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from kainite.base.value_class import value_class
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.mark import TargetMark


@value_class(frozen=True, slots=True)
class Unit:
    """A unit of work as the target sees it.

    Attributes:
        tid: its transaction id in the log partition.
        uow: its name.
        deltas: in the source's own order, if the deltas have ordinals, otherwise in the order of arrival.
        written, read: its signatures, by which conflicts inside a group are found.
        size: the bytes of its deltas, as they are in the log; 0 if unknown.
        fault: why the deltas of the unit are not known; None when they are. No target gets a unit with a fault.
    """

    tid: int
    uow: str
    deltas: tuple[Delta, ...]
    written: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()
    size: int = 0
    fault: str | None = None


class TargetSession(Protocol):
    """A connection, used by one job instance at a time."""

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        """Returns which of these units the target has acknowledged."""

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        """Applies units in one transaction, set-based, with their acknowledgements; all or nothing.

        Within a layer of units that do not conflict: inserts and upserts by ascending precedence,
        then updates, then deletes by descending precedence.

        Args:
            fence: the apply job and micro-batch that write.
            units: in log order.
            folded: whether changes of one row may be made as one. What a database then takes it also takes change by
                change; it may refuse what it takes change by change.

        Raises:
            TargetRejectedError: the target refused a row, or an update or delete met no row.
            TargetBusyError: rows are locked, or the group is too large or takes too long; a part of it may
                be taken. Raised within seconds.
            TargetInterruptedError: the connection was lost in the middle, perhaps because of these units.
            TargetUnavailableError: the target is away; the caller may try again.
            TargetFencedError: the target has another fence.
            TargetError: Kainite's own tables are missing, or are not as they must be.
        """

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        """Applies one unit, delta by delta in the source's order; raises as :meth:`apply`.

        What foreign keys refuse so, a target may try once more with consecutive rows that name each other together.
        """

    def close(self) -> None:
        """Closes the connection. May be called again."""


class Target(Protocol):
    """A place where units are applied; picklable, because Spark sends it to the tasks."""

    def connect(self) -> TargetSession:
        """Opens a connection; raises TargetUnavailableError."""

    def prepare(self, log_partition: str, catalogue: Catalogue) -> None:
        """Creates Kainite's own tables where they are missing; refuses tables that cannot be served.

        Args:
            log_partition: the log's name in the target, of which units are to be applied.
            catalogue: the target's tables; empty for a loader that is told of none.

        Raises:
            CatalogueError: tables reference each other in a cycle without deferrable constraints.
        """

    def take_tables(self, taking: LogTables) -> None:
        """Takes tables for a log, beside those that it has; the target was prepared before.

        Raises:
            CatalogueError: another log has one of them.
        """

    def give_up_tables(self, fence: Fence, taking: LogTables, mark: TargetMark | None = None) -> None:
        """Advances the fence as :meth:`close_micro_batch` does, and in the same transaction frees the tables that the
        log has and takes no more: no task of an older apply job, which had more of them, writes any more.

        Args:
            fence: with a number that is higher than every micro-batch's so far, and that no micro-batch gets.
            taking: what the log takes in the target, under the fence's name of the log.
            mark: as in :meth:`begin_micro_batch`.

        Raises:
            TargetFencedError: another generation owns the target, or the number is not higher.
        """

    def raise_generation(self, log_partition: str, generation: int, mark: TargetMark | None = None) -> None:
        """Takes the target over for an apply job; waits for transactions under the old fence.

        Args:
            log_partition: the log's name in the target.
            generation: the apply job's generation.
            mark: how far the target must be; None where the log has no unit as committed, or the target is adopted.

        Raises:
            TargetWentBackError: the target is behind the mark; so in the other calls. A loader cannot tell.
            TargetFencedError: a higher generation owns the target.
        """

    def begin_micro_batch(self, fence: Fence, mark: TargetMark | None = None) -> None:
        """Advances the fence: from now on only this micro-batch may write.

        Args:
            fence: the micro-batch.
            mark: the latest fence that the target has confirmed; so in the other calls.

        Raises:
            TargetFencedError: another generation owns the target.
        """

    def close_micro_batch(self, fence: Fence, tids: Collection[int], mark: TargetMark | None = None) -> set[int]:
        """Advances the fence, so that no task writes any more, then returns which of these units are acknowledged.

        Args:
            fence: with a number that is higher than every micro-batch's so far, and that no micro-batch gets.
            tids: the units whose tasks reported that they did not apply them.
            mark: as in :meth:`begin_micro_batch`.

        Raises:
            TargetFencedError: another generation owns the target, or the number is not higher.
        """

    def trim(self, fence: Fence, below: int, mark: TargetMark | None = None) -> int:
        """Advances the fence as :meth:`close_micro_batch` does, and in the same transaction, or after
        that, deletes the acknowledgements of units below ``below``; returns how many.

        Args:
            fence: with a number that is higher than every micro-batch's so far, and that no micro-batch gets.
            below: a transaction id; all units below it are durably resolved.
            mark: as in :meth:`begin_micro_batch`.

        Raises:
            TargetFencedError: another generation owns the target, or the number is not higher.
        """

    def prepare_common_mark(self) -> None:
        """Creates the table of the common mark where it is missing; called where there are several targets.

        Raises:
            TargetError: it cannot be created.
        """

    def note_common_mark(self, fence: Fence, everywhere_below: int, mark: TargetMark | None = None) -> None:
        """Advances the fence as :meth:`close_micro_batch` does, and in the same transaction notes the common mark.

        A number below the one that the target has already changes nothing.

        Args:
            fence: with a number that is higher than every micro-batch's so far, and that no micro-batch gets.
            everywhere_below: a transaction id; each unit below it is applied or discarded in each target.
            mark: as in :meth:`begin_micro_batch`.

        Raises:
            TargetFencedError: another generation owns the target, or the number is not higher.
        """

    def close(self) -> None:
        """Closes what the driver holds of the target, sessions excepted. May be called again."""
