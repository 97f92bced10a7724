"""Applications' partitions are mounted as soon as they are free, and served until they are overtaken."""

from __future__ import annotations

import asyncio

from kainite.owner.mount import mount
from kainite.store.memory import MemoryStore
from kainite.waltz.owning import owning
from kainite.waltz.partition import application_partition
from kainite.waltz.service import Applications
from support.application_world import SETTINGS
from support.waiting import until

NAME = application_partition(SETTINGS.partition, 0)


class Told(Applications):
    """Keeps which partitions are served."""

    def __init__(self) -> None:
        super().__init__()
        self.served: set[int] = set()

    def owns(self, number, partition):  # type: ignore[no-untyped-def]
        self.served.add(number)
        super().owns(number, partition)

    def owns_no_more(self, number: int, why: str) -> None:
        self.served.discard(number)
        super().owns_no_more(number, why)


async def test_a_partition_that_another_process_holds_is_served_when_it_is_free() -> None:
    store, told = MemoryStore(), Told()
    held = mount(store, NAME, "other", 1000.0)
    async with owning(told, store, SETTINGS, 2, "10.0.0.7:1"):
        await until(lambda: told.served == {1})
        await asyncio.to_thread(held.release)
        await until(lambda: told.served == {0, 1})
        head = store.read_head(NAME)
        assert head is not None
        assert head.address == "10.0.0.7:1"
    assert told.served == set()
