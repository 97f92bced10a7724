"""The members of one log in this process: each with an identity, a port and a way to the store of its own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from kainite.base.errors import LogUnavailableError
from kainite.base.process_identity import ProcessIdentity
from kainite.log.contract import LogStore
from kainite.log.format.entry import UnitMeta
from kainite.observe.meter import SILENT, Meter
from kainite.peers.access import Access
from kainite.peers.sharing.shared_log import SharedLog, open_shared_log
from kainite.settings import LogSettings, UowSettings
from kainite.store.memory import MemoryStore
from support.shard_holders import ShardHolders

SETTINGS = LogSettings(table="t", owner="", enabled=True, lease=1000.0, heartbeat=0.05, put_interval=0.0, poll=0.05)
P = SETTINGS.partition
LIMIT = 30.0
NUMBERS = itertools.count(1)


class MortalStore:
    """A process's way to the store, which ends with the process."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        if self.dead:
            raise LogUnavailableError("the process is dead")
        return getattr(self._store, name)


class Members:
    """The members of one log, in this process, each with an identity of its own."""

    def __init__(self, store: LogStore, settings: LogSettings = SETTINGS, uow: UowSettings | None = None) -> None:
        self.store: Any = store  # mostly a MemoryStore, and used as that
        self._settings = settings
        self._uow = uow or UowSettings()
        self.holders = ShardHolders()
        self._open: dict[str, tuple[AsyncExitStack, MortalStore]] = {}

    async def join(
        self,
        worker: str,
        *,
        stream: str = "s",
        reached: bool = True,
        access: Access | None = None,
        identity: str | None = None,
        meter: Meter = SILENT,
        **changes: Any,
    ) -> SharedLog:
        """Opens a member; waits until it owns the log or follows its owner, unless ``reached`` is false."""
        stack, store = AsyncExitStack(), MortalStore(self.store)
        settings = replace(self._settings, owner=worker, **changes)
        process = ProcessIdentity(f"{worker} {next(NUMBERS)}")
        opening = open_shared_log(
            store,
            settings,
            self._uow,
            stream,
            holders=self.holders,
            process=process,
            access=access,
            identity=identity,
            meter=meter,
        )
        log, _ = await stack.enter_async_context(opening)
        self._open[worker] = stack, store
        if reached:
            await asyncio.wait_for(log.reached(), LIMIT)
        return log

    async def leave(self, worker: str) -> None:
        stack, _ = self._open.pop(worker)
        await stack.aclose()

    async def kill(self, worker: str) -> None:
        """Ends a member as SIGKILL does: it tells the store nothing any more, and its connections end."""
        stack, store = self._open.pop(worker)
        store.dead = True
        await stack.aclose()

    async def close(self) -> None:
        for worker in list(self._open):
            await self.leave(worker)


@asynccontextmanager
async def members(
    store: LogStore | None = None, uow: UowSettings | None = None, **changes: Any
) -> AsyncIterator[Members]:
    found = Members(store or MemoryStore(), replace(SETTINGS, **changes), uow)
    try:
        yield found
    finally:
        await found.close()


def units_of(store: LogStore) -> list[str]:
    batches = store.read_batches(P, 0, strong=True)
    return [entry.meta.uow for batch in batches for entry in batch.entries if isinstance(entry.meta, UnitMeta)]
