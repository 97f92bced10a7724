"""A stream and a lease table on moto's server, and what a daemon needs to work on them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.shard_source import polling
from kainite.leases.keeper import Gained, LeaseKeeper
from kainite.leases.streams import only
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.format.entry import Entry, EntryKind, UnitMeta
from kainite.observe.meter import SILENT, Meter
from kainite.owner.owner import LogOwner
from kainite.settings import (
    ChildSettings,
    InitialPosition,
    LeaseSettings,
    LogSettings,
    StreamSettings,
    UowSettings,
)
from kainite.store.memory import MemoryStore
from kainite.uow.admission import Admission
from kainite.uow.signing import Signing
from kainite.worker.retrieval_mode import RENDER
from kainite.worker.shard_consumer import ConsumerParts, ShardConsumer
from kainite.worker.units_of_work import UnitsOfWork
from support.owned_log import owned_log

CHILDREN = Path(__file__).parents[1] / "children"
LIMIT = 20.0
"""Seconds that a test waits for an effect that should come at once."""


def scripted(script: dict[str, Any], transcript: Path | None = None) -> tuple[str, ...]:
    """Returns the command of a child that does what ``script`` says; see ``tests/children/scripted.py``."""
    arguments = [str(transcript)] if transcript else []
    return (sys.executable, str(CHILDREN / "scripted.py"), json.dumps(script), *arguments)


def delta(uow: str, key: int = 1, *, end: bool = True) -> dict[str, Any]:
    """Returns the fields of an emit line: one delta, and the end of its unit."""
    change = {"uow": uow, "table": "t", "op": "upsert", "key": {"id": key}, "row": {"id": key}}
    return {"deltas": [change, {"uow": uow, "end": True, "count": 1}] if end else [change]}


def units_in(store: MemoryStore, partition: str = "0") -> list[str]:
    """Returns the names of the units in the log, in log order."""
    entries: list[Entry] = [entry for batch in store.read_batches(partition, 0, strong=True) for entry in batch.entries]
    return [e.meta.uow for e in entries if e.kind is EntryKind.UNIT and isinstance(e.meta, UnitMeta)]


def transcript_actions(path: Path) -> list[str]:
    """Returns the actions that a scripted child was given, checkpoint replies included."""
    return [json.loads(line)["action"] for line in path.read_text().splitlines()] if path.exists() else []


@dataclass
class World:
    """One stream and one application."""

    kinesis: Any
    dynamodb: Any
    name: str
    tmp: Path
    latest: bool = False
    empty_batches: bool = False

    def create_stream(self, shards: int = 1) -> None:
        self.kinesis.create_stream(StreamName=self.name, ShardCount=shards)

    def put(self, *payloads: str, shard: int = 0, shards: int = 1) -> list[str]:
        """Puts records on one shard; returns their sequence numbers."""
        key = str(2**128 // shards * shard)
        answers = [
            self.kinesis.put_record(StreamName=self.name, Data=payload.encode(), PartitionKey="k", ExplicitHashKey=key)
            for payload in payloads
        ]
        return [answer["SequenceNumber"] for answer in answers]

    @property
    def stream_settings(self) -> StreamSettings:
        return StreamSettings(
            self.name,
            initial_position=InitialPosition.LATEST if self.latest else InitialPosition.TRIM_HORIZON,
            idle_between_reads=0.05,
            parent_poll=0.1,
            call_with_empty_batches=self.empty_batches,
        )

    def child_settings(self, command: Sequence[str]) -> ChildSettings:
        return ChildSettings(
            tuple(command), shutdown_grace=5, kill_after=1, restart_backoff=0.01, restart_backoff_max=0.05,
            poison_tries=3,
        )  # fmt: skip

    def stored_checkpoint(self, shard: str = "shardId-000000000000") -> str | None:
        answer = self.dynamodb.get_item(TableName=self.name, Key={"leaseKey": {"S": shard}}, ConsistentRead=True)
        checkpoint: str | None = answer.get("Item", {}).get("checkpoint", {}).get("S")
        return checkpoint

    @asynccontextmanager
    async def keeper(self, stream: StreamClient) -> AsyncIterator[LeaseKeeper]:
        leases = LeaseSettings(application=self.name, table=self.name, worker_id="w", failover=5)
        keeper = LeaseKeeper(
            LeaseTable(self.dynamodb, self.name), only(stream, self.stream_settings), leases, self.stream_settings
        )
        task = asyncio.create_task(keeper.run())
        try:
            yield keeper
        finally:
            task.cancel()
            await asyncio.wait({task})
            await keeper.close()

    @asynccontextmanager
    async def log(self, store: MemoryStore) -> AsyncIterator[LogOwner]:
        settings = LogSettings(table="log", owner="w", enabled=True, put_interval=0)
        async with owned_log(store, settings, UowSettings()) as owner:
            yield owner

    @asynccontextmanager
    async def consumer(
        self, command: Sequence[str], *, log: Any = None, meter: Meter = SILENT, among: str = "", **changes: Any
    ) -> AsyncIterator[tuple[ShardConsumer, asyncio.Task[None]]]:
        """Runs a consumer of the stream's first shard; cancels it at the end if it still runs.

        ``among``: the stream's id in an application of several streams.
        """
        stream = StreamClient(self.kinesis, self.name, id=among)
        units = (lambda: UnitsOfWork(log, Admission(Signing(None)))) if log is not None else None
        child = replace(self.child_settings(command), **changes)
        open_source = polling(stream, render=RENDER[child.protocol])
        async with self.keeper(stream) as keeper:
            gained = await asyncio.wait_for(keeper.next_event(), LIMIT)
            assert isinstance(gained, Gained)
            parts = ConsumerParts(open_source, keeper, self.stream_settings, child, units, meter)
            consumer = ShardConsumer(gained.lease, lambda: parts)
            task = asyncio.create_task(consumer.run())
            try:
                yield consumer, task
            finally:
                task.cancel()
                await asyncio.wait({task})
