"""One client's feed of one partition: transactions in order, as far as its credit goes.

A mount feeds what the client lacks up to the mark at that time, then answers. A FeedRequest is credit for as many
transactions as the client lacks, at least PORTION of them; when they are fed, FeedSuspended says so. Without credit
nothing is fed, however far behind the client is: a client that is slow takes its time, and no memory here.

=========  ===================================  ================================================
state      event                                next
=========  ===================================  ================================================
idle       mount, FeedRequest                   feeding, behind the mark that it says
feeding    another mount or FeedRequest         feeding, behind the mark that it says: the client
                                                takes the id behind its mark and no other
feeding    the credit's end is fed              idle, and the client is told
any        the client leaves, or the partition  over
           cannot be served any more
=========  ===================================  ================================================
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from kainite.peers.service import Peer
from kainite.waltz.partition import ApplicationPartition
from kainite.waltz.wire.layouts import WaltzMessage
from kainite.waltz.wire.messages import FeedData

PORTION: Final = 100
"""The least credit of a FeedRequest, in transactions."""


@dataclass(slots=True)
class _Credit:
    """The credit that is left: the ids behind ``mark`` up to ``end`` are still to be fed, then a message is sent."""

    mark: int
    end: int
    last_word: WaltzMessage


class Feed:
    """Feeds one client.

    Args:
        peer: the client.
        partition: the partition that the client is fed.
    """

    def __init__(self, peer: Peer[WaltzMessage], partition: ApplicationPartition) -> None:
        self._peer = peer
        self._partition = partition
        self._credit: _Credit | None = None
        self._given = asyncio.Event()

    def give(self, mark: int, end: int, last_word: WaltzMessage) -> None:
        """Gives credit for the transactions behind ``mark`` up to ``end``; it replaces the rest of the last credit."""
        self._credit = _Credit(mark, end, last_word)
        self._given.set()

    def give_portion(self, mark: int, last_word: WaltzMessage) -> None:
        """Gives the credit of a FeedRequest."""
        self.give(mark, max(self._partition.mark, mark + PORTION), last_word)

    async def run(self) -> None:
        """Feeds the client until an error ends the feed.

        Raises:
            LogError: the partition cannot be served any more, or the store does not answer.
            ConnectionError: the client is gone.
        """
        while True:
            self._given.clear()
            credit = self._credit
            if credit is None:
                await self._given.wait()
            elif credit.mark >= credit.end:
                self._credit = None
                await self._peer.send(credit.last_word)
            else:
                await self._feed_on(credit)

    async def _feed_on(self, credit: _Credit) -> None:
        """Feeds the next transactions of a credit, as soon as there are any."""
        await self._partition.reached(credit.mark + 1)
        if self._credit is not credit:
            return
        last = min(credit.end, self._partition.mark)
        fed = await self._partition.transactions.fed(credit.mark + 1, last)
        if self._credit is credit:
            credit.mark += len(fed)
            await self._peer.send(*(FeedData(each.req_id, each.id, each.header) for each in fed))
