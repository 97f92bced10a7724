"""Reads one shard by enhanced fan-out: Kinesis pushes, on a connection of the shard's own.

States: *without a subscription* (at first, and after a subscription has ended or failed) → *subscribed* → *ended*
(:class:`~kainite.kinesis.read.record_batch.ShardEnd`, or an error that waiting will not mend).
Where a subscription names no children and the listing shows the shard closed, the rest is read by *polling*
(:mod:`kainite.kinesis.read.closed_shard`).

The invariants are those of :mod:`kainite.kinesis.read.polling`: batches come in the order of the shard, without gap and
without repetition; an event counts only when its batches are queued, and a subscription that fails before
its event counts is opened again where the last counted event ended (``ContinuationSequenceNumber``). While the queue is
full the socket is not read, so memory is bounded by the queue, one event and the socket's buffer. Nothing is stored,
so a crash leaves nothing behind but a subscription that Kinesis ends by itself.

A shard taken over from another worker may still be subscribed there under the same consumer. Kinesis then
answers ResourceInUseException, for at most five seconds, so the subscription is retried, and logged one level lower.

Reading blocks nearly all the time, so each shard has a thread of its own: the loop's executor is for short calls.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor

from kainite.aws.failures import Failure, classify, error_code
from kainite.base.checkpoint import Checkpoint
from kainite.base.logs import event
from kainite.base.position import Position
from kainite.base.retry import AWS_BACKOFF
from kainite.kinesis.client import StreamClient
from kainite.kinesis.failures import final_error
from kainite.kinesis.read.batcher import Batcher
from kainite.kinesis.read.closed_shard import poll_rest, start_of_rest
from kainite.kinesis.read.prefetch import Bounds
from kainite.kinesis.read.pushed_events import FetchedEvent, PushedEvents
from kainite.kinesis.read.read_ahead import ReadAhead
from kainite.kinesis.read.record_batch import Render
from kainite.kinesis.read.shard_source import OpenSource, ShardSource, deciding_range
from kainite.kinesis.read.subscription import Subscriber
from kainite.kinesis.shards import HashRange
from kainite.observe.meter import SILENT, Meter
from kainite.observe.metric import MILLIS_BEHIND_LATEST, THROTTLED_READS
from kainite.settings import StreamSettings

logger = logging.getLogger(__name__)

SUBSCRIBE_INTERVAL_S = 1.0
"""The time between two subscriptions: Kinesis allows one SubscribeToShard a second for each consumer and shard."""

LOUDER_AFTER = 5
"""Further failures in a row are logged one level higher."""


class FanOutReader:
    """One shard from a checkpoint on; see the module for states and invariants.

    Args:
        stream: the stream, which lists its shards.
        subscriber: makes the subscriptions; all readers of the stream share it.
        shard_id: the shard's id.
        hash_range: the shard's range of hash keys, where known; aggregates that reach beyond it are dropped.
        start: the lease's checkpoint; records up to it are left out.
        settings: the bounds of what is fetched ahead; an idle shard is looked up in the listing every ``shard_sync``.
        cut_at: no batch straddles this position (the serialization log's, for this shard).
        polling: reads what is left of a shard that was found closed.
        render: makes the child's line of a batch's records.
        meter: takes how far the shard is behind.

    Attributes:
        ahead: the batches that were read and not taken yet, and how far the taker is done.
    """

    def __init__(
        self,
        stream: StreamClient,
        subscriber: Subscriber,
        shard_id: str,
        hash_range: HashRange | None,
        start: Checkpoint,
        settings: StreamSettings,
        *,
        polling: OpenSource,
        cut_at: Position | None = None,
        render: Render,
        meter: Meter = SILENT,
    ) -> None:
        self.shard_id = shard_id
        self.millis_behind_latest: int | None = None
        self._stream = stream
        self._hash_range = hash_range
        self._start = start
        self._settings = settings
        self._cut_at = cut_at
        self._polling = polling
        keys = deciding_range(hash_range, settings)
        batcher = Batcher(start, render, cut_at, keys, settings.call_with_empty_batches)
        self._events = PushedEvents(stream, subscriber, shard_id, start, settings, cut_at, batcher)
        self._meter = meter
        self.ahead = ReadAhead(shard_id, Bounds.of(settings), self._run, f"fan-out of {shard_id}")
        self._thread = ThreadPoolExecutor(1, f"fan-out {shard_id}")
        self._queued: Position | None = None  # the position of the last record of the batches so far
        self._closed = False

    @property
    def opened_at(self) -> float | None:
        """Returns the time of the first subscription by Kinesis's clock, epoch seconds: where LATEST was."""
        return self._events.opened_at

    async def close(self) -> None:
        """Ends the subscription. A SubscribeToShard call in flight is left to end by itself."""
        if self._closed:
            return
        self._closed = True
        self._events.interrupt()
        await self.ahead.close()
        self._thread.submit(self._events.close)
        self._thread.shutdown(wait=False)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            await self.ahead.queue.room()
            self.ahead.watch.asks()
            try:
                fetched = await loop.run_in_executor(self._thread, self._events.fetch)
            except Exception as error:
                failures += 1
                if not await self._mend(error, failures):
                    return
                continue
            failures = 0
            if fetched is None:
                await asyncio.sleep(self._until_next_subscription())
                continue
            self._accept(fetched)
            if fetched.records.rest:
                continue
            if fetched.end is not None:
                self.ahead.queue.end(fetched.end)
                return
            if fetched.closed:
                await self._poll_rest()
                return

    def _accept(self, fetched: FetchedEvent) -> None:
        records = fetched.records
        if not self._events.has_portions_left and records.millis_behind_latest is not None:
            self.millis_behind_latest = records.millis_behind_latest
            self._meter.observe(MILLIS_BEHIND_LATEST, records.millis_behind_latest, self.shard_id)
        for batch in records.batches:
            self._queued = batch.last or self._queued
        self._events.accept(fetched)
        self.ahead.watch.answered(records=records.last is not None, behind_ms=records.millis_behind_latest)
        self.ahead.queue.put(*records.batches)
        if not records.rest and records.millis_behind_latest is not None and fetched.waited_since is not None:
            goes_on = fetched.end is None and not fetched.closed and fetched.surely_waited
            at_tip = records.last is None and records.millis_behind_latest == 0 and goes_on
            self.ahead.queue.mark(fetched.waited_since - records.millis_behind_latest / 1000, at_tip=at_tip)

    async def _mend(self, error: Exception, failures: int) -> bool:
        """Prepares the next attempt; returns False when the error is final."""
        failure = classify(error)
        self.ahead.watch.failed(error, throttled=failure is Failure.THROTTLED)
        if not failure.is_retryable and failure is not Failure.EXPIRED:
            self.ahead.queue.end(final_error(self._stream.name, "SubscribeToShard", error))
            return False
        if failure is Failure.EXPIRED:
            self._events.forget_continuation()
        if failure is Failure.THROTTLED:
            self._meter.observe(THROTTLED_READS, 1, self.shard_id)
            self._stream.throttling.happened(self.shard_id, error)
        else:
            self._tell(failure, failures, error)
        await asyncio.sleep(max(AWS_BACKOFF.after(failures), self._until_next_subscription()))
        return True

    def _tell(self, failure: Failure, failures: int, error: Exception) -> None:
        taken_over = error_code(error) == "ResourceInUseException"  # the former holder of the lease still reads
        level = (logging.INFO if taken_over else logging.WARNING) + (10 if failures > LOUDER_AFTER else 0)
        event(
            logger, level, "subscription failed", shard=self.shard_id, failures=failures, why=failure.name, error=error
        )

    def _until_next_subscription(self) -> float:
        return max(0.0, self._events.subscribed_at + SUBSCRIBE_INTERVAL_S - time.monotonic())

    async def _poll_rest(self) -> None:
        event(logger, logging.INFO, "shard closed, polling what is left", shard=self.shard_id)
        start, settings = start_of_rest(
            self._start,
            self._settings,
            continuation=self._events.continuation,
            queued=self._queued,
            opened_at=self._events.opened_at,
        )
        rest = self._polling(self.shard_id, self._hash_range, start, settings, cut_at=self._cut_at)
        self.ahead.watch = rest.ahead.watch
        await poll_rest(rest, self.ahead.queue)


def fan_out(
    stream: StreamClient,
    subscriber: Subscriber,
    polling: OpenSource,
    *,
    render: Render,
    meter: Meter = SILENT,
) -> OpenSource:
    """Returns the function that opens sources; the sources subscribe as one registered consumer.

    Args:
        stream: the stream.
        subscriber: subscribes with the ARN of :func:`~kainite.kinesis.read.consumer_registration.registered_consumer`.
        polling: reads what is left of shards that were found closed.
        render: makes the children's lines.
        meter: takes what is measured.
    """

    def open_source(
        shard_id: str, hash_range: HashRange | None, start: Checkpoint, settings: StreamSettings,
        *, cut_at: Position | None,
    ) -> ShardSource:  # fmt: skip
        return FanOutReader(
            stream, subscriber, shard_id, hash_range, start, settings,
            polling=polling, cut_at=cut_at, render=render, meter=meter,
        )  # fmt: skip

    return open_source
