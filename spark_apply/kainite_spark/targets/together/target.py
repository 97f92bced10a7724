"""Several targets as the driver of an apply job has them: their fences advance together.

:mod:`kainite_spark.targets.together` has the states, the invariants and what a crash leaves.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from kainite.base.logs import event
from kainite.settings.assignment import TableAssignment
from kainite.uow.catalogue.several import only
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.holding import HoldingTarget
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.mark import TargetMark
from kainite_spark.targets.together.session import TogetherSession, ledger_in

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TogetherTarget:
    """Implements :class:`kainite_spark.targets.contract.Target`.

    Attributes:
        targets: the targets by name, in the order in which they commit.
        assignment: which of them a table belongs to.
    """

    targets: Mapping[str, HoldingTarget]
    assignment: TableAssignment

    def connect(self) -> TogetherSession:
        with contextlib.ExitStack() as opened:
            sessions = {
                name: opened.enter_context(contextlib.closing(target.connect()))
                for name, target in self.targets.items()
            }
            opened.pop_all()
        return TogetherSession(sessions, self.assignment)

    def prepare(self, log_partition: str, catalogue: Catalogue) -> None:
        for name, target in self.targets.items():
            target.prepare(ledger_in(log_partition, name), only(catalogue, self.assignment, name))

    def take_tables(self, taking: LogTables) -> None:
        for name, target in self.targets.items():
            own = replace(taking.of(self.assignment, name), log_partition=ledger_in(taking.log_partition, name))
            target.take_tables(own)

    def give_up_tables(self, fence: Fence, taking: LogTables, mark: TargetMark | None = None) -> None:
        for name, target in self.targets.items():
            ledger = ledger_in(fence.log_partition, name)
            own = replace(taking.of(self.assignment, name), log_partition=ledger)
            target.give_up_tables(replace(fence, log_partition=ledger), own, mark)

    def raise_generation(self, log_partition: str, generation: int, mark: TargetMark | None = None) -> None:
        for name, target in self.targets.items():
            target.raise_generation(ledger_in(log_partition, name), generation, mark)

    def begin_micro_batch(self, fence: Fence, mark: TargetMark | None = None) -> None:
        for target, own in self._each(fence):
            target.begin_micro_batch(own, mark)

    def close_micro_batch(self, fence: Fence, tids: Collection[int], mark: TargetMark | None = None) -> set[int]:
        found = {own.log_partition: target.close_micro_batch(own, tids, mark) for target, own in self._each(fence)}
        complete = set(tids).intersection(*found.values())
        for tid in sorted(set().union(*found.values()) - complete):
            has = [name for name in self.targets if tid in found[ledger_in(fence.log_partition, name)]]
            event(_LOG, logging.WARNING, "unit is in some targets alone", id=tid, has=", ".join(has))
        return complete

    def trim(self, fence: Fence, below: int, mark: TargetMark | None = None) -> int:
        return sum(target.trim(own, below, mark) for target, own in self._each(fence))

    def prepare_common_mark(self) -> None:
        for target in self.targets.values():
            target.prepare_common_mark()

    def note_common_mark(self, fence: Fence, everywhere_below: int, mark: TargetMark | None = None) -> None:
        for target, own in self._each(fence):
            target.note_common_mark(own, everywhere_below, mark)

    def close(self) -> None:
        for target in self.targets.values():
            target.close()

    def _each(self, fence: Fence) -> Iterator[tuple[HoldingTarget, Fence]]:
        """Yields each target, with the fence as it stands there."""
        for name, target in self.targets.items():
            yield target, replace(fence, log_partition=ledger_in(fence.log_partition, name))
