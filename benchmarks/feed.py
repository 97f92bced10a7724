"""Measures how long a unit of work takes from its append to the apply job's driver, and what idling reads, with and
without the feed of the log's owner.

The owner, as the daemon runs it, and the driver's follower are real, on moto's DynamoDB in a process of its own. Units
are appended one by one at random intervals, as on a quiet day; the follower polls and waits as the apply job does
between micro-batches. Read units are computed from the requests by DynamoDB's rules: 1 for a strong read of up to 4 KB,
half of that for another one; an item as JSON is somewhat longer than DynamoDB counts.

    python benchmarks/feed.py [--units N] [--idle SECONDS] [--settle SECONDS] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import random
import statistics
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import boto3
from runs.machine import warn_unless_quiet

from kainite.base.position import Position
from kainite.peers.access import Access
from kainite.peers.feed.following import LogFeed
from kainite.peers.sharing.lease_holders import LeaseHolders
from kainite.peers.sharing.shared_log import SharedLog, open_shared_log
from kainite.settings import ApplySettings, LogSettings, UowSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.packing import pack
from kainite.uow.touches import Touched
from kainite_demo import services
from kainite_spark.driver.feeding import beside, feed_of
from kainite_spark.driver.follower import LogFollower
from kainite_spark.driver.job import LONGEST_IDLE_S
from kainite_spark.driver.payloads import Payloads

APPLY = ApplySettings()


@dataclass(frozen=True)
class Result:
    """Milliseconds from an append to the driver, and from the append's being durable; read units a second of both sides
    while nothing is appended."""

    fed: bool
    median_ms: float
    p99_ms: float
    after_durable_ms: float
    idle_read_units: float


class Reads:
    """The read units of a client's requests."""

    def __init__(self, client: Any) -> None:
        self.units = 0.0
        self._strong = threading.local()
        client.meta.events.register("provide-client-params.dynamodb", self._asked)
        client.meta.events.register("after-call.dynamodb", self._answered)

    def _asked(self, params: Any, **_: Any) -> None:
        self._strong.value = params.get("ConsistentRead", False)

    def _answered(self, http_response: Any, model: Any, **_: Any) -> None:
        if model.name in ("GetItem", "Query"):
            pages = max(1, math.ceil(len(http_response.content) / 4096))
            self.units += pages if self._strong.value else pages / 2


class Driver:
    """The driver of an apply job that applies nothing: it follows the log, and notes when it has each entry.

    Args:
        store: the log's store.
        feed: the feed of the log's owner; None means that the log is read.
    """

    def __init__(self, store: DynamoDBStore, feed: LogFeed | None) -> None:
        self._feed = feed
        self._follower = LogFollower(store, "0", feed=feed, payloads=Payloads(APPLY.feed_bytes))
        self._stop = threading.Event()
        self.had: list[tuple[float, int]] = []
        """Pairs of a time and an id: at that time the driver had everything below that id."""

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        self._follower.start()
        pause = APPLY.idle
        while not self._stop.is_set():
            before = self._follower.next_id
            self._follower.poll()
            if self._follower.next_id > before:
                self.had.append((time.perf_counter(), self._follower.next_id))
                pause = APPLY.idle
            elif self._feed is not None and self._feed.is_following:
                self._feed.wait(self._stop, pause)
                pause = min(pause * 1.5, LONGEST_IDLE_S)
            else:
                self._stop.wait(pause)
                pause = min(pause * 1.5, LONGEST_IDLE_S)

    def has(self, next_id: int) -> bool:
        """Returns whether the follower has every entry below ``next_id``."""
        return bool(self.had) and self.had[-1][1] >= next_id

    def when(self, next_id: int) -> float:
        """Returns when the follower had every entry below ``next_id``."""
        return next(at for at, had in self.had if had >= next_id)


def unit(number: int) -> Fragment:
    deltas = [
        Delta(
            "order_line", Operation.INSERT, {"id": number * 5 + line}, {"id": number * 5 + line, "qty": line}, {}, line
        )
        for line in range(5)
    ]
    written = frozenset(range(number * 10, number * 10 + 10))
    (piece,) = pack([deltas])
    return replace(
        Fragment(f"T-{number}", tuple(deltas), Touched(written, frozenset()), (UnitEnd(len(deltas), number + 1),)),
        piece=piece,
    )


@contextlib.asynccontextmanager
async def owning(store: DynamoDBStore, settings: LogSettings) -> AsyncIterator[SharedLog]:
    nobody = LeaseHolders(lambda _: None, time.monotonic)
    async with open_shared_log(store, settings, UowSettings(), "s", holders=nobody) as (log, _):
        await log.reached()
        yield log


async def measured(endpoint: str, table: str, options: argparse.Namespace, *, fed: bool) -> Result:
    log = LogSettings(table=table, owner="bench", enabled=True)
    clients = [_client(endpoint), _client(endpoint)]
    owners, drivers = (DynamoDBStore(client, table) for client in clients)
    async with owning(owners, log) as shared:
        feed = feed_of(drivers, log, APPLY, Access(), "driver") if fed else None
        driver = Driver(drivers, feed)
        with beside(feed) if feed else contextlib.nullcontext(), driver.running():
            await asyncio.sleep(options.settle)
            waits = await _appended(shared, options.units)
            while not driver.has(waits[-1][2]):  # noqa: ASYNC110 - the driver is a thread
                await asyncio.sleep(0.05)
            await asyncio.sleep(options.settle)
            meters = [Reads(client) for client in clients]
            await asyncio.sleep(options.idle)
            reads = sum(meter.units for meter in meters)
    took = sorted((driver.when(next_id) - began) * 1000 for began, _, next_id in waits)
    behind = statistics.median((driver.when(next_id) - durable) * 1000 for _, durable, next_id in waits)
    p99 = took[min(len(took) - 1, len(took) * 99 // 100)]
    return Result(fed, statistics.median(took), p99, behind, reads / options.idle)


async def _appended(shared: SharedLog, units: int) -> list[tuple[float, float, int]]:
    """Appends units; returns for each when it was appended, when it was durable, and the id behind it."""
    chance, waits = random.Random(5), []
    for number in range(units):
        await asyncio.sleep(chance.uniform(0.02, 0.4))
        began = time.perf_counter()
        await shared.append("s0", Position(number), Position(number), [unit(number)], await shared.position("s0"))
        owner = shared.owner
        assert owner is not None
        waits.append((began, time.perf_counter(), owner.durable_id))
    return waits


def _client(endpoint: str) -> Any:
    make = partial(boto3.client, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    return make("dynamodb", endpoint_url=endpoint)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=150)
    parser.add_argument("--idle", type=float, default=10.0)
    parser.add_argument("--settle", type=float, default=5.0, help="seconds before and behind the units, unmeasured")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    with tempfile.TemporaryDirectory() as folder, services.moto(Path(folder) / "moto.log") as server:
        endpoint = server()
        results = [asyncio.run(measured(endpoint, f"log-{fed}", options, fed=fed)) for fed in (False, True)]
    if options.json:
        print(json.dumps([asdict(result) for result in results]))
        return
    for result in results:
        print(
            f"{'fed ' if result.fed else 'read'}  append to driver: median {result.median_ms:.0f} ms, 99 %"
            f" {result.p99_ms:.0f} ms; from durable to driver {result.after_durable_ms:.0f} ms; read units a second"
            f" when idle: {result.idle_read_units:.1f}"
        )


if __name__ == "__main__":
    main()
