"""A log that grows batch by batch, as its owner and an apply job would write it, for those who follow logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Final

from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, Entry, EntryKind, FragmentMeta, Outcome, StatusMeta, UnitMeta
from kainite.log.state.outcomes import outcomes_partition
from kainite.owner.mount import mount
from kainite.store.memory import MemoryStore
from kainite.uow.touches import Touched

P: Final = "0"
_DATA: Final = b'[{"table":"t","op":"upsert","key":{"id":1},"row":{"id":1}}]'


class GrowingLog:
    """A log, and the outcomes partition beside it, without an owner's and an apply job's process.

    Args:
        store: the store; None: one in memory.
    """

    def __init__(self, store: LogStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.log = mount(self.store, P, "w", 0.1)
        self.job = mount(self.store, outcomes_partition(P), "apply", 0.1)
        self.next_id, self.next_outcome = self.log.first_id, self.job.first_id

    def append(self, *entries: Entry) -> None:
        batch = Batch(self.next_id, self.log.generation, 1_000 + self.next_id, entries)
        assert self.store.put_batch(P, batch, f"n{self.next_id}") is None
        self.next_id += len(entries)

    def units(self, names: Iterable[str], size: int = 500) -> None:
        """Appends units, so many in a batch."""
        left = iter(names)
        while entries := [
            one_entry(EntryKind.UNIT, UnitMeta(name, 1, ("shard-0",)), f"t{number % 7}")
            for number, name in enumerate(islice(left, size))
        ]:
            self.append(*entries)

    def unit(self, name: str, table: str = "t") -> int:
        """Appends a unit; returns its id."""
        self.append(one_entry(EntryKind.UNIT, UnitMeta(name, 1, ("shard-0",)), table))
        return self.next_id - 1

    def settle(self, *outcomes: Outcome) -> int:
        """Appends outcomes as an apply job does; returns their id there."""
        batch = Batch(self.next_outcome, self.job.generation, 5_000, (Entry(EntryKind.STATUS, StatusMeta(outcomes)),))
        assert self.store.put_batch(outcomes_partition(P), batch, f"n{self.next_outcome}") is None
        self.next_outcome += 1
        return self.next_outcome - 1

    def copy(self, through: int, *outcomes: Outcome) -> None:
        """Copies outcomes into the log as the owner does."""
        self.append(Entry(EntryKind.STATUS, StatusMeta(outcomes, through)))

    def truncate(self, below: int) -> None:
        head = self.store.read_head(P)
        assert head is not None
        assert self.store.swap_head(P, replace(head, low_water_mark=below, version=f"v{below}"), head)
        self.store.truncate(P, below)


def one_entry(kind: EntryKind, meta: FragmentMeta | UnitMeta, table: str = "t") -> Entry:
    return Entry(kind, meta, Touched(frozenset([1]), frozenset(), (table,)), _DATA)
