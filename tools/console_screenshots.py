"""Takes the screenshots of docs/console.md: a log of made-up orders, the console on it, and a browser that looks.

Run it with ``make screenshots``. Everything is on this machine: moto stands in for DynamoDB, and this process for the
daemon that owns the log and for the apply job.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from pathlib import Path

from kainite.base.checkpoint import Checkpoint
from kainite.base.clock import epoch_ms
from kainite.base.position import Position
from kainite.kinesis.shards import HashRange
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.client import ReadingReport
from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta, UnitStatus
from kainite.log.state.outcomes import outcomes_partition
from kainite.owner.mount import Mount, mount
from kainite.owner.owner import LogOwner
from kainite.settings import LogSettings, UowSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.touches import Touched
from kainite_demo import services
from support.browser import chromium, opened
from support.console_world import ServedConsole, served_console
from support.owned_log import owned_log

FOLDER = Path(__file__).parents[1] / "docs/console"
SHARDS = tuple(f"shardId-{number:012d}" for number in range(4))
REFUSED = (
    'insert or update on table "order_line" violates foreign key constraint "order_line_product_fkey" [23503]: '
    "Key (product)=(4711) is not present in table product"
)
FAILED, SECONDS = 300, 45
TEXT = """applicationName = orders
streamName = orders
regionName = us-east-1
dynamoDBEndpoint = {endpoint}
kinesisEndpoint = {endpoint}
unitsOfWork = true
logTableName = orders-log
target = sqlite:///orders.db
consoleOperators = local
"""
SHOTS = {"overview": "", "units": "units", "unit": f"unit?uow=T-{FAILED + 2:05d}", "apply": "apply", "shards": "shards"}


def unit(number: int) -> Fragment:
    """Returns a whole unit: an order that changes, and a line of it."""
    key, total = {"id": 1000 + number}, {"total": f"{number % 90}.90"}
    order = Delta("sales.order", Operation.UPDATE, key, {**key, "status": "paid"} | total, {"status": "open"} | total)
    of_line = {"order_id": 1000 + number, "line": 1}
    line = Delta("sales.order_line", Operation.INSERT, of_line, {**of_line, "product": 4711, "qty": 2}, {})
    touched = Touched(frozenset([2 * number, 2 * number + 1]), frozenset(), ("sales.order", "sales.order_line"))
    now = epoch_ms()
    committed, arrived = (now - 900) * 1_000_000, now - 400
    return Fragment(f"T-{number:05d}", (order, line), touched, (UnitEnd(2, None),), time=committed, arrived_ms=arrived)


class MadeUpJob:
    """An apply job that commits what it finds, but for one unit and those behind it."""

    def __init__(self, store: DynamoDBStore, owner: LogOwner, job: Mount) -> None:
        self._store, self._owner, self._job = store, owner, job
        self._next, self._number, self._draw = job.first_id, 0, random.Random(1)

    def step(self) -> None:
        """Carries out one micro-batch."""
        ready = [
            unit
            for unit in self._owner.state.units.values()
            if unit.status is UnitStatus.IN_PROGRESS and not unit.cause
        ]
        outcomes = [self._outcome(unit.tid, int(unit.uow[2:])) for unit in ready[: self._draw.randint(8, 40)]]
        if outcomes:
            self._number += 1
            meta = StatusMeta(tuple(outcomes), mark=(self._job.generation, self._number))
            batch = Batch(self._next, self._job.generation, epoch_ms(), (Entry(EntryKind.STATUS, meta),))
            assert self._store.put_batch(outcomes_partition("0"), batch, f"n{self._next}") is None
            self._next += 1

    def _outcome(self, tid: int, number: int) -> Outcome:
        if number == FAILED:
            return Outcome(tid, UnitStatus.FAILED, 0, REFUSED)
        if FAILED < number <= FAILED + 5:
            before = next(unit.tid for unit in self._owner.state.units.values() if unit.uow == f"T-{number - 1:05d}")
            return Outcome(tid, UnitStatus.BLOCKED, None, f"waits for {before}")
        if number == FAILED + 40:
            return Outcome(tid, UnitStatus.IN_PROGRESS, 2, "the row is locked [55P03]: another session holds it")
        return Outcome(tid, UnitStatus.COMMITTED, tid % 4, None, epoch_ms())


async def feed(owner: LogOwner, job: MadeUpJob) -> None:
    """Appends units and applies them, for so many seconds."""
    draw, number = random.Random(2), 0
    for step in range(SECONDS * 2):
        units = [unit(number + each) for each in range(draw.randint(6, 18))]
        number += len(units)
        at, after = Position(step + 1), Position(step) if step else None
        await owner.append(SHARDS[0], at, at, units, after)
        owner.report(ReadingReport(frozenset(SHARDS), {shard: draw.random() * 2 for shard in SHARDS}))
        await asyncio.to_thread(job.step)
        await asyncio.sleep(0.5)


async def renew(leases: LeaseTable, held: list[Lease]) -> None:
    """Renews all leases each second, as the daemons that hold them."""
    while True:
        for place, lease in enumerate(held):
            renewed = await asyncio.to_thread(leases.renew, lease)
            held[place] = lease if renewed is None else renewed
        await asyncio.sleep(1.0)


async def look(console: ServedConsole) -> None:
    """Takes the pictures."""
    FOLDER.mkdir(exist_ok=True)
    async with chromium() as browser, opened(browser, viewport={"width": 1100, "height": 680}) as watched:
        for name, path in SHOTS.items():
            await watched.page.goto(f"{console.url}orders/{path}")
            await watched.page.wait_for_timeout(2_500)
            await watched.page.screenshot(path=FOLDER / f"{name}.png")
        assert watched.problems == [], watched.problems


async def main() -> None:
    """Makes the log, serves the console on it, and takes the pictures."""
    os.environ.update(AWS_ACCESS_KEY_ID="nobody", AWS_SECRET_ACCESS_KEY="nobody", AWS_EC2_METADATA_DISABLED="true")
    with tempfile.TemporaryDirectory() as folder, services.moto(Path(folder) / "moto.log") as address:
        os.chdir(folder)
        endpoint, file = address(), Path("orders.properties")
        await asyncio.to_thread(file.write_text, TEXT.format(endpoint=endpoint))
        dynamodb = services.dynamodb_client(endpoint)
        leases = LeaseTable(dynamodb, "orders")
        leases.create()
        held = list[Lease]()
        for place, shard in enumerate(SHARDS):
            part, at = HashRange(place << 126, ((place + 1) << 126) - 1), Checkpoint(f"4966{place}0271", 3)
            held.append(Lease(shard, f"host-{1 + place % 2}", 7, at, hash_range=part))
            leases.put_new(held[-1])
        store = DynamoDBStore(dynamodb, "orders-log")
        settings = LogSettings("orders-log", "host-1", enabled=True, put_interval=0, poll=0.1, heartbeat=0.5)
        async with owned_log(store, settings, UowSettings()) as owner, served_console(file) as console:
            job = MadeUpJob(store, owner, await asyncio.to_thread(mount, store, outcomes_partition("0"), "apply", 0.2))
            feeding = asyncio.create_task(feed(owner, job))
            renewing = asyncio.create_task(renew(leases, held))
            await asyncio.to_thread(console_looks, console)
            await look(console)
            for task in (feeding, renewing):
                task.cancel()
            await asyncio.gather(feeding, renewing, return_exceptions=True)


def console_looks(console: ServedConsole) -> None:
    """Has the console look again and again, so that its charts have a line."""
    for _ in range(SECONDS - 15):
        asyncio.run(console.ask("/orders/figures.json"))
        asyncio.run(asyncio.sleep(1.0))


if __name__ == "__main__":
    asyncio.run(main())
