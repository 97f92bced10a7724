"""Reads the data of transactions for a client of an application's partition."""

from __future__ import annotations

import asyncio

from kainite.base.errors import LogUnavailableError
from kainite.log.format.entry import ReqId
from kainite.waltz.link import Link
from kainite.waltz.wire import messages as m


class DataReads:
    """Reads the data of transactions, on a connection of their own, so that a long feed does not hold them up.

    Args:
        link: the connection.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: dict[ReqId, asyncio.Future[bytes]] = {}
        self._ended = False

    async def data(self, req_id: ReqId, transaction: int) -> bytes:
        """Returns a transaction's data.

        Raises:
            LogUnavailableError: the owner does not give it.
        """
        if self._ended:
            raise LogUnavailableError("the connection to the log's owner has ended")
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[req_id] = future
        try:
            self._link.send(m.TransactionDataRequest(req_id, transaction))
            return await future
        finally:
            self._waiting.pop(req_id, None)

    async def run(self) -> None:
        """Takes the answers until the connection ends; then ends all waits."""
        try:
            while True:
                message = await self._link.next()
                if isinstance(message, m.TransactionDataResponse):
                    self._answer(message)
        finally:
            self._ended = True
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(LogUnavailableError("the connection to the log's owner has ended"))

    def _answer(self, message: m.TransactionDataResponse) -> None:
        future = self._waiting.get(message.req_id)
        if future is None or future.done():
            return
        if message.data is None:
            future.set_exception(LogUnavailableError(f"transaction {message.transaction_id}: {message.error}"))
        else:
            future.set_result(message.data)
