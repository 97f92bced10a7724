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
from dataclasses import dataclass, field, replace

from kainite.aws.failures import Failure, classify, error_code
from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.base.errors import StreamUnavailableError
from kainite.base.logs import event
from kainite.base.position import Position
from kainite.base.retry import AWS_BACKOFF
from kainite.kinesis.client import StreamClient
from kainite.kinesis.failures import final_error, unknown_checkpoint
from kainite.kinesis.read.batcher import Batcher, Portioned
from kainite.kinesis.read.closed_shard import poll_rest, start_of_rest
from kainite.kinesis.read.prefetch import Bounds
from kainite.kinesis.read.read_ahead import ReadAhead
from kainite.kinesis.read.record_batch import RecordBatch, Render, ShardEnd
from kainite.kinesis.read.shard_source import OpenSource, ShardSource, deciding_range
from kainite.kinesis.read.subscription import ShardEvent, Subscriber, Subscription, parse_event
from kainite.kinesis.shards import HashRange
from kainite.kinesis.start_position import StartAt, start_at
from kainite.observe.meter import SILENT, Meter
from kainite.observe.metric import MILLIS_BEHIND_LATEST
from kainite.settings import StreamSettings

logger = logging.getLogger(__name__)

SUBSCRIBE_INTERVAL_S = 1.0
"""The time between two subscriptions: Kinesis allows one SubscribeToShard a second for each consumer and shard."""

LOUDER_AFTER = 5
"""Further failures in a row are logged one level higher."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    """The contents of one event.

    Attributes:
        records: of the event, a portion of them as batches.
        continuation: where the next subscription goes on.
        end: set at the shard's end.
        closed: whether the shard is closed; records may be left before its end.
    """

    records: Portioned = field(default_factory=Portioned)
    continuation: str | None = None
    end: ShardEnd | None = None
    closed: bool = False


class FanOutReader:
    """One shard from a checkpoint on; see the module for states and invariants.

    Args:
        stream: for the listing of the shards.
        subscriber: shared by all readers of the stream.
        shard_id: which shard.
        hash_range: of the shard, where known; aggregates that reach beyond it are dropped.
        start: the lease's checkpoint; records up to it are left out.
        settings: bounds of what is fetched ahead; an idle shard is looked up in the listing every ``shard_sync``.
        cut_at: no batch straddles this position (the serialization log's, for this shard).
        polling: reads what is left of a shard that was found closed.
        render: makes the child's line of a batch's records.
        meter: takes how far the shard is behind.
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
        self._subscriber = subscriber
        self._hash_range = hash_range
        self._start = start
        self._settings = settings
        self._cut_at = cut_at
        self._polling = polling
        keys = deciding_range(hash_range, settings)
        self._batcher = Batcher(start, render, cut_at, keys, settings.call_with_empty_batches)
        self._meter = meter
        self._ahead = ReadAhead(shard_id, Bounds.of(settings), self._run, f"fan-out of {shard_id}")
        self._thread = ThreadPoolExecutor(1, f"fan-out {shard_id}")
        self._subscription: Subscription | None = None
        self._heard = False
        self._subscribed_at = 0.0
        self._looked_up_at = time.monotonic()
        self._opened_at: float | None = None
        self._continuation: str | None = None
        self._fetched: Position | None = None  # the last record of the events so far
        self._queued: Position | None = None  # the last record of the batches so far
        self._unfinished: _Fetched | None = None  # the last event, while portions of it are left
        self._closed = False

    @property
    def opened_at(self) -> float | None:
        """Returns the time of the first subscription by Kinesis's clock, epoch seconds: where LATEST was."""
        return self._opened_at

    def start(self) -> None:
        """Begins to read; a second call does nothing."""
        self._ahead.start()

    async def next(self) -> RecordBatch | ShardEnd:
        """Returns the next batch, and after the last one the shard's end, as often as asked.

        Raises:
            StreamError: the shard cannot be read and waiting will not mend it, or the reader is closed.
            SettingsError: the checkpoint is AT_TIMESTAMP and the settings name no time.
        """
        return await self._ahead.next()

    async def close(self) -> None:
        """Ends the subscription. A SubscribeToShard call in flight is left to end by itself."""
        if self._closed:
            return
        self._closed = True
        if self._subscription is not None:
            self._subscription.interrupt()
        await self._ahead.close()
        self._thread.submit(self._drop)
        self._thread.shutdown(wait=False)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            await self._ahead.queue.room()
            try:
                fetched = await loop.run_in_executor(self._thread, self._fetch)
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
                self._ahead.queue.end(fetched.end)
                return
            if fetched.closed:
                await self._poll_rest()
                return

    def _accept(self, fetched: _Fetched) -> None:
        records = fetched.records
        self._fetched = records.last or self._fetched
        self._continuation = fetched.continuation or self._continuation
        if self._unfinished is None and records.millis_behind_latest is not None:
            self.millis_behind_latest = records.millis_behind_latest
            self._meter.observe(MILLIS_BEHIND_LATEST, records.millis_behind_latest, self.shard_id)
        for batch in records.batches:
            self._queued = batch.last or self._queued
        self._unfinished = fetched if records.rest else None
        self._ahead.queue.put(*records.batches)

    async def _mend(self, error: Exception, failures: int) -> bool:
        """Prepares the next attempt; returns False when the error is final."""
        failure = classify(error)
        if not failure.is_retryable and failure is not Failure.EXPIRED:
            self._ahead.queue.end(final_error(self._stream.name, "SubscribeToShard", error))
            return False
        if failure is Failure.EXPIRED:
            self._continuation = None
        taken_over = error_code(error) == "ResourceInUseException"
        level = (logging.INFO if taken_over else logging.WARNING) + (10 if failures > LOUDER_AFTER else 0)
        event(
            logger, level, "subscription failed", shard=self.shard_id, failures=failures, why=failure.name, error=error
        )
        await asyncio.sleep(max(AWS_BACKOFF.after(failures), self._until_next_subscription()))
        return True

    def _until_next_subscription(self) -> float:
        return max(0.0, self._subscribed_at + SUBSCRIBE_INTERVAL_S - time.monotonic())

    async def _poll_rest(self) -> None:
        event(logger, logging.INFO, "shard closed, polling what is left", shard=self.shard_id)
        start, settings = start_of_rest(
            self._start,
            self._settings,
            continuation=self._continuation,
            queued=self._queued,
            opened_at=self._opened_at,
        )
        rest = self._polling(self.shard_id, self._hash_range, start, settings, cut_at=self._cut_at)
        await poll_rest(rest, self._ahead.queue)

    # The methods below run in the reader's thread, one call at a time.

    def _fetch(self) -> _Fetched | None:
        """Returns the next event; None when a subscription ended regularly, after its five minutes."""
        if self._start == SHARD_END:
            return _Fetched(closed=True)
        if self._unfinished is not None:
            return self._next_portion(self._unfinished)
        try:
            return self._next_event(self._subscription or self._subscribe())
        except Exception as error:
            self._drop()
            return self._explain(error)

    def _explain(self, error: Exception) -> _Fetched:
        match classify(error):
            case Failure.GONE if not self._is_open():
                return _Fetched(closed=True)
            case Failure.GONE:
                raise StreamUnavailableError(
                    f"Kinesis lists shard {self.shard_id} as open, but does not find it, or not the consumer "
                    f"{self._subscriber.consumer_arn}: was it deregistered? then restart"
                ) from error
            case Failure.EXPIRED if self._continuation is None:
                sequence = self._resume_at().sequence
                raise unknown_checkpoint(self._stream.name, self.shard_id, sequence, error) from error
        raise error

    def _resume_at(self) -> StartAt:
        if self._continuation is not None:
            return StartAt("AFTER_SEQUENCE_NUMBER", self._continuation)
        return start_at(self._start, self._fetched, self._cut_at, self._opened_at, self._settings.initial_timestamp)

    def _subscribe(self) -> Subscription:
        wanted = self._resume_at()
        self._subscribed_at = time.monotonic()
        self._heard = False
        self._subscription = self._subscriber.subscribe(self.shard_id, wanted)
        self._opened_at = self._opened_at or self._subscription.opened_at
        if self._closed:  # close() came during the call and found no subscription to interrupt
            self._subscription.interrupt()
        return self._subscription

    def _drop(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def _next_event(self, subscription: Subscription) -> _Fetched | None:
        payload = subscription.next()
        if payload is None:
            if not self._heard:
                raise StreamUnavailableError(f"the subscription to shard {self.shard_id} ended without any event")
            self._drop()
            return None
        self._heard = True
        # Events that wait for their turn wait as bytes, and the bytes go once they are parsed.
        with self._stream.parsing:
            pushed = parse_event(payload)
            del payload
            records = self._batcher.begin(pushed.records, pushed.millis_behind_latest)
            fetched = _Fetched(records, _sound(pushed.continuation))
        return self._with_end(fetched, pushed)

    def _next_portion(self, fetched: _Fetched) -> _Fetched:
        with self._stream.parsing:
            return replace(fetched, records=self._batcher.next(fetched.records))

    def _with_end(self, fetched: _Fetched, pushed: ShardEvent) -> _Fetched:
        """Returns ``fetched`` with the shard's end if the event is the last one.

        The last event has children and no continuation (docs/kcl.md, *Fan-out*).
        """
        if pushed.continuation is None and pushed.children and all(child.parents for child in pushed.children):
            return replace(fetched, end=ShardEnd(pushed.children))
        if pushed.continuation is None or pushed.children:
            if self._is_open():
                raise StreamUnavailableError(f"an event shows the end of shard {self.shard_id}, which is open")
            return replace(fetched, closed=True)
        idle = not pushed.records and not pushed.millis_behind_latest
        if idle and time.monotonic() - self._looked_up_at >= self._settings.shard_sync:
            return replace(fetched, closed=not self._is_open())
        return fetched

    def _is_open(self) -> bool:
        self._looked_up_at = time.monotonic()
        return any(shard.id == self.shard_id and shard.open for shard in self._stream.list_shards())


def fan_out(
    stream: StreamClient,
    subscriber: Subscriber,
    polling: OpenSource,
    *,
    render: Render,
    meter: Meter = SILENT,
) -> OpenSource:
    """Returns what opens sources that subscribe as one registered consumer.

    Args:
        stream: the stream.
        subscriber: of the consumer's ARN (:func:`~kainite.kinesis.read.consumer_registration.registered_consumer`).
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


def _sound(continuation: str | None) -> str | None:
    """Drops "0", which LocalStack sends until the first record: Kinesis would start from the oldest record there."""
    return continuation if continuation and int(continuation) > 0 else None
