"""Puts messages on the stream: makes records of them, spreads the records over the open shards, and retries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from kainite.base.errors import StreamUnavailableError
from kainite.base.logs import event
from kainite.extract.output.spread import Spread, open_ranges
from kainite.extract.patience import Patience
from kainite.kinesis.client import StreamClient
from kainite.kinesis.write.put import StreamWriter
from kainite.settings import ExtractSpread

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Totals:
    """The numbers of records and units of work put since the start; a unit counts from its first record."""

    records: int = 0
    units: int = 0


class Sink:
    """Puts messages on one stream.

    Args:
        stream: lists the shards.
        writer: puts the records.
        by: how units of work are spread.
        refresh: seconds after which the shards are listed again.
        patience: counts the failures of the stream; used by this sink only.
    """

    def __init__(
        self, stream: StreamClient, writer: StreamWriter, by: ExtractSpread, refresh: float, patience: Patience
    ) -> None:
        self.totals = Totals()
        self._stream = stream
        self._writer = writer
        self._by = by
        self._refresh = refresh
        self._patience = patience
        self._spread: Spread | None = None
        self._listed_at = 0.0

    async def open(self) -> int:
        """Lists the shards, before anything is extracted; returns how many take records.

        Raises:
            StreamError: the stream does not exist, or does not answer.
        """
        return (await self._current_spread()).shards

    async def put(self, messages: Sequence[bytes]) -> None:
        """Puts messages on the stream; returns when all are put.

        Raises:
            StreamError: a message is too large, or the stream refuses the messages for good.
            SourceError: the stream was unavailable too often in a row.
        """
        spread = await self._current_spread()
        records = [spread.record(message) for message in messages]
        while True:
            try:
                await asyncio.to_thread(self._writer.put, records)
                break
            except StreamUnavailableError as error:
                pause = self._patience.failed(error)
                event(logger, logging.WARNING, "stream takes no records", error=error, pause=pause)
                await asyncio.sleep(pause)
            except asyncio.CancelledError:
                self._writer.give_up()
                raise
        self._patience.succeeded()
        self.totals.records += len(messages)
        self.totals.units = spread.units

    async def _current_spread(self) -> Spread:
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

        The old hash ranges do while the stream does not answer: records only fill the shards less evenly.
        """
        try:
            spread.over(open_ranges(await asyncio.to_thread(self._stream.list_shards)))
        except StreamUnavailableError as error:
            event(logger, logging.WARNING, "shards not listed again", error=error)
