"""Loads the state of a log partition that has just been mounted."""

from __future__ import annotations

import asyncio
import logging

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogStore
from kainite.log.state.folded import FoldedLog
from kainite.log.state.loading import load_state
from kainite.owner.append import heartbeats_meanwhile
from kainite.owner.mount import Mount
from kainite.settings import LogSettings

_logger = logging.getLogger(__name__)


async def load_mounted(store: LogStore, settings: LogSettings, mounted: Mount) -> FoldedLog:
    """Returns the log's state; heartbeats keep the mount meanwhile, since a large log takes longer than the lease.

    Raises:
        LogFencedError: another owner has mounted the partition meanwhile.
        LogUnavailableError: the store did not answer.
        LogCorruptError: the log does not read back as written.
    """
    try:
        async with heartbeats_meanwhile(store, mounted, settings.heartbeat, _logger):
            state = await asyncio.to_thread(load_state, store, settings.partition, names=True)
    except LogCorruptError:
        # A later owner may have removed the entries that this read needs. Then the renewal finds its claim, and raises.
        await asyncio.to_thread(mounted.renew)
        raise
    # An owner that was fenced while it loaded must not begin: its view of the names may already be another owner's.
    await asyncio.to_thread(mounted.renew)
    return state
