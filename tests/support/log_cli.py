"""A log with units of every status and its owner at work, for tests of ``kainite log`` and ``kainite uow``."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from kainite.base.position import Position
from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta, UnitStatus
from kainite.log.state.outcomes import outcomes_partition
from kainite.log.state.target_parts import through_of
from kainite.owner.mount import mount
from kainite.owner.owner import LogOwner
from kainite.settings import LogSettings, Settings, UowSettings, load
from kainite.settings.assignment import TableAssignment
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.delta import UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.touches import Touched
from support import ready_kainite
from support.log_builders import delta, fragment
from support.names import unique
from support.owned_log import owned_log

LIMIT = 60.0
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
        command = (*arguments[:2], "-p", str(self.properties), *arguments[2:])
        return await asyncio.to_thread(ready_kainite.run, *command, env={**os.environ, "COLUMNS": "200"})

    async def apply(self, *outcomes: Outcome, target: str = "") -> None:
        """Writes outcomes as an apply job does, and waits until the owner has taken them over."""
        partition = outcomes_partition("0", target)
        job = await asyncio.to_thread(mount, self.store, partition, "apply", 0.2)
        batch = Batch(job.first_id, job.generation, 0, (Entry(EntryKind.STATUS, StatusMeta(outcomes)),))
        assert self.store.put_batch(partition, batch, f"n{job.first_id}") is None
        async with asyncio.timeout(LIMIT):
            state = self.owner.state
            while through_of(target, state.through, state.targets) < job.first_id:  # noqa: ASYNC110 - the owner takes the outcomes over on its own
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


TWO_TARGETS = TableAssignment((("shop", ()), ("crm", ("contact", "crm.*"))))


@pytest.fixture
async def two_targets(dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> AsyncIterator[LogWorld]:
    """Writes a log of the targets shop and crm: a unit that crm refuses and shop has, one behind it, one of shop's."""
    name, properties = unique("log"), tmp_path / "app.properties"
    properties.write_text(
        f"applicationName = app\nregionName = us-east-1\ndynamoDBEndpoint = {moto_endpoint}\n"
        f"unitsOfWork = true\nlogTableName = {name}\n{two_sqlite_targets(tmp_path)}"
    )
    store = DynamoDBStore(dynamodb, name)
    settings = LogSettings(
        table=name, owner="w", enabled=True, put_interval=0, poll=0.02, heartbeat=0.1, targets=TWO_TARGETS
    )
    async with owned_log(store, settings, UowSettings()) as owner:
        units = [touching("both", "item", "contact"), touching("behind", "contact"), touching("shop's", "item")]
        await owner.append("shard-0", Position(1), Position(1), units)
        both, behind, shops = (unit.tid for unit in owner.state.units.values())
        world = LogWorld(properties, name, store, owner)
        await world.apply(
            Outcome(both, UnitStatus.COMMITTED, 1), Outcome(shops, UnitStatus.COMMITTED, 0), target="shop"
        )
        await world.apply(
            Outcome(both, UnitStatus.FAILED, 0, REFUSED),
            Outcome(behind, UnitStatus.BLOCKED, None, f"waits for {both}"),
            target="crm",
        )
        yield world


def two_sqlite_targets(folder: Path) -> str:
    """Returns the lines of a settings file for :data:`TWO_TARGETS`."""
    files = f"target.shop = sqlite:///{folder}/shop.db\ntarget.crm = sqlite:///{folder}/crm.db\n"
    return f"{files}target.crm.tables = contact, crm.*\n"


def two_atomic_targets(shop: str, crm: str) -> str:
    """Returns the lines of a settings file for :data:`TWO_TARGETS` that commit together, at two addresses."""
    return f"targetCommit = atomic\ntarget.shop = {shop}\ntarget.crm = {crm}\ntarget.crm.tables = contact, crm.*\n"


def two_targets_settings(folder: Path) -> Settings:
    """Returns the settings of an application with :data:`TWO_TARGETS`, without a log."""
    file = folder / "two.properties"
    file.write_text(f"applicationName = app\nregionName = us-east-1\n{two_sqlite_targets(folder)}")
    return load(file, needs=("applicationName",))


def touching(uow: str, *tables: str) -> Fragment:
    """Returns a whole unit that writes a row of each table."""
    deltas = tuple(delta(1, table=table) for table in tables)
    touched = Touched(frozenset(map(crc32, map(str.encode, tables))), frozenset(), tables)
    return Fragment(uow, deltas, touched, (UnitEnd(len(deltas), None),))
