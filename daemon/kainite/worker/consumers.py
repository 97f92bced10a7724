"""Starts and ends the daemon's shard consumers: one for each lease gained, at most one a shard at any time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial

from kainite.base.logs import event
from kainite.leases.keeper import Gained, HandingOver, HeldLease, LeaseKeeper, Lost, RestartWanted
from kainite.leases.table.request import LeaseRequest
from kainite.observe.shard_status import ShardStatus, Standstill
from kainite.worker.shard_consumer import ConsumerParts, ShardConsumer
from kainite.worker.shard_reading import ShardReading

logger = logging.getLogger(__name__)


class Consumers:
    """Starts a consumer when a lease is gained, and ends it when the lease goes.

    Args:
        keeper: holds the leases.
        parts: returns what the consumers of a shard's stream share, by the shard's key; called again for each child.
        group: the task group in which the consumers run.
    """

    def __init__(self, keeper: LeaseKeeper, parts: Callable[[str], ConsumerParts], group: asyncio.TaskGroup) -> None:
        self._keeper = keeper
        self._parts = parts
        self._group = group
        self._stopping = False
        self._running: dict[HeldLease, tuple[ShardConsumer, asyncio.Task[None]]] = {}
        self._unread: dict[HeldLease, float] = {}  # leases that were gained and have no consumer, and since when

    def statuses(self) -> tuple[ShardStatus, ...]:
        """Returns what each consumer does at this moment, and which leases are held without one."""
        consumed = (consumer.status() for consumer, _ in self._running.values())
        return (*consumed, *self._held_and_unread())

    def _held_and_unread(self) -> Iterator[ShardStatus]:
        """Yields the leases that may be read and have no consumer: between two steps, or where there is a defect."""
        now = asyncio.get_running_loop().time()
        unread = [held for held in self._keeper.held if held.started and held not in self._running]
        self._unread = {held: self._unread.get(held, now) for held in unread}
        for held, since in self._unread.items():
            yield ShardStatus(held.shard_id, "HELD", standstill=Standstill(now - since, "its lease is held, not read"))

    def readings(self) -> dict[str, ShardReading]:
        """Returns the reading of each shard that has a consumer."""
        return {lease.shard_id: consumer.reading for lease, (consumer, _) in self._running.items()}

    def read_again(self) -> None:
        """Makes those readers read sooner that do not know whether they have read all: a unit of work waits for it."""
        for consumer, _ in self._running.values():
            consumer.reading.read_again()

    async def follow_leases(self) -> None:
        """Starts a consumer for each lease gained; ends it when the lease is lost or handed over. Runs until cancelled.

        A lease that has been released or lost since it was gained gets no consumer: nobody would tell it to end.
        After a loss the grace is shorter: the child has ended, killed if need be, before another worker has had the
        shard for the failover time.
        """
        while True:
            match await self._keeper.next_event():
                case Gained(lease) if not self._stopping and lease in self._keeper.held:
                    self._start(lease)
                case HandingOver(lease) if lease in self._running:
                    consumer, task = self._running[lease]
                    consumer.hand_over()
                    self._group.create_task(self._hand_over(lease, task))
                case RestartWanted(lease, request):
                    self._restart(lease, request)
                case Lost(lease) if lease in self._running:
                    consumer, task = self._running[lease]
                    consumer.lose()
                    child = self._parts(lease.shard_id).child_settings
                    grace = min(child.shutdown_grace, max(0.0, self._keeper.overlap - child.kill_after))
                    self._group.create_task(self._end(task, grace))

    async def stop(self) -> None:
        """Ends all consumers within the grace; no lease is taken from now on."""
        self._stopping = True
        self._keeper.stop_taking()
        running = tuple(self._running.items())
        for _, (consumer, _) in running:
            consumer.stop()
        await asyncio.gather(*(self._end(task, self._grace(lease)) for lease, (_, task) in running))

    async def give_back(self) -> None:
        """Ends all consumers within the grace, and releases every lease; other workers may take them at once.

        Shards that carry no units of work stay: their children need no log. A consumer that starts meanwhile keeps its
        lease: the next call ends it.
        """
        running = tuple(each for each in self._running.items() if self._keeper.collects(each[0].shard_id))
        for _, (consumer, _) in running:
            consumer.hand_over()
        await asyncio.gather(*(self._end(task, self._grace(lease)) for lease, (_, task) in running))
        for lease in self._keeper.held:
            if lease not in self._running and self._keeper.collects(lease.shard_id):
                await self._keeper.release(lease)

    def kill(self) -> None:
        """Kills all children; the caller cancels their consumers."""
        for consumer, _ in self._running.values():
            consumer.kill()

    def _restart(self, lease: HeldLease, request: LeaseRequest) -> None:
        def tell(done: bool, said: str) -> None:
            self._keeper.restarted(lease, request, said, done=done)

        if lease in self._running:
            self._running[lease][0].restart(tell)
        else:
            tell(False, "no child is at work: the shard has ended, or its daemon is stopping")

    async def _hand_over(self, lease: HeldLease, task: asyncio.Task[None]) -> None:
        """Ends a consumer; hands its lease over where the consumer was cut off before it could."""
        await self._end(task, self._grace(lease))
        if lease in self._keeper.held:
            await self._keeper.hand_over(lease)

    def _start(self, lease: HeldLease) -> None:
        before = [task for other, (_, task) in self._running.items() if other.shard_id == lease.shard_id]
        consumer = ShardConsumer(lease, partial(self._parts, lease.shard_id))
        task = self._group.create_task(_after(before, consumer), name=f"consumer of {lease.shard_id}")
        self._running[lease] = consumer, task
        task.add_done_callback(lambda _: self._running.pop(lease, None))

    def _grace(self, lease: HeldLease) -> float:
        return self._parts(lease.shard_id).child_settings.shutdown_grace

    async def _end(self, task: asyncio.Task[None], grace: float) -> None:
        _, late = await asyncio.wait({task}, timeout=grace)
        if late:
            event(logger, logging.WARNING, "child did not end in time", task=task.get_name(), grace=grace)
            task.cancel()
            await asyncio.wait({task})


async def _after(before: list[asyncio.Task[None]], consumer: ShardConsumer) -> None:
    """Runs a consumer after the earlier ones of its shard have ended."""
    if before:
        await asyncio.wait(before)
    await consumer.run()
