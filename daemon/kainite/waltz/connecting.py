"""Connects a program to an application's partition, by a settings file: HEAD names the owner's address."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from kainite.aws import clients as aws
from kainite.base.address import Address
from kainite.base.errors import LogUnavailableError
from kainite.log.contract import LogStore
from kainite.observe.meter import SILENT
from kainite.peers.access import access_of, application_user
from kainite.peers.address import from_text
from kainite.peers.held_files import following_files
from kainite.settings import load
from kainite.store.dynamodb import DynamoDBStore
from kainite.waltz.client import ApplicationLog, Find, Owner, connected
from kainite.waltz.context import Application
from kainite.waltz.partition import application_partition


@contextlib.asynccontextmanager
async def connect(
    properties: Path | str, application: Application, partition: int = 0
) -> AsyncIterator[ApplicationLog]:
    """Connects as :func:`kainite.waltz.connect` says."""
    settings = load(properties, needs=("applicationName",))
    access = access_of(settings.service)
    store = DynamoDBStore(aws.client("dynamodb", settings.aws), settings.log.table)
    find = finder(store, application_partition(settings.log.partition, partition))
    introduce = partial(access.introduce, settings.leases.application, application_user(partition))
    application_log = ApplicationLog(application, find, partition, access.client_tls, introduce)
    async with following_files(access.held, SILENT), connected(application_log) as log:
        yield log


def finder(store: LogStore, name: str) -> Find:
    """Returns a function that finds a partition's owner.

    Args:
        store: the partition's store.
        name: the partition's name in the store.
    """

    async def find() -> Owner:
        head = await asyncio.to_thread(store.read_head, name)
        if head is None or head.released:
            raise LogUnavailableError(f"nobody owns log partition {name}: run kainite log serve")
        address = from_text(head.address)
        if address is None or not address.is_reachable:
            raise LogUnavailableError(
                f"{head.owner} owns log partition {name} and listens on {head.address or 'nothing'}, which is not"
                " reached from here: set logApplicationsListen and logApplicationsAdvertise there"
            )
        return Owner(Address(address.host, address.port), head.generation, head.token)

    return find
