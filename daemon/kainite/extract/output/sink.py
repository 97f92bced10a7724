"""Puts messages on the stream: makes records of them, spreads the records over the open shards, and retries.

With ``extractAggregation`` the messages of one put are packed into as few records as their shards and the limit allow.
A caller with few messages may wait for more first, for :attr:`Sink.linger` seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from kainite.base.clock import boot_seconds
from kainite.base.errors import StreamUnavailableError
from kainite.base.logs import event
from kainite.base.now_and_then import Counted
from kainite.extract.patience import Patience
from kainite.kinesis.client import StreamClient
from kainite.kinesis.write.aggregating import aggregated
from kainite.kinesis.write.open_shards import OpenShards
from kainite.kinesis.write.put import StreamWriter
from kainite.settings import ExtractSpread

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Totals:
    """The numbers of records and units of work put since the start; a unit counts from its first record."""

    records: int = 0
    units: int = 0


@dataclass(frozen=True, slots=True)
class Aggregation:
    """How messages are packed together: into records of so many bytes, after so many seconds at most."""

    most_bytes: int
    linger: float


class Sink:
    """Puts messages on one stream.

    Args:
        stream: lists the shards.
        writer: puts the records.
        by: the rule by which units of work are spread over the shards.
        refresh: seconds after which the shards are listed again.
        patience: counts the failures of the stream; used by this sink only.
        aggregation: how messages are packed together; None means that each message is a record.

    Attributes:
        totals: what has been put; messages count as records, also where several share one.
        linger: seconds that a put may be put off for more messages.
    """

    def __init__(
        self,
        stream: StreamClient,
        writer: StreamWriter,
        by: ExtractSpread,
        refresh: float,
        patience: Patience,
        aggregation: Aggregation | None = None,
    ) -> None:
        self.totals = Totals()
        self.linger = 0.0 if aggregation is None else aggregation.linger
        self._aggregation = aggregation
        self._shards = OpenShards(stream, by, refresh)
        self._writer = writer
        self._patience = patience
        self._put_off = Counted(boot_seconds)

    async def open(self) -> int:
        """Lists the shards, before anything is extracted; returns how many take records.

        Raises:
            StreamError: the stream does not exist, or does not answer.
        """
        return (await self._shards.spread()).shards

    def filled_by(self, size: int) -> bool:
        """Tells whether so many bytes of messages fill about one record of each shard; then a put need not linger."""
        return self._aggregation is None or size >= self._aggregation.most_bytes * self._shards.count

    async def put(self, messages: Sequence[bytes]) -> None:
        """Puts messages on the stream; returns when all are put.

        Raises:
            StreamError: a message is too large, or the stream refuses the messages for good.
            SourceError: the stream was unavailable too often in a row.
        """
        spread = await self._shards.spread()
        records = [spread.record(message) for message in messages]
        if self._aggregation is not None:
            records = aggregated(records, self._aggregation.most_bytes)
        while True:
            try:
                await asyncio.to_thread(self._writer.put, records, spread.shard_of)
                break
            except StreamUnavailableError as error:
                pause = self._patience.failed(error)
                if times := self._put_off.happened():
                    event(logger, logging.WARNING, "stream takes no records", error=error, times=times, pause=pause)
                await asyncio.sleep(pause)
            except asyncio.CancelledError:
                self._writer.give_up()
                raise
        self._patience.succeeded()
        self.totals.records += len(messages)
        self.totals.units = spread.units
