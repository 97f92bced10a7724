"""Keeps the spread of a stream's records over its open shards up to date: lists the shards, and lists them again.

State: the spread, and when the shards were listed. A crash loses both, and the next process lists the shards anew.
"""

from __future__ import annotations

import asyncio
import logging

from kainite.base.errors import StreamUnavailableError
from kainite.base.logs import event
from kainite.kinesis.client import StreamClient
from kainite.kinesis.write.spread import Spread, open_ranges
from kainite.settings import ExtractSpread

logger = logging.getLogger(__name__)


class OpenShards:
    """The open shards of one stream. Tasks may share it.

    Args:
        stream: lists the shards.
        by: the rule by which units of work are spread.
        refresh: seconds after which the shards are listed again.
    """

    def __init__(self, stream: StreamClient, by: ExtractSpread, refresh: float) -> None:
        self._stream = stream
        self._by = by
        self._refresh = refresh
        self._spread: Spread | None = None
        self._listed_at = 0.0
        self._listing = asyncio.Lock()

    @property
    def count(self) -> int:
        """Returns how many shards take records, as far as that is known; 1 before they are listed."""
        return 1 if self._spread is None else self._spread.shards

    async def spread(self) -> Spread:
        """Returns the spread over the shards; lists the shards at the first call, and when the last listing is too old.

        Raises:
            StreamError: the stream does not exist, has no open shard, or did not answer the first time.
        """
        async with self._listing:
            now = asyncio.get_running_loop().time()
            if self._spread is None:
                self._spread = Spread(self._by, open_ranges(await asyncio.to_thread(self._stream.list_shards)))
                self._listed_at = now
            elif now - self._listed_at >= self._refresh:
                await self._relist(self._spread)
                self._listed_at = now
            return self._spread

    async def _relist(self, spread: Spread) -> None:
        """Lists the shards again.

        While the stream does not answer, the old hash ranges stay in use: records only fill the shards less evenly.
        """
        try:
            spread.over(open_ranges(await asyncio.to_thread(self._stream.list_shards)))
        except StreamUnavailableError as error:
            event(logger, logging.WARNING, "shards not listed again", error=error)
