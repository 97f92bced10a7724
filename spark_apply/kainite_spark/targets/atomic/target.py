"""Several targets as the driver of an apply job has them: their fences advance together, behind what is left prepared.

:mod:`kainite_spark.targets.atomic` has the states, the invariants and what a crash leaves.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from kainite.base.errors import TargetError
from kainite.base.logs import event
from kainite.settings.assignment import TableAssignment
from kainite.uow.catalogue.several import only
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.atomic.session import AtomicSession
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.mark import TargetMark
from kainite_spark.targets.preparing import PreparedPart, PreparingTarget, TransactionName, log_prefix, target_in

_LOG = logging.getLogger(__name__)


class Resolution(NamedTuple):
    """What became of prepared transactions.

    Attributes:
        finished: those that were found in targets that answer, with whether they are to be committed.
        trouble: why it is not all, by the name of the target that says so.
    """

    finished: Mapping[TransactionName, bool]
    trouble: Mapping[str, TargetError]


@dataclass(frozen=True, slots=True)
class AtomicTarget:
    """Implements :class:`kainite_spark.targets.contract.Target`.

    Attributes:
        targets: the targets by name.
        assignment: which of them a table belongs to.
        decisions: where transactions are decided; a task gives its own (:meth:`deciding_by`).
    """

    targets: Mapping[str, PreparingTarget]
    assignment: TableAssignment
    decisions: Decisions = field(default_factory=Decisions, repr=False, compare=False)

    def deciding_by(self, decisions: Decisions) -> Self:
        """Returns the target with another register of decisions."""
        return replace(self, decisions=decisions)

    def connect(self) -> AtomicSession:
        with contextlib.ExitStack() as opened:
            sessions = {
                name: opened.enter_context(contextlib.closing(target.connect()))
                for name, target in self.targets.items()
            }
            opened.pop_all()
        return AtomicSession(sessions, self.assignment, self.decisions)

    def prepare(self, log_partition: str, catalogue: Catalogue) -> None:
        for name, target in self.targets.items():
            try:
                target.require_preparing()
            except TargetError as error:
                raise type(error)(f"target.{name}: {error}") from error
            target.prepare(log_partition, only(catalogue, self.assignment, name))
        self._require_own_ledgers()

    def take_tables(self, taking: LogTables) -> None:
        for name, target in self.targets.items():
            target.take_tables(taking.of(self.assignment, name))

    def give_up_tables(self, fence: Fence, taking: LogTables, mark: TargetMark | None = None) -> None:
        self._resolve_behind(fence)
        for name, target in self.targets.items():
            target.give_up_tables(fence, taking.of(self.assignment, name), _of_each(mark))

    def raise_generation(self, log_partition: str, generation: int, mark: TargetMark | None = None) -> None:
        self.resolve(log_partition, (generation, -1))
        self._tell_taken_out()
        for target in self.targets.values():
            target.raise_generation(log_partition, generation, _of_each(mark))

    def begin_micro_batch(self, fence: Fence, mark: TargetMark | None = None) -> None:
        self._resolve_behind(fence)
        for target in self.targets.values():
            target.begin_micro_batch(fence, _of_each(mark))

    def close_micro_batch(self, fence: Fence, tids: Collection[int], mark: TargetMark | None = None) -> set[int]:
        self._resolve_behind(fence)
        return {
            tid
            for target in self.targets.values()
            for tid in target.close_micro_batch(fence, tids, _of_each(mark))
        }  # fmt: skip

    def trim(self, fence: Fence, below: int, mark: TargetMark | None = None) -> int:
        self._resolve_behind(fence)
        trimmed = sum(target.trim(fence, below, _of_each(mark)) for target in self.targets.values())
        self.decisions.forget((fence.generation, fence.micro_batch), self.targets)
        return trimmed

    def prepare_common_mark(self) -> None:
        for target in self.targets.values():
            target.prepare_common_mark()

    def note_common_mark(self, fence: Fence, everywhere_below: int, mark: TargetMark | None = None) -> None:
        self._resolve_behind(fence)
        for target in self.targets.values():
            target.note_common_mark(fence, everywhere_below, _of_each(mark))

    def close(self) -> None:
        for target in self.targets.values():
            target.close()

    def left_prepared(self, log_partition: str) -> dict[str, list[PreparedPart]]:
        """Returns the prepared transactions of a log, by target.

        Raises:
            TargetUnavailableError: a target does not answer.
        """
        return {name: self.prepared_in(name, log_partition) for name in self.targets}

    def prepared_in(self, name: str, log_partition: str) -> list[PreparedPart]:
        """Returns the prepared transactions of a log in one target; raises as :meth:`left_prepared`.

        Among them are those under a name that no target has any more: the target had it, and it holds the fence.
        """
        others = self.targets.keys() - {name}
        parts = self.targets[name].prepared(log_prefix(log_partition))
        return [part for part in parts if target_in(part.gid) not in others]

    def resolve(self, log_partition: str, before: tuple[int, int] | None = None) -> Mapping[TransactionName, bool]:
        """Finishes prepared transactions by the log's decisions; what is not decided is rolled back, for good.

        Args:
            log_partition: the log's name in the targets.
            before: generation and micro-batch: only transactions of earlier fences are finished; None: all.

        Returns:
            The transactions that were found, with whether they were committed.

        Raises:
            TargetError: a target does not answer; what the others have is finished. The call may be made again.
            LogUnavailableError: not all could be finished; the call may be made again.
        """
        found = self.resolve_reachable(log_partition, before)
        for name, error in found.trouble.items():
            raise type(error)(f"target.{name}: {error}") from error
        return found.finished

    def resolve_reachable(self, log_partition: str, before: tuple[int, int] | None = None) -> Resolution:
        """Does as :meth:`resolve` in each target that answers; raises LogUnavailableError."""
        decided: dict[TransactionName, bool] = {}
        trouble: dict[str, TargetError] = {}
        for target in self.targets:
            try:
                for part in self.prepared_in(target, log_partition):
                    if before is None or part.name.fence < before:
                        if part.name not in decided:
                            decided[part.name] = self.decisions.settle(part.name)
                        self._finish(target, part, committed=decided[part.name])
            except TargetError as error:
                trouble[target] = error
        return Resolution(decided, trouble)

    def _require_own_ledgers(self) -> None:
        """Checks that no two targets have Kainite's own tables in common.

        A unit of both could not be acknowledged in both, and one fence would advance for both.

        Raises:
            TargetError: two targets do, as two schemas of one database.
        """
        places: dict[str, str] = {}
        for name, target in self.targets.items():
            if (other := places.setdefault(target.ledger_place(), name)) != name:
                raise TargetError(
                    f"target.{other} and target.{name} are one database, with the same tables kainite_applied and"
                    " kainite_fence: name it as one target, which commits its units as a whole"
                )

    def _tell_taken_out(self) -> None:
        for name, transactions in self.decisions.elsewhere(self.targets).items():
            event(_LOG, logging.WARNING, "a target that was taken out may lack what is decided as committed",
                  target=name, transactions=len(transactions), remedy=taken_out(name))  # fmt: skip

    def _finish(self, target: str, part: PreparedPart, *, committed: bool) -> None:
        if self.targets[target].finish(part.gid, committed=committed):
            told = "prepared transaction committed" if committed else "prepared transaction rolled back"
            event(_LOG, logging.WARNING, told, target=target, transaction=part.gid, seconds=round(part.age, 1))

    def _resolve_behind(self, fence: Fence) -> None:
        self.resolve(fence.log_partition, (fence.generation, fence.micro_batch))


def taken_out(target: str) -> str:
    """Returns what to do about a target that the settings file names no more, with parts of decided transactions."""
    return f"put target.{target} back into the settings file, and call kainite apply resolve --by-log"


def _of_each(mark: TargetMark | None) -> TargetMark | None:
    """Returns the mark of each single target, of which it is not known which units it must have acknowledged."""
    return None if mark is None else TargetMark(mark.generation, mark.micro_batch)
