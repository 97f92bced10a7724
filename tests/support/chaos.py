"""Dying at a chosen effect: a store and a target whose every change of the world may be the last one.

Effects are numbered as they happen, two for each: just before it, and just after it. At its number
the process is dead, and everything that it still tries is refused, as with SIGKILL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kainite.log.contract import Fork, LogHead, LogStore, Slot, TransactionDecision
from kainite.log.format.entry import Batch
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Target, TargetSession, Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.mark import TargetMark

T = TypeVar("T")


class KilledError(BaseException):
    """The chosen death: a BaseException, so that no handler catches it and no cleanup follows it."""


@dataclass
class Fate:
    """The time of death: at the ``at``-th effect, counted from 0, or the first one called ``on``; else never.

    Attributes:
        die: what dying is.
        names: of the effects so far, two for each.
    """

    at: int | None = None
    on: str | None = None
    die: Callable[[], None] | None = None
    names: list[str] = field(default_factory=list)
    dead: bool = False

    def effect(self, name: str, act: Callable[[], T]) -> T:
        self._tick(f"before {name}")
        result = act()
        self._tick(f"after {name}")
        return result

    def _tick(self, name: str) -> None:
        if self.dead or len(self.names) == self.at or name == self.on:
            self.dead = True
            if self.die is not None:
                self.die()
            raise KilledError(name)
        self.names.append(name)


@dataclass
class MortalStore:
    """A log store under a fate; reading is no effect, but the dead do not read."""

    inner: LogStore
    fate: Fate

    def create(self) -> None:
        self.inner.create()

    def read_head(self, partition: str) -> LogHead | None:
        return self.inner.read_head(partition)

    def swap_head(self, partition: str, new: LogHead, expected: LogHead | None) -> bool:
        return self.fate.effect("swap_head", lambda: self.inner.swap_head(partition, new, expected))

    def read_tail(self, partition: str) -> Slot | None:
        return self.inner.read_tail(partition)

    def put_fence(self, partition: str, at: int, generation: int, nonce: str) -> Slot | None:
        return self.fate.effect("put_fence", lambda: self.inner.put_fence(partition, at, generation, nonce))

    def put_fork(self, partition: str, fork: Fork, generation: int, nonce: str) -> Slot | None:
        return self.fate.effect("put_fork", lambda: self.inner.put_fork(partition, fork, generation, nonce))

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        return self.fate.effect("put_batch", lambda: self.inner.put_batch(partition, batch, nonce))

    def read_batches(
        self, partition: str, first_id: int, last_id: int | None = None, *, data: bool = True, strong: bool = False
    ) -> Iterator[Batch]:
        return self.inner.read_batches(partition, first_id, last_id, data=data, strong=strong)

    def truncate(self, partition: str, below: int) -> int:
        return self.fate.effect("truncate", lambda: self.inner.truncate(partition, below))

    def put_names(self, partition: str, segment: str, names: bytes) -> None:
        self.fate.effect("put_names", lambda: self.inner.put_names(partition, segment, names))

    def read_names(self, partition: str) -> Iterator[tuple[str, bytes]]:
        return self.inner.read_names(partition)

    def delete_names(self, partition: str, keys: Sequence[str]) -> None:
        self.fate.effect("delete_names", lambda: self.inner.delete_names(partition, keys))

    def decide(self, partition: str, name: str, *, committed: bool, targets: Sequence[str] = ()) -> bool:
        return self.fate.effect(
            "decide", lambda: self.inner.decide(partition, name, committed=committed, targets=targets)
        )

    def read_decisions(self, partition: str) -> Iterator[tuple[str, TransactionDecision]]:
        return self.inner.read_decisions(partition)

    def delete_decisions(self, partition: str, names: Sequence[str]) -> None:
        self.fate.effect("delete_decisions", lambda: self.inner.delete_decisions(partition, names))

    def put_request(self, partition: str, request: Mapping[str, str]) -> str:
        return self.inner.put_request(partition, request)

    def read_requests(self, partition: str) -> Sequence[tuple[str, Mapping[str, str]]]:
        return self.inner.read_requests(partition)

    def answer_request(self, partition: str, request_id: str, answer: Mapping[str, str]) -> None:
        self.inner.answer_request(partition, request_id, answer)

    def take_answer(self, partition: str, request_id: str) -> Mapping[str, str] | None:
        return self.inner.take_answer(partition, request_id)


@dataclass
class MortalSession:
    inner: TargetSession
    fate: Fate

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        return self.inner.applied(log_partition, tids)

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        self.fate.effect("commit", lambda: self.inner.apply(fence, units, folded=folded))

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self.fate.effect("commit alone", lambda: self.inner.apply_in_source_order(fence, unit))

    def close(self) -> None:
        self.inner.close()


@dataclass
class MortalTarget:
    inner: Target
    fate: Fate

    def connect(self) -> MortalSession:
        return MortalSession(self.inner.connect(), self.fate)

    def prepare(self, log_partition: str, catalogue: Catalogue) -> None:
        self.inner.prepare(log_partition, catalogue)

    def take_tables(self, taking: LogTables) -> None:
        self.inner.take_tables(taking)

    def give_up_tables(self, fence: Fence, taking: LogTables, mark: TargetMark | None = None) -> None:
        self.fate.effect("give_up_tables", lambda: self.inner.give_up_tables(fence, taking, mark))

    def raise_generation(self, log_partition: str, generation: int, mark: TargetMark | None = None) -> None:
        self.fate.effect("raise_generation", lambda: self.inner.raise_generation(log_partition, generation, mark))

    def begin_micro_batch(self, fence: Fence, mark: TargetMark | None = None) -> None:
        self.fate.effect("begin_micro_batch", lambda: self.inner.begin_micro_batch(fence, mark))

    def close_micro_batch(self, fence: Fence, tids: Collection[int], mark: TargetMark | None = None) -> set[int]:
        return self.fate.effect("close_micro_batch", lambda: self.inner.close_micro_batch(fence, tids, mark))

    def trim(self, fence: Fence, below: int, mark: TargetMark | None = None) -> int:
        return self.fate.effect("trim", lambda: self.inner.trim(fence, below, mark))

    def prepare_common_mark(self) -> None:
        self.fate.effect("prepare_common_mark", self.inner.prepare_common_mark)

    def note_common_mark(self, fence: Fence, everywhere_below: int, mark: TargetMark | None = None) -> None:
        self.fate.effect("note_common_mark", lambda: self.inner.note_common_mark(fence, everywhere_below, mark))

    def close(self) -> None:
        self.inner.close()
