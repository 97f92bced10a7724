"""Gives the shards to other daemons while this one can append nothing.

A daemon is *cut off* while HEAD names an owner that lives, and this daemon does not reach it: the owner's heartbeats go
on, so nobody may take the log over. What the children emit then waits, and so do the shards, although another daemon
could read them. So after a while a daemon that is cut off ends its children, releases its leases, and takes none until
it reaches the log again. The appends that it had under way are made by whoever reads the shards next.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, NoReturn, Protocol

from kainite.base.logs import event

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 0.5
"""The seconds between two looks."""


class LogConnectivity(Protocol):
    """The log: :class:`~kainite.peers.sharing.shared_log.SharedLog`."""

    @property
    def is_cut_off(self) -> bool: ...


class Shards(Protocol):
    """The shards that this daemon reads: :class:`~kainite.worker.consumers.Consumers`."""

    async def give_back(self) -> None: ...


async def give_back_while_cut_off(log: LogConnectivity, shards: Shards) -> NoReturn:
    """Gives the shards back whenever the daemon is cut off, until cancelled."""
    told = False
    while True:
        if log.is_cut_off:
            if not told:
                event(logger, logging.WARNING, "shards given back: the log's owner is not reached")
            told = True
            await shards.give_back()
        else:
            told = False
        await asyncio.sleep(LOOK_EVERY_S)
