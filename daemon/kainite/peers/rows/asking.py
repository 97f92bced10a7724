"""Asks the log's owner who holds a row: the owner answers from its memory, so that nobody reads the log for it.

It is no error when the owner cannot answer (there is no owner, this process does not reach it, it speaks another
version, or it knows no catalogue): the caller reads the log instead (:mod:`kainite.log.views.row_holders`). An answer
tells of
durable entries only: the owner sends it once all entries that it names are durable.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from kainite.base.errors import LogProtocolError, LogRequestError, LogUnavailableError
from kainite.base.time_limit import time_limit
from kainite.log.contract import LogStore
from kainite.log.views.row_holders import Toucher
from kainite.peers.access import LOG_USER, Access
from kainite.peers.address import OwnerAddress, reached_by
from kainite.peers.client import linked
from kainite.peers.messages import OWNER_LIMITS, PEERS, Holder, Message, RequestRefused, RowAnswer, RowRequest

_logger = logging.getLogger(__name__)

LIMIT_S: Final = 5.0
"""Seconds in which the owner must have answered."""

NAME: Final = "who"


async def ask_owner(
    store: LogStore, partition: str, log: str, access: Access, table: str, key: Mapping[str, str]
) -> list[Toucher] | None:
    """Returns the unresolved units that write a row, as the log's owner knows them; None if the owner cannot answer.

    Args:
        store, partition: the log's store, and the name of its log partition.
        log: the log's name, as ``TABLE/PARTITION``.
        access: this process's TLS context, and as whom it connects.
        table, key: as in :func:`~kainite.log.views.row_holders.touchers`.

    Raises:
        LogRequestError: the catalogue has no such table, or the table has another primary key.
        LogUnavailableError: HEAD cannot be read.
    """
    head = await asyncio.to_thread(store.read_head, partition)
    address = None if head is None or head.released else reached_by(head.address, head.token)
    if head is None or address is None:
        return None
    try:
        async with time_limit(LIMIT_S):
            answer = await _ask(address, access, RowRequest(0, 0, log, table, dict(key)))
    except (OSError, LogProtocolError, LogUnavailableError) as error:
        _logger.debug("the log's owner has not answered: %s", error)
        return None
    if answer.generation < head.generation or answer.count > len(answer.units):
        return None
    return [_toucher(unit) for unit in answer.units]


async def _ask(address: OwnerAddress, access: Access, request: RowRequest) -> RowAnswer:
    who = access.introduce(NAME, LOG_USER, address.token)
    async with linked(PEERS, address, who, tls=access.client_tls(), limits=OWNER_LIMITS) as link:
        link.send(request)
        return _answer(await link.next())


def _answer(message: Message) -> RowAnswer:
    match message:
        case RowAnswer():
            return message
        case RequestRefused(cause=cause):
            raise LogRequestError(cause)
    raise LogUnavailableError(f"the peer answered with {type(message).__name__}")


def _toucher(unit: Holder) -> Toucher:
    return Toucher(unit.id, unit.uow, unit.status, unit.instance, unit.waits_for, unit.cause)
