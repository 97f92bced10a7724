"""No record that comes after the log's beginning stays unread, whatever happens to shards and leases meanwhile.

Workers sync the leases with the stream, by scans that may be old, and die anywhere in it. ListShards and the log fail.
Shards split and merge at any moment, also in the middle of a sync. Leases of finished shards are deleted, and all
leases by hand. When everything works again, each record after the beginning has been read, a shard's after its
parents'.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import boto3
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from kainite.base.checkpoint import LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseTableUnavailableError, LogUnavailableError, StreamUnavailableError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import first_hole
from kainite.leases.lineage import may_start
from kainite.leases.shard_sync.cleanup import completed, delete_leases
from kainite.leases.shard_sync.create_leases import create_child_leases, create_missing
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import InitialPosition, StreamSettings
from support.kinesis_double import KinesisDouble, stream_of
from support.names import unique

WORKERS = st.sampled_from(["one", "two"])
PLACES = st.integers(0, 7)
DEATHS = st.sampled_from([None, None, 0, 1, 2])
NOON = 1_700_000_000.0
AT = NOON + 4.0
FAILURES = (LeaseTableUnavailableError, LogUnavailableError, StreamUnavailableError)


class DyingTable(LeaseTable):
    """A lease table whose user dies before one of the leases that it creates.

    Attributes:
        left: how many leases are created before that; None for a user who lives.
        meanwhile: happens before each one is created.
    """

    left: int | None = None
    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def put_new(self, lease: Lease) -> bool:
        if self.left == 0:
            raise LeaseTableUnavailableError("the worker is dead")
        self.left = self.left and self.left - 1
        self.meanwhile()
        return super().put_new(lease)


class Resharding(RuleBasedStateMachine):
    """A stream with a record in each open shard each second, its leases, and two workers."""

    dynamodb: Any
    initial = InitialPosition.LATEST

    def __init__(self) -> None:
        super().__init__()
        self.double = KinesisDouble(shards=2)
        self.double.clock = lambda: self.now
        self.now = NOON
        self.opened = dict.fromkeys(self.double.shards, NOON)
        self.table = DyingTable(self.dynamodb, unique("leases"))
        self.table.create()
        self.scans: dict[str, tuple[Lease, ...]] = {}
        self.begun: float | None = None
        self.read: set[tuple[str, float]] = set()
        self.settings = StreamSettings("orders")

    @initialize(position=st.sampled_from([InitialPosition.LATEST, *InitialPosition]))
    def start(self, position: InitialPosition) -> None:
        self.initial = position
        self.settings = StreamSettings("orders", initial_position=position, initial_timestamp=AT)

    def teardown(self) -> None:
        try:
            self.heal()
        finally:
            self.double.close()

    def on_stream(self, work: Callable[[StreamClient], Any]) -> None:
        """Does something that may fail."""
        with stream_of(self.double) as stream, contextlib.suppress(*FAILURES):
            asyncio.run(work(stream))
        self.table.left = None

    async def begin(self, checkpoint: Checkpoint, timestamp: float | None) -> float:
        self.begun = (self.now if checkpoint == LATEST else AT) if self.begun is None else self.begun
        return self.begun

    def reshard(self, place: int) -> None:
        """Splits a shard, or merges it with its neighbour."""
        shards = self.double.shards
        names = sorted((name for name in shards if shards[name].open), key=lambda name: shards[name].start)
        one, other = names[place % len(names)], names[(place + 1) % len(names)]
        if place % 3 == 0 and shards[one].end + 1 == shards[other].start:
            self.double.merge(one, other)
        elif len(shards) < 24:
            self.double.split(one)
        for name in shards:
            self.opened.setdefault(name, self.now)

    def records(self, name: str) -> set[tuple[str, float]]:
        """Returns the shard's records: one for each second in which it was open."""
        shard = self.double.shards[name]
        end = self.now if shard.open else shard.closed_at
        return {(name, self.opened[name] + second) for second in range(int(end - self.opened[name]))}

    def wanted(self, name: str) -> set[tuple[str, float]]:
        """Returns the records of a shard that have to be read."""
        since = NOON if self.initial == InitialPosition.TRIM_HORIZON else self.begun
        return {record for record in self.records(name) if since is not None and record[1] >= since}

    @rule(seconds=st.integers(1, 3))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(place=PLACES)
    def reshards(self, place: int) -> None:
        self.now += 1
        self.reshard(place)

    @rule(worker=WORKERS)
    def scan(self, worker: str) -> None:
        self.scans[worker] = self.table.scan()

    @rule(worker=WORKERS, dies=DEATHS, fails=st.integers(0, 3), meanwhile=st.none() | PLACES)
    def sync(self, worker: str, dies: int | None, fails: int, meanwhile: int | None) -> None:
        """Creates missing leases, by the worker's last scan."""
        leases = self.scans.pop(worker, None) or self.table.scan()
        self.table.left = dies

        def change() -> None:
            if meanwhile is not None:
                self.now += 1
                self.reshard(meanwhile)

        async def begin(checkpoint: Checkpoint, timestamp: float | None) -> float:
            if fails == 1:
                raise LogUnavailableError("away")
            begun = await self.begin(checkpoint, timestamp)
            change()
            if fails == 2:
                self.double.fail("ListShards", "LimitExceededException")
            return begun

        async def work(stream: StreamClient) -> None:
            self.table.meanwhile = change
            await create_missing(self.table, stream, self.settings, leases, begin)

        self.on_stream(work)
        self.table.meanwhile = lambda: None

    @rule(place=PLACES, dies=DEATHS)
    def read_one(self, place: int, dies: int | None) -> None:
        leases = self.table.scan()
        checkpoints = {lease.key: lease.checkpoint for lease in leases}
        ready = [
            lease for lease in leases
            if lease.checkpoint != SHARD_END and may_start(lease.parents, checkpoints)
        ]  # fmt: skip
        if not ready:
            return
        lease = ready[place % len(ready)]
        if lease.checkpoint == TRIM_HORIZON:
            self.read |= self.records(lease.key)
        else:
            asyncio.run(self.begin(lease.checkpoint, AT))
            self.read |= self.wanted(lease.key)
        for parent in lease.parents & self.double.shards.keys():
            assert self.wanted(parent) <= self.read, f"{lease.key} is read before {parent}"
        if not self.double.shards[lease.key].open:
            self.table.left = dies
            self.end(lease)

    def end(self, lease: Lease) -> None:
        async def work(stream: StreamClient) -> None:
            children = [shard for shard in stream.list_shards() if lease.key in shard.parents]
            if await create_child_leases(self.table, stream, self.settings, lease, children, self.begin):
                self.table.checkpoint(lease, SHARD_END)

        self.on_stream(work)

    @rule()
    def clean_up(self) -> None:
        delete_leases(self.table, completed(self.table.scan()))

    @rule(sure=st.integers(0, 4))
    def delete_all_by_hand(self, sure: int) -> None:
        """Deletes all leases; who does that has stopped the workers."""
        if sure == 0:
            self.scans.clear()
            delete_leases(self.table, [lease.key for lease in self.table.scan()])

    def heal(self) -> None:
        """Lets everything work: audits find what is missing, and all shards are read."""
        self.now += 1
        self.scans.clear()
        for _ in range(4 * len(self.double.shards)):
            active = [lease for lease in self.table.scan() if lease.checkpoint != SHARD_END]
            if first_hole(lease.hash_range for lease in active if lease.hash_range) is not None:
                self.sync("one", None, 0, None)
            for place in range(8):
                self.read_one(place, None)
            if self.all_open_are_read():
                break
        unread = [name for name in self.double.shards if not self.wanted(name) <= self.read]
        assert not unread, (unread, self.begun)

    def all_open_are_read(self) -> bool:
        found = {lease.key for lease in self.table.scan() if lease.checkpoint != SHARD_END}
        open_shards = {name for name, shard in self.double.shards.items() if shard.open}
        return found == open_shards and all(self.wanted(name) <= self.read for name in open_shards)


def test_every_record_after_the_beginning_is_read(moto_endpoint: str) -> None:
    Resharding.dynamodb = boto3.client("dynamodb", endpoint_url=moto_endpoint, region_name="us-east-1")
    # Without shrinking: each step costs several calls to real servers, and a failure shows its steps as they were.
    run_state_machine_as_test(
        Resharding,
        settings=settings(
            max_examples=15,
            stateful_step_count=20,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
