"""Fetches the events of one shard, subscription after subscription, and makes them into batches. Blocks.

The reader's thread calls :meth:`PushedEvents.fetch`, one call at a time; the event loop calls the other methods between
two fetches. Only :meth:`PushedEvents.interrupt` may be called at any time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from kainite.aws.failures import Failure, classify
from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.base.clock import boot_seconds
from kainite.base.errors import StreamUnavailableError
from kainite.base.position import Position
from kainite.kinesis.client import StreamClient
from kainite.kinesis.failures import unknown_checkpoint
from kainite.kinesis.read.batcher import Batcher, Portioned
from kainite.kinesis.read.continuity import Continuity
from kainite.kinesis.read.record_batch import ShardEnd
from kainite.kinesis.read.subscription import ShardEvent, Subscriber, Subscription, parse_event
from kainite.kinesis.start_position import StartAt, start_at
from kainite.settings import StreamSettings

WAITED_S = 0.005
"""Seconds: an event that took so long was not in a buffer when it was asked for."""

SURELY_WAITED_S = 0.5
"""Seconds that show the same on a machine however busy: a busy processor takes a while to read an event that is there.

An idle shard's events are seconds apart.
"""


@dataclass(frozen=True, slots=True)
class FetchedEvent:
    """The contents of one event.

    Attributes:
        records: the event's records, which become batches one portion after the other.
        continuation: where the next subscription goes on.
        end: set at the shard's end.
        closed: whether the shard is closed; records may be left before its end.
        waited_since: a time (seconds since boot) at which the event was not there yet; None when it was there at
            once. Such an event may have lain in a buffer for long, so its statement about the shard's tip is old.
        surely_waited: whether the wait for the event was so long that no busy machine explains it.
    """

    records: Portioned = field(default_factory=Portioned)
    continuation: str | None = None
    end: ShardEnd | None = None
    closed: bool = False
    waited_since: float | None = None
    surely_waited: bool = False


class PushedEvents:
    """The events of one shard from a checkpoint on, in order.

    An event counts from :meth:`accept` on: a subscription that fails is opened again where the last accepted event
    ended.

    Args:
        stream: the stream, which lists its shards.
        subscriber: makes the subscriptions; all readers of the stream share it.
        shard_id: the shard's id.
        start: the lease's checkpoint.
        settings: an idle shard is looked up in the listing every ``shard_sync``.
        cut_at: the position of the serialization log for this shard.
        batcher: makes the batches.

    Attributes:
        opened_at: the time of the first subscription by Kinesis's clock, epoch seconds: where LATEST was.
        subscribed_at: the time of the last subscription, by :func:`time.monotonic`.
        continuation: the sequence number with which the last accepted event ended, if any.
    """

    def __init__(
        self,
        stream: StreamClient,
        subscriber: Subscriber,
        shard_id: str,
        start: Checkpoint,
        settings: StreamSettings,
        cut_at: Position | None,
        batcher: Batcher,
    ) -> None:
        self.opened_at: float | None = None
        self.subscribed_at = 0.0
        self.continuation: str | None = None
        self._stream = stream
        self._subscriber = subscriber
        self._shard_id = shard_id
        self._start = start
        self._settings = settings
        self._cut_at = cut_at
        self._batcher = batcher
        self._continuity = Continuity(shard_id, cut_at)
        self._subscription: Subscription | None = None
        self._heard = False
        self._looked_up_at = time.monotonic()
        self._accepted: Position | None = None  # the position of the last record of the accepted events
        self._unfinished: FetchedEvent | None = None  # the last event, while portions of it are left
        self._interrupted = False

    @property
    def has_portions_left(self) -> bool:
        """Tells whether the next fetch returns a further portion of the last accepted event."""
        return self._unfinished is not None

    def accept(self, fetched: FetchedEvent) -> None:
        """Counts a fetched event or portion as read."""
        self._accepted = fetched.records.last or self._accepted
        self.continuation = fetched.continuation or self.continuation
        self._unfinished = fetched if fetched.records.rest else None

    def forget_continuation(self) -> None:
        """Makes the next subscription begin after the last accepted record instead of the continuation."""
        self.continuation = None

    def interrupt(self) -> None:
        """Ends the fetch that waits for an event, and each later one."""
        self._interrupted = True
        if self._subscription is not None:
            self._subscription.interrupt()

    def close(self) -> None:
        """Closes the connection; the reader's thread calls this method, between two fetches."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def fetch(self) -> FetchedEvent | None:
        """Returns the next event, or the next portion of one; None when a subscription ended after its five minutes.

        Raises:
            Exception: the call or the subscription failed; :func:`~kainite.aws.failures.classify` tells what it means.
        """
        if self._start == SHARD_END:
            return FetchedEvent(closed=True)
        if self._unfinished is not None:
            return self._next_portion(self._unfinished)
        try:
            return self._next_event(self._subscription or self._subscribe())
        except Exception as error:
            self.close()
            return self._explain(error)

    def _explain(self, error: Exception) -> FetchedEvent:
        match classify(error):
            case Failure.GONE if not self._is_open():
                return FetchedEvent(closed=True)
            case Failure.GONE:
                raise StreamUnavailableError(
                    f"Kinesis lists shard {self._shard_id} as open, but does not find it, or not the consumer "
                    f"{self._subscriber.consumer_arn}: was it deregistered? then restart"
                ) from error
            case Failure.EXPIRED if self.continuation is None:
                sequence = self._resume_at().sequence
                raise unknown_checkpoint(self._stream.name, self._shard_id, sequence, error) from error
        raise error

    def _resume_at(self) -> StartAt:
        if self.continuation is not None:
            return StartAt("AFTER_SEQUENCE_NUMBER", self.continuation)
        return start_at(self._start, self._accepted, self._cut_at, self.opened_at, self._settings.initial_timestamp)

    def _subscribe(self) -> Subscription:
        wanted = self._resume_at()
        self.subscribed_at = time.monotonic()
        self._heard = False
        self._subscription = self._subscriber.subscribe(self._shard_id, wanted)
        self.opened_at = self.opened_at or self._subscription.opened_at
        self._continuity.begins(wanted)
        if self._interrupted:  # interrupt() came during the call and found no subscription to interrupt
            self._subscription.interrupt()
        return self._subscription

    def _next_event(self, subscription: Subscription) -> FetchedEvent | None:
        began = boot_seconds()
        payload = subscription.next()
        waited = boot_seconds() - began
        if payload is None:
            if not self._heard:
                raise StreamUnavailableError(f"the subscription to shard {self._shard_id} ended without any event")
            self.close()
            return None
        self._heard = True
        # Events that wait for their turn wait as bytes, and the bytes go once they are parsed.
        with self._stream.parsing:
            pushed = parse_event(payload)
            del payload
            fresh = self._continuity.look(pushed.records, self._accepted)
            records = self._batcher.begin(fresh, pushed.millis_behind_latest, plain=pushed.plain)
            fetched = FetchedEvent(
                records,
                _sound(pushed.continuation),
                waited_since=began if waited >= WAITED_S else None,
                surely_waited=waited >= SURELY_WAITED_S,
            )
        return self._with_end(fetched, pushed)

    def _next_portion(self, fetched: FetchedEvent) -> FetchedEvent:
        with self._stream.parsing:
            return replace(fetched, records=self._batcher.next(fetched.records))

    def _with_end(self, fetched: FetchedEvent, pushed: ShardEvent) -> FetchedEvent:
        """Returns ``fetched`` with the shard's end if the event is the last one.

        The last event has children and no continuation (docs/kcl.md, *Fan-out*).
        """
        if pushed.continuation is None and pushed.children and all(child.parents for child in pushed.children):
            return replace(fetched, end=ShardEnd(tuple(child.within(self._stream.id) for child in pushed.children)))
        if pushed.continuation is None or pushed.children:
            if self._is_open():
                raise StreamUnavailableError(f"an event shows the end of shard {self._shard_id}, which is open")
            return replace(fetched, closed=True)
        idle = not pushed.records and not pushed.millis_behind_latest
        if idle and time.monotonic() - self._looked_up_at >= self._settings.shard_sync:
            return replace(fetched, closed=not self._is_open())
        return fetched

    def _is_open(self) -> bool:
        self._looked_up_at = time.monotonic()
        return any(shard.id == self._shard_id and shard.open for shard in self._stream.list_shards())


def _sound(continuation: str | None) -> str | None:
    """Drops "0", which LocalStack sends until the first record: Kinesis would start from the oldest record there."""
    return continuation if continuation and int(continuation) > 0 else None
