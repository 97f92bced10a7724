"""The loop of one worker: how often it looks."""

from __future__ import annotations

import asyncio

from kainite.base.clock import boot_seconds
from kainite.duties.model.records import Picture, Worker
from kainite.duties.programs.programs import DutyPrograms
from kainite.duties.service import FleetService
from kainite.duties.steps.member import Member
from kainite.duties.steps.timing import Timing
from kainite.duties.store.contract import Commit, Put
from kainite.duties.store.memory import MemoryFleetStore

TIMING = Timing(ping=0.5, timeout=30.0)


class Watched(MemoryFleetStore):
    """Notes when it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[float] = []

    def read(self) -> Picture:
        self.reads.append(boot_seconds())
        return super().read()


async def test_a_worker_whose_id_another_one_has_does_not_flood_the_table() -> None:
    store, stop, news = Watched(), asyncio.Event(), asyncio.Event()
    assert store.commit(Commit((Put(Worker("twin", "another's")),)))
    member = Member(Worker("twin", ""), TIMING)
    service = FleetService(store, member, DutyPrograms(None, TIMING.lease, news.set), TIMING, news, stop.set)
    running = asyncio.create_task(service.run(stop, grace=1.0))
    async with asyncio.timeout(30):
        while len(store.reads) < 4:  # noqa: ASYNC110 - nothing else waits for reads
            await asyncio.sleep(0.01)
    stop.set()
    await running
    assert store.reads[3] - store.reads[0] >= 2 * TIMING.ping
