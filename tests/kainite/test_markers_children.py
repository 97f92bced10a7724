"""Shard children that speak markers, under a real consumer."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kainite.child.markers.exchange import Batching
from kainite.log.memory_store import MemoryStore
from kainite.settings import ChildProtocol, MarkersSettings
from kainite.shard_states import State
from support.daemon_world import CHILDREN, LIMIT, World, eventually, units_in
from support.kinesis_double import KinesisDouble

SHARD = "shardId-000000000000"


@dataclass
class Worker:
    """``markers_worker.py`` and what it noted."""

    notes_file: Path
    settings: MarkersSettings = MarkersSettings()
    options: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, str(CHILDREN / "markers_worker.py"), str(self.notes_file), *self.options)

    @property
    def changes(self) -> dict[str, Any]:
        return {"protocol": ChildProtocol.MARKERS, "markers": self.settings}

    def notes(self) -> list[dict[str, Any]]:
        return (
            [json.loads(line) for line in self.notes_file.read_text().splitlines()] if self.notes_file.exists() else []
        )

    def requests(self) -> list[list[str]]:
        return [note["messages"] for note in self.notes() if "messages" in note]


@pytest.mark.parametrize(
    ("batching", "requests"),
    [
        (Batching.SINGLE, [["delta:T-1"], ["none"], ["delta:T-2"]]),
        (Batching.WORKER, [["delta:T-1", "none"], ["delta:T-2"]]),
        (Batching.SUPERVISOR, [["delta:T-1", "none"], ["delta:T-2"]]),
    ],
)
async def test_a_shards_whole_life(
    batching: Batching, requests: list[list[str]], ending: World, double: KinesisDouble
) -> None:
    last = [double.put(payload) for payload in (b"delta:T-1", b"none", b"delta:T-2")][-1]
    worker, store = Worker(ending.tmp / "notes", MarkersSettings(batching=batching, batch_size=2)), MemoryStore()
    async with ending.log(store) as log:
        async with ending.consumer(worker.command, log=log, **worker.changes) as (consumer, task):
            await eventually(lambda: ending.stored_checkpoint() == str(last))
            assert units_in(store) == ["T-1", "T-2"]
            double.split(SHARD)
            await asyncio.wait_for(asyncio.shield(task), LIMIT)
            assert consumer.state is State.COMPLETE
    assert ending.stored_checkpoint() == "SHARD_END"
    assert worker.notes()[0] == {"shard": SHARD, "arguments": {}}
    assert worker.requests() == requests
    assert worker.notes()[-1] == {"end": True}
