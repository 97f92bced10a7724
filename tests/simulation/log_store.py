"""The serialization log's store behind faults: each call of the contract is one request, a read is one for each page.

The store itself is :class:`~kainite.store.memory.MemoryStore`; batches go through the real codec. A read without
``strong`` may lack the last batches, as DynamoDB's eventually consistent reads may. The keys of a striped partition are
read one after another. Other schedules have the real store of DynamoDB: :mod:`simulation.log_items`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from kainite.base.errors import LogUnavailableError
from kainite.log.contract import LogHead, Slot
from kainite.log.format.entry import Batch
from kainite.store.striping import tail_of
from simulation.faults import Effects, Faults
from simulation.loop import Process

PAGE = 3
"""Most batches that one page of a read has."""


class Tenure(Protocol):
    """Judges what owners do with the log's partitions (``Tenures`` of :mod:`simulation.hosts`)."""

    def claimed(self, partition: str, name: str, *, released: bool) -> None: ...

    def renewed(self, partition: str, generation: int) -> None: ...

    def put(self, partition: str, batch: Batch, nonce: str, there: Slot | None) -> None: ...

    def lacking(self, partition: str, first_id: int) -> None: ...


class SimLogStore:
    """The store as one process has it; implements :class:`~kainite.log.contract.LogStore`.

    Args:
        store: the store itself.
        faults: of the run.
        process: who uses it.
        tenure: is told what the process does as an owner.
    """

    def __init__(self, store: Any, faults: Faults, process: Process, tenure: Tenure) -> None:
        self._store = store
        self._tenure = tenure
        self._faults = faults
        self._effects = Effects(faults, process, "log", _unanswered)
        self._name = process.name

    def __getattr__(self, name: str) -> Any:
        method: Callable[..., Any] = getattr(self._store, name)

        def call(*args: Any, **more: Any) -> Any:
            return self._effects.call(name, lambda: method(*args, **more))

        return call

    def create(self) -> None:
        """Does nothing: the table is there."""

    def read_tail(self, partition: str) -> Slot | None:
        def last(stripe: int | None) -> Slot | None:
            found: Slot | None = self._effects.call("read_tail", lambda: self._store.last_slot(partition, stripe))
            return found

        return tail_of(last)

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        def put() -> Slot | None:
            there: Slot | None = self._store.put_batch(partition, batch, nonce)
            self._tenure.put(partition, batch, nonce, there)
            return there

        return self._effects.call("put_batch", put)

    def swap_head(self, partition: str, new: LogHead, expected: LogHead | None) -> bool:
        def swap() -> bool:
            swapped: bool = self._store.swap_head(partition, new, expected)
            if swapped and (expected is None or new.generation > expected.generation):
                self._tenure.claimed(partition, self._name, released=expected is None or expected.released)
            elif swapped and not new.released:
                self._tenure.renewed(partition, new.generation)
            return swapped

        return self._effects.call("swap_head", swap)

    def read_batches(
        self, partition: str, first_id: int, last_id: int | None = None, *, data: bool = True, strong: bool = False
    ) -> Iterator[Batch]:
        following = first_id
        while True:
            page, more = self._effects.call(
                f"read {partition}",
                lambda at=following: self._page(partition, at, last_id, data, strong),  # type: ignore[misc]
            )
            yield from page
            if not more:
                return
            following = page[-1].last_id + 1

    def _page(
        self, partition: str, first_id: int, last_id: int | None, data: bool, strong: bool
    ) -> tuple[list[Batch], bool]:
        found = list(self._store.read_batches(partition, first_id, last_id, data=data, strong=strong))
        size = PAGE
        if not strong and found:
            name = self._faults.named(f"{self._name} stale {partition}")
            if self._faults.chance("stale", name) < 0.2 and self._faults.hub.now < self._faults.until:
                found = found[: int(len(found) * self._faults.chance("stale by", name))]
        return found[:size], len(found) > size


def _unanswered(name: str) -> Exception:
    return LogUnavailableError(f"log store: {name} was not answered")
