"""Serves applications: their partitions of the log, on a port of its own (``kainite log serve``).

A partition is owned by whichever of these processes mounts it (:mod:`kainite.waltz.owning`); its HEAD says at which
address of this port the owner is reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from kainite.base.address import Address
from kainite.base.errors import LogUnavailableError
from kainite.base.logs import event
from kainite.log.contract import LogStore
from kainite.observe.meter import SILENT, Meter
from kainite.peers.access import Access
from kainite.peers.listening import listening
from kainite.settings import ServiceSettings, Settings
from kainite.waltz.owning import owning
from kainite.waltz.service import Applications

_logger = logging.getLogger(__name__)

KEY = "logApplicationsListen"


@contextlib.asynccontextmanager
async def serving_applications(
    settings: Settings, store: LogStore, access: Access, meter: Meter = SILENT
) -> AsyncIterator[None]:
    """Serves as many partitions of applications as the settings say, until the end.

    Args:
        settings: the process's settings.
        store: the store of the log, and of applications' partitions beside it.
        access: tells who may connect.
        meter: counts the programs that are refused.

    Raises:
        SettingsError: the port cannot be opened.
    """
    log, count = settings.log, settings.service.applications
    if not count:
        yield
        return
    service = Applications(partial(_reaches, store, log.partition), has_tokens=access.has_tokens, meter=meter)
    async with contextlib.AsyncExitStack() as stack:
        allowed = applications_access(settings.service, access)
        opening = listening(service, allowed, service.key_of, key=KEY, meter=meter)
        address = await stack.enter_async_context(opening)
        await stack.enter_async_context(owning(service, store, log, count, address.as_text()))
        event(_logger, logging.INFO, "applications served", partitions=count, address=address)
        yield


def applications_access(settings: ServiceSettings, access: Access) -> Access:
    """Returns the access for applications: on the port that the settings name, or else on a free port."""
    listen = settings.applications_listen or Address(access.listen.host, 0)
    advertise = settings.applications_advertise
    if advertise is None and settings.applications_listen is None and access.advertise is not None:
        advertise = Address(access.advertise.host, 0)
    return replace(access, listen=listen, advertise=advertise)


async def _reaches(store: LogStore, partition: str) -> bool:
    try:
        await asyncio.to_thread(store.read_head, partition)
    except LogUnavailableError:
        return False
    return True
