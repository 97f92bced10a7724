"""Owns applications' partitions: mounts each as soon as it is free, serves it, and waits again when it is overtaken.

=========  =====================================================  ===============================================
state      event                                                  next
=========  =====================================================  ===============================================
waiting    the lease of another owner runs out, or is released    serving
serving    overtaken, or the store breaks                         waiting; the partition's clients are cut
any        the end                                                released; clients are cut
=========  =====================================================  ===============================================
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from functools import partial

from kainite.base.clock import boot_seconds
from kainite.base.errors import KainiteError, LogFencedError, LogHeldError
from kainite.base.logs import event
from kainite.log.contract import STORE_BACKOFF, LogStore
from kainite.owner.mount import LeaseWatch, Mount, mount
from kainite.settings import LogSettings
from kainite.waltz.partition import ApplicationPartition, application_partition
from kainite.waltz.service import Applications

_logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
"""The most seconds between two looks whether another owner's lease has run out."""


@contextlib.asynccontextmanager
async def owning(
    service: Applications, store: LogStore, settings: LogSettings, count: int, address: str
) -> AsyncIterator[None]:
    """Owns the partitions 0 to ``count`` − 1 until the end, as far as they are free.

    Args:
        service: serves the partitions that are owned.
        store: the partitions' store.
        settings: the settings of the log beside which the partitions stand.
        count: how many partitions there are.
        address: this process's address for clients, which HEAD will name.
    """
    tasks = [
        asyncio.create_task(_own(service, store, settings, number, address), name=f"log partition {number}")
        for number in range(count)
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _own(service: Applications, store: LogStore, settings: LogSettings, number: int, address: str) -> None:
    failures = 0
    while True:
        try:
            token = service.new_token(number)
            name = application_partition(settings.partition, number)
            mounted = await _mounted(store, settings, name, address, token)
            async with ApplicationPartition.open(store, settings, mounted) as partition:
                failures = 0
                await _serve(service, number, partition)
        except KainiteError as error:
            failures += 1
            event(_logger, logging.WARNING, "log partition not served", partition=number, error=error)
            await asyncio.sleep(STORE_BACKOFF.after(failures))


async def _serve(service: Applications, number: int, partition: ApplicationPartition) -> None:
    """Serves a partition until it fails, and raises the error."""
    service.owns(number, partition)
    why = "the log's owner stops"
    try:
        error = await partition.failed()
        why = str(error)
        raise error
    finally:
        service.owns_no_more(number, why)


async def _mounted(store: LogStore, settings: LogSettings, name: str, address: str, token: str) -> Mount:
    """Waits until a partition is free, and mounts it; HEAD then names the address and the token.

    Raises:
        LogUnavailableError: the store does not answer.
    """
    watch = LeaseWatch(boot_seconds)
    mounting = partial(mount, store, name, settings.owner, settings.lease, watch, address=address, token=token)
    while True:
        with contextlib.suppress(LogHeldError, LogFencedError):
            return await asyncio.to_thread(mounting)
        await asyncio.sleep(min(settings.lease / 10, LOOK_EVERY_S))
