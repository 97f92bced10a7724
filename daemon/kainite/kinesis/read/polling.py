"""Reads one shard by polling, ahead of its child by a bounded number of batches.

States: *without an iterator* (at first, and after an iterator expired) → *with an iterator* → *ended*
(:class:`~kainite.kinesis.read.record_batch.ShardEnd`, or an error that waiting will not mend).
A reader never goes back: to have records again, make another one with an earlier start.

Invariants: batches come in the order of the shard, without gap and without repetition, whatever failed in
between; a reply counts only when its batches are queued, and until then the same position is asked for again.
Nothing is stored, so a crash leaves nothing behind: the checkpoint and the serialization log decide where the next
reader starts.

A reply with records tells no tip: its shard may have been closed before the call, and then records that arrived until
the call are in the shard's children (:mod:`kainite.log.collecting.watermark`). In a busy shard units that end by the
watermark would wait for a record that comes late enough, and for the reading after it. So while a unit waits for the
reading alone, one more call follows a reply with records, :data:`SOONEST_S` after it: either it has no record, and
tells a tip, or it has records that arrived after the call before it. There is one such call at most for each one that
the interval allows, and none while the stream is throttled.

There is no gap at LATEST either: KCL asks for LATEST again when an iterator expires before the first record, and
loses the records in between. Here the second iterator starts at the time of the first one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace

from kainite.aws.failures import Failure, classify
from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.base.clock import boot_seconds
from kainite.base.errors import StreamUnavailableError
from kainite.base.logs import event
from kainite.base.position import Position
from kainite.base.retry import AWS_BACKOFF
from kainite.base.waiting import wait_until_set
from kainite.kinesis.client import StreamClient, parse_reply
from kainite.kinesis.failures import final_error, unknown_checkpoint
from kainite.kinesis.read.batcher import Batcher, Portioned
from kainite.kinesis.read.continuity import Continuity
from kainite.kinesis.read.poll_interval import interval
from kainite.kinesis.read.prefetch import Bounds
from kainite.kinesis.read.read_ahead import ReadAhead
from kainite.kinesis.read.record_batch import Render, ShardEnd
from kainite.kinesis.shards import HashRange, Shard, children_of
from kainite.kinesis.start_position import start_at
from kainite.observe.meter import SILENT, Meter
from kainite.observe.metric import (
    EXPIRED_ITERATOR,
    GET_RECORDS_SUCCESS,
    GET_RECORDS_TIME,
    MILLIS_BEHIND_LATEST,
    THROTTLED_READS,
)
from kainite.settings import StreamSettings

logger = logging.getLogger(__name__)

SOONEST_S = 0.2
"""The least seconds between two calls of which one is early: Kinesis allows five a second and shard."""

ERROR_AFTER = 5
"""Further failures in a row are logged as errors."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    """The contents of one reply.

    Attributes:
        records: the reply's records, which become batches one portion after the other.
        next_iterator: None in the last reply of a shard.
        size: the reply's size in bytes.
        end: set at the shard's end.
    """

    records: Portioned
    next_iterator: str | None = None
    size: int = 0
    end: ShardEnd | None = None


class PollingReader:
    """One shard from a checkpoint on; see the module for states and invariants.

    Args:
        stream: the stream; all its readers share this object.
        shard_id: the shard's id.
        start: the lease's checkpoint; records up to it are left out.
        settings: how much and how often to read.
        cut_at: no batch straddles this position (the serialization log's, for this shard).
        hash_range: the shard's range of hash keys: KPL aggregates that reach beyond it are dropped. None: none is.
        bounds: the bounds of what is fetched ahead; by default those of the settings.
        meter: takes the metrics of reading.
        render: makes the child's line of a batch's records.

    Attributes:
        ahead: the batches that were read and not taken yet, and how far the consumer has processed the taken ones.
    """

    def __init__(
        self,
        stream: StreamClient,
        shard_id: str,
        start: Checkpoint,
        settings: StreamSettings,
        *,
        render: Render,
        cut_at: Position | None = None,
        hash_range: HashRange | None = None,
        bounds: Bounds | None = None,
        meter: Meter = SILENT,
    ) -> None:
        self.shard_id = shard_id
        self.millis_behind_latest: int | None = None
        self._stream = stream
        self._start = start
        self._settings = settings
        self._cut_at = cut_at
        self._continuity = Continuity(shard_id, cut_at)
        self._batcher = Batcher(start, render, cut_at, hash_range, settings.call_with_empty_batches)
        self._meter = meter
        self.ahead = ReadAhead(shard_id, bounds or Bounds.of(settings), self._run, f"reader of {shard_id}")
        self._iterator: str | None = None
        self._opened_at: float | None = None
        self._fetched: Position | None = None
        self._unfinished: _Fetched | None = None  # the last reply, while portions of it are left
        self._early_before: float | None = None  # when the last call was due, if it was made before its time
        self._asked_at = 0.0  # when the reply that is under way was asked for

    @property
    def opened_at(self) -> float | None:
        """Returns the time of the first iterator by Kinesis's clock, epoch seconds: where LATEST was."""
        return self._opened_at

    async def close(self) -> None:
        """Stops fetching. A call to Kinesis in flight is left to end by itself, and its reply dropped."""
        await self.ahead.close()

    async def _run(self) -> None:
        failures = 0
        while True:
            await self.ahead.queue.room()
            self.ahead.watch.asks()
            began = time.monotonic()
            if self._unfinished is None:
                self._asked_at = boot_seconds()
            try:
                fetched = await asyncio.to_thread(self._fetch)
            except Exception as error:
                failures += 1
                if not await self._mend(error, failures):
                    return
                continue
            failures = 0
            self._accept(fetched)
            if fetched.records.rest:
                continue
            if fetched.end is not None:
                self.ahead.queue.end(fetched.end)
                return
            await self._rest(fetched, began)

    def _accept(self, fetched: _Fetched) -> None:
        records = fetched.records
        if self._unfinished is None and records.millis_behind_latest is not None:
            self._meter.observe(MILLIS_BEHIND_LATEST, records.millis_behind_latest, self.shard_id)
        self.millis_behind_latest = records.millis_behind_latest
        self.ahead.watch.answered(records=records.last is not None, behind_ms=records.millis_behind_latest)
        self._iterator = fetched.next_iterator
        self._fetched = records.last or self._fetched
        self._unfinished = fetched if records.rest else None
        self.ahead.queue.put(*records.batches)
        if not records.rest and records.millis_behind_latest is not None:
            at_tip = records.last is None and records.millis_behind_latest == 0 and fetched.end is None
            self.ahead.queue.mark(self._asked_at - records.millis_behind_latest / 1000, at_tip=at_tip)

    async def _rest(self, fetched: _Fetched, began: float) -> None:
        """Waits until the next call is due; ends sooner, once, where a unit of work waits for a tip."""
        until, soonest = began + self._interval(fetched.size), began + SOONEST_S
        if self._early_before is not None:
            until, self._early_before = max(self._early_before, soonest), None
        elif self._may_be_at_tip(fetched) and soonest < until:
            self.ahead.wanted.clear()
            await asyncio.sleep(soonest - time.monotonic())
            if await wait_until_set(self.ahead.wanted, max(0.0, until - time.monotonic())):
                self._early_before = until
            return
        await asyncio.sleep(until - time.monotonic())

    def _may_be_at_tip(self, fetched: _Fetched) -> bool:
        records = fetched.records
        caught_up = records.last is not None and records.millis_behind_latest == 0
        return caught_up and not self.ahead.watch.is_throttled

    def _interval(self, size: int) -> float:
        throttled = self.ahead.watch.is_throttled
        return interval(self._settings, self.millis_behind_latest, size, throttled=throttled)

    async def _mend(self, error: Exception, failures: int) -> bool:
        """Prepares the next attempt; returns False when the error is final."""
        failure = classify(error)
        self.ahead.watch.failed(error, throttled=failure is Failure.THROTTLED)
        if not failure.is_retryable and failure is not Failure.EXPIRED:
            self.ahead.queue.end(final_error(self._stream.name, "reading", error))
            return False
        if failure is Failure.EXPIRED:
            self._iterator = None
            self._meter.observe(EXPIRED_ITERATOR, 1, self.shard_id)
        if failure is Failure.THROTTLED:
            self._meter.observe(THROTTLED_READS, 1, self.shard_id)
            self._stream.throttling.happened(self.shard_id, error)
        else:
            level = logging.ERROR if failures > ERROR_AFTER else logging.WARNING
            event(logger, level, "read failed", shard=self.shard_id, failures=failures, why=failure.name, error=error)
        await asyncio.sleep(0 if failure is Failure.EXPIRED and failures == 1 else AWS_BACKOFF.after(failures))
        return True

    # The methods below run in a thread, one call at a time.

    def _fetch(self) -> _Fetched:
        if self._unfinished is not None:
            return self._next_portion(self._unfinished)
        if self._start == SHARD_END:
            return self._gone()
        try:
            body = self._get_records(self._iterator or self._open())
        except Exception as error:
            if classify(error) is Failure.GONE:
                return self._gone()
            raise
        # A reply that waits for its turn waits as bytes, and its bytes go once it is parsed.
        with self._stream.parsing:
            size, reply = len(body), parse_reply(body)
            del body
            fresh = self._continuity.look(reply.records, self._fetched)
            records = self._batcher.begin(fresh, reply.millis_behind_latest, plain=reply.plain)
            fetched = _Fetched(records, reply.next_iterator, size)
        return self._with_end(fetched, tuple(child.within(self._stream.id) for child in reply.children))

    def _get_records(self, iterator: str) -> bytes:
        began, succeeded = time.monotonic(), False
        try:
            body = self._stream.get_records(iterator, self._settings.max_records)
            succeeded = True
            return body
        finally:
            self._meter.observe(GET_RECORDS_TIME, (time.monotonic() - began) * 1000, self.shard_id)
            self._meter.observe(GET_RECORDS_SUCCESS, int(succeeded), self.shard_id)

    def _open(self) -> str:
        wanted = start_at(self._start, self._fetched, self._cut_at, self._opened_at, self._settings.initial_timestamp)
        try:
            self._iterator, opened_at = self._stream.iterator(self.shard_id, wanted)
        except Exception as error:
            if classify(error) is Failure.EXPIRED:
                raise unknown_checkpoint(self._stream.name, self.shard_id, wanted.sequence, error) from error
            raise
        self._opened_at = self._opened_at or opened_at
        self._continuity.begins(wanted)
        return self._iterator

    def _next_portion(self, fetched: _Fetched) -> _Fetched:
        with self._stream.parsing:
            return replace(fetched, records=self._batcher.next(fetched.records))

    def _with_end(self, fetched: _Fetched, children: tuple[Shard, ...]) -> _Fetched:
        """Returns ``fetched`` with the shard's end if the reply is the last one.

        A reply lacks a next iterator if and only if it has children.

        A double of Kinesis may leave the children out, so the listing decides before the reply is refused.
        """
        if fetched.next_iterator is not None:
            if children:
                raise StreamUnavailableError(f"GetRecords gave children of {self.shard_id} though it goes on")
            return fetched
        if children and all(child.parents for child in children):
            return replace(fetched, end=ShardEnd(children))
        end = self._look_for_end()
        if end is None:
            raise StreamUnavailableError(f"GetRecords gave no next iterator, but shard {self.shard_id} is open")
        return replace(fetched, end=end)

    def _gone(self) -> _Fetched:
        end = self._look_for_end()
        if end is None:
            raise StreamUnavailableError(f"Kinesis does not find shard {self.shard_id}, but lists it as open")
        return _Fetched(Portioned(millis_behind_latest=0), end=end)

    def _look_for_end(self) -> ShardEnd | None:
        """Returns the shard's end where ListShards shows it closed or gone from the stream; None while it is open."""
        shards = self._stream.list_shards()
        this = next((shard for shard in shards if shard.id == self.shard_id), None)
        return None if this is not None and this.open else ShardEnd(children_of(self.shard_id, shards))
