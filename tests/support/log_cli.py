"""A log with units of every status and its owner at work, for tests of ``kainite log`` and ``kainite uow``."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kainite.base.position import Position
from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta, UnitStatus
from kainite.log.state.outcomes import outcomes_partition
from kainite.owner.mount import mount
from kainite.owner.owner import LogOwner
from kainite.settings import LogSettings, UowSettings
from kainite.store.dynamodb import DynamoDBStore
from support.log_builders import fragment
from support.names import unique
from support.owned_log import owned_log

LIMIT = 10.0
REFUSED = 'violates check "positive" [23514]'


@dataclass
class LogWorld:
    """A log, its owner, and a settings file for commands."""

    properties: Path
    table: str
    store: DynamoDBStore
    owner: LogOwner

    async def kainite(self, *arguments: str) -> tuple[int, str, str]:
        """Runs a command of two words; returns exit status, standard output and standard error."""
        command = [sys.executable, "-m", "kainite", *arguments[:2], "-p", str(self.properties), *arguments[2:]]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "COLUMNS": "200"},
        )
        output, errors = await asyncio.wait_for(process.communicate(), 90)
        return process.returncode or 0, output.decode(), errors.decode()

    async def apply(self, *outcomes: Outcome) -> None:
        """Writes outcomes as an apply job does, and waits until the owner has taken them over."""
        partition = outcomes_partition("0")
        job = await asyncio.to_thread(mount, self.store, partition, "apply", 0.2)
        batch = Batch(job.first_id, job.generation, 0, (Entry(EntryKind.STATUS, StatusMeta(outcomes)),))
        assert self.store.put_batch(partition, batch, f"n{job.first_id}") is None
        async with asyncio.timeout(LIMIT):
            while self.owner.state.through < job.first_id:  # noqa: ASYNC110 - the owner takes the outcomes over on its own
                await asyncio.sleep(0.01)

    async def rows(self, *options: str) -> list[dict[str, Any]]:
        status, output, errors = await self.kainite("log", "show", "--json", *options)
        assert status == 0, errors
        return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
async def log_world(dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> AsyncIterator[LogWorld]:
    """Writes a log with a unit of each status: committed, failed, blocked, in progress, collecting."""
    name, properties = unique("log"), tmp_path / "app.properties"
    properties.write_text(
        f"applicationName = app\nregionName = us-east-1\ndynamoDBEndpoint = {moto_endpoint}\n"
        f"unitsOfWork = true\nlogTableName = {name}\n"
    )
    store = DynamoDBStore(dynamodb, name)
    settings = LogSettings(table=name, owner="w", enabled=True, put_interval=0, poll=0.02, heartbeat=0.1)
    async with owned_log(store, settings, UowSettings()) as owner:
        units = [fragment(uow, [1], count=1) for uow in ("done", "bad", "waiting")]
        await owner.append("shard-0", Position(1), Position(1), [*units, fragment("fresh", [9], count=1)])
        await owner.append("shard-1", Position(1), Position(1), [fragment("half", [5, 6], count=3, number=17)])
        world = LogWorld(properties, name, store, owner)
        await world.apply(
            Outcome(0, UnitStatus.COMMITTED, 1),
            Outcome(1, UnitStatus.FAILED, 0, REFUSED),
            Outcome(2, UnitStatus.BLOCKED, None, "waits for 1"),
        )
        yield world
