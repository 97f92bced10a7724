"""A partition of applications whose owner is overtaken before it has begun."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kainite.base.errors import LogFencedError
from kainite.log.format.entry import Batch, Entry, EntryKind, ReqId, TransactionMeta
from kainite.owner.mount import Mount
from kainite.store.memory import MemoryStore
from kainite.uow.touches import Touched
from kainite.waltz.partition import ApplicationPartition, application_partition
from kainite.waltz.wire.messages import AppendRequest
from support.application_world import LIMIT_S, SETTINGS, taken_over

P = application_partition("0", 0)


class OvertakenStore(MemoryStore):
    """A store in which another owner takes the partition over, and appends, when the first one reads the locks."""

    newer: Mount | None = None

    def append(self, mounted: Mount, transaction: int, *locks: int) -> None:
        entry = Entry(EntryKind.TRANSACTION, TransactionMeta(0), Touched(frozenset(locks)), data=b"%d" % transaction)
        assert self.put_batch(P, Batch(transaction, mounted.generation, 0, (entry,)), f"{transaction}") is None

    def read_batches(self, *arguments: Any, **more: Any) -> Iterator[Batch]:
        if self.newer is None:
            self.newer = taken_over(self)
            self.append(self.newer, 1, 7)
        yield from super().read_batches(*arguments, **more)


@pytest.mark.parametrize("lock", [3, 7], ids=["free", "of the newer owner's append"])
async def test_an_owner_that_is_overtaken_while_it_loads_tells_nothing_that_its_successor_does_not(lock: int) -> None:
    """Has no lease written before it begins: nothing of the partition is deleted, and each of its appends is fenced."""
    store = OvertakenStore()
    store.append(taken_over(store), 0)
    opened = ApplicationPartition.open(store, replace(SETTINGS, heartbeat=0.01), taken_over(store))
    async with asyncio.timeout(LIMIT_S), opened as partition:
        assert await partition.flush() == 0, "what was durable before its fence stays so"
        decision = await partition.append(
            AppendRequest(ReqId(1, partition.generation, 0, 1), 0, (lock,), (), (), 0, b"x")
        )
        with pytest.raises(LogFencedError):
            await partition.reached(decision.transaction)
    assert [entry.data for batch in store.read_batches(P, 0) for entry in batch.entries] == [b"0", b"1"]
    head = store.read_head(P)
    assert head is not None
    assert store.newer is not None
    assert (head.generation, head.released) == (store.newer.generation, False)
