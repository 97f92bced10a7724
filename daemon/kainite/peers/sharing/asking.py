"""Asks the log's owner who holds a row: it answers from its memory, so that nothing of the log is read.

Whatever keeps the owner from answering (there is none, it is not reached from here, it speaks an older version, it
knows no catalogue) is no error: the caller reads the log instead (:mod:`kainite.log.views.row_holders`). An answer is
of what is durable: the owner gives it when everything that it tells of is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from kainite.base.errors import LogProtocolError, LogRequestError, LogUnavailableError
from kainite.log.contract import LogStore
from kainite.log.format.entry import ReqId
from kainite.log.views.row_holders import Toucher
from kainite.peers.access import Access
from kainite.peers.sharing import network
from kainite.peers.sharing.address import OwnerAddress, reached_by
from kainite.peers.wire.frames import FrameDecoder
from kainite.peers.wire.hello import Hello, common_version, decode_hello, encode_hello
from kainite.peers.wire.layouts import Message
from kainite.peers.wire.row_messages import RowAnswer, RowRequest
from kainite.peers.wire.shard_messages import VERSION, ShardRefused
from kainite.peers.wire.versions import decode_message, encode_message

_logger = logging.getLogger(__name__)

LIMIT_S: Final = 5.0
"""Seconds in which the owner must have answered."""

NAME: Final = "who"


async def ask_owner(
    store: LogStore, partition: str, log: str, access: Access, table: str, key: Mapping[str, str]
) -> list[Toucher] | None:
    """Returns the unresolved units that write a row, as the log's owner knows them; None: the log is to be read.

    Args:
        store, partition: of the log.
        log: its name, as ``TABLE/PARTITION``.
        access: this process's side of TLS, and who it is.
        table, key: as in :func:`~kainite.log.views.row_holders.touchers`.

    Raises:
        LogRequestError: the table or the key is not the catalogue's.
        LogUnavailableError: HEAD cannot be read.
    """
    head = await asyncio.to_thread(store.read_head, partition)
    address = None if head is None or head.released else reached_by(head.address)
    if head is None or address is None:
        return None
    try:
        async with asyncio.timeout(LIMIT_S):
            answer = await _ask(address, access, RowRequest(ReqId(), log, table, key))
        units = [_toucher(unit) for unit in answer.units]
    except (OSError, LogProtocolError, LogUnavailableError) as error:
        _logger.debug("the log's owner has not answered: %s", error)
        return None
    if answer.req_id.generation < head.generation or answer.count > len(answer.units):
        return None
    return units


async def _ask(address: OwnerAddress, access: Access, request: RowRequest) -> RowAnswer:
    tls = access.client_tls
    reader, writer = await (network.connect(address, tls) if tls else network.connect(address))
    try:
        writer.write(encode_hello(Hello((VERSION,), access.introduce(NAME).as_message())))
        decoder = FrameDecoder()
        hello = decode_hello(await _body(decoder, reader))
        if common_version((VERSION,), hello.versions) is None:
            raise LogProtocolError("the peer speaks another version")
        decoder.expect_messages(VERSION)
        writer.write(encode_message(VERSION, request))
        return _answer(decode_message(VERSION, await _body(decoder, reader)))
    finally:
        await network.hang_up(writer)


def _answer(message: Message) -> RowAnswer:
    match message:
        case RowAnswer():
            return message
        case ShardRefused(cause=cause):
            raise LogRequestError(cause)
    raise LogUnavailableError(f"the peer answered with {type(message).__name__}")


async def _body(decoder: FrameDecoder, reader: asyncio.StreamReader) -> bytes:
    """Returns the next body that is not empty."""
    while (frame := decoder.next_frame()) is None or not frame.body:
        if frame is None:
            data = await reader.read(network.CHUNK)
            if not data:
                raise LogUnavailableError("the peer has closed the connection")
            decoder.receive(data)
    return frame.body


def _toucher(unit: Mapping[str, Any]) -> Toucher:
    try:
        return Toucher(unit["id"], unit["uow"], unit["status"], unit["instance"], unit["waits_for"], unit["cause"])
    except KeyError as error:
        raise LogProtocolError(f"a unit that touches a row has no {error}") from error
