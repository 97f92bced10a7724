"""A log that this process owns: mounted, and served as a daemon serves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from kainite.base.clock import boot_seconds
from kainite.base.process_identity import ProcessIdentity
from kainite.log.contract import LogStore
from kainite.log.format.entry import UnitMeta
from kainite.observe.meter import SILENT, Meter
from kainite.owner.audit.trail import AuditTrail
from kainite.owner.mount import mount
from kainite.owner.owner import LogOwner
from kainite.owner.serving import serve_log
from kainite.settings import LogSettings, UowSettings


@asynccontextmanager
async def owned_log(
    store: LogStore,
    settings: LogSettings,
    uow: UowSettings,
    *,
    audit: AuditTrail | None = None,
    clock: Callable[[], float] = boot_seconds,
    process: ProcessIdentity | None = None,
    meter: Meter = SILENT,
) -> AsyncIterator[LogOwner]:
    """Makes the store, mounts the partition at once or raises LogHeldError, and yields its owner."""
    await asyncio.to_thread(store.create)
    claim = partial(mount, store, settings.partition, settings.owner, settings.lease, clock=clock, process=process)
    mounted = await asyncio.to_thread(claim, stripes=settings.stripes)
    async with serve_log(store, settings, uow, mounted, audit=audit, clock=clock, meter=meter) as owner:
        yield owner


def units_of(store: LogStore, partition: str = "0", first_id: int = 0) -> list[str]:
    """Returns the names of the units that are dispatched in a partition, in order."""
    batches = store.read_batches(partition, first_id, strong=True)
    return [entry.meta.uow for batch in batches for entry in batch.entries if isinstance(entry.meta, UnitMeta)]
