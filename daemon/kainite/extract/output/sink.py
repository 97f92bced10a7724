"""Puts messages on the stream: makes records of them, spreads the records over the open shards, and retries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from kainite.base.errors import StreamUnavailableError
from kainite.base.logs import event
from kainite.extract.patience import Patience
from kainite.kinesis.client import StreamClient
from kainite.kinesis.write.open_shards import OpenShards
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
        self._shards = OpenShards(stream, by, refresh)
        self._writer = writer
        self._patience = patience

    async def open(self) -> int:
        """Lists the shards, before anything is extracted; returns how many take records.

        Raises:
            StreamError: the stream does not exist, or does not answer.
        """
        return (await self._shards.spread()).shards

    async def put(self, messages: Sequence[bytes]) -> None:
        """Puts messages on the stream; returns when all are put.

        Raises:
            StreamError: a message is too large, or the stream refuses the messages for good.
            SourceError: the stream was unavailable too often in a row.
        """
        spread = await self._shards.spread()
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
