"""The leases that this worker believes it holds, and the events about them.

States of a lease here: *held* (waits for its parents) → *started* (``Gained`` was reported) → gone, by one of: ``Lost``
was reported; the consumer released it; it was handed over; this worker closed. Between *started* and gone it may be
*handing over* (``HandingOver`` was reported): the lease still is this worker's, for the time that the settings give, or
until its child has ended where a person moves it (:mod:`.lease_requests`).

Invariants:

* A worker believes to hold a lease for the failover time after the *start* of its last successful write, by this
  host's clock. Other workers count from when they saw that write, which is later. So two workers never both believe to
  hold one lease, even if a host was suspended.
* A :class:`HeldLease` is one acquisition. A checkpoint through the object of an earlier acquisition is refused, also
  when the same worker has taken the lease again since.
* Writes to one lease follow each other (its lock). Otherwise the second would fail at the counter that the first
  raised.

All state is in memory. A crash loses it, and the leases expire by themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import LeaseLostError
from kainite.base.logs import event
from kainite.leases.streams import StreamsById
from kainite.leases.table.lease import Lease
from kainite.leases.table.request import LeaseRequest
from kainite.observe.meter import Meter
from kainite.observe.metric import LOST_LEASES
from kainite.settings import LeaseSettings, StreamSettings

logger = logging.getLogger(__name__)


class HeldLease:
    """One acquisition of a lease; compared by identity.

    Attributes:
        lease: the lease as last written.
        renewed_at: when the last successful write began (the clock of :class:`HeldLeases`, seconds).
        started: whether ``Gained`` was reported.
        lock: held during each write.
        throughput: the shard's load, KB/s, averaged as by KCL's ``LeaseStatsRecorder``; None before the first
            measurement. Renewals store it: KCL 3's leader balances by it.
        hand_over_by: when a hand-over must have ended; None outside a hand-over.
        doubtful: whether a write was sent whose answer was not seen.
        found: the id of the request that the lease had when it was taken; None for none.
        begun: the id of the latest restart that was begun; None before one.
        moving: the move that is under way; None outside of one.
        verdict: what has become of a request, while the table does not have it yet.
        unwanted: whether the lease's stream is read no more; the consumer was told so.
    """

    __slots__ = (
        "_arrived", "_measured_at", "begun", "doubtful", "found", "hand_over_by", "lease", "lock", "moving",
        "renewed_at", "started", "throughput", "unwanted", "verdict",
    )  # fmt: skip

    def __init__(self, lease: Lease, renewed_at: float) -> None:
        self.lease = lease
        self.renewed_at = renewed_at
        self.started = False
        self.lock = asyncio.Lock()
        self.throughput: float | None = None
        self.hand_over_by: float | None = None
        self.doubtful = False
        self.found = lease.request.id if lease.request else None
        self.begun: str | None = None
        self.moving: LeaseRequest | None = None
        self.verdict: LeaseRequest | None = None
        self.unwanted = False
        self._arrived = 0
        self._measured_at: float | None = None

    def count_bytes(self, size: int) -> None:
        """Counts the bytes of a batch of the shard's records."""
        self._arrived += size

    def measure(self, now: float) -> None:
        """Adds the bytes since the last call to the average; each measurement weighs one half."""
        if self._measured_at is not None and now > self._measured_at:
            latest = self._arrived / 1024 / (now - self._measured_at)
            self.throughput = latest if self.throughput is None else (latest + self.throughput) / 2
        self._arrived, self._measured_at = 0, now

    @property
    def shard_id(self) -> str:
        return self.lease.key

    @property
    def checkpoint(self) -> Checkpoint:
        """Returns the checkpoint that was stored last."""
        return self.lease.checkpoint


@dataclass(frozen=True, slots=True)
class Gained:
    """The shard may be read at once, from ``lease.checkpoint``."""

    lease: HeldLease


@dataclass(frozen=True, slots=True)
class HandingOver:
    """The shard is read here no longer: finish, checkpoint, and call ``LeaseKeeper.hand_over``."""

    lease: HeldLease


@dataclass(frozen=True, slots=True)
class Lost:
    """The shard is another worker's now, or may be: stop, and write nothing more for it."""

    lease: HeldLease


@dataclass(frozen=True, slots=True)
class RestartWanted:
    """A person wants another child for the shard: end it, start one, and call ``LeaseKeeper.restarted``."""

    lease: HeldLease
    request: LeaseRequest


LeaseEvent: TypeAlias = Gained | HandingOver | Lost | RestartWanted


@dataclass(slots=True)
class CurrentSettings:
    """The settings in use; each is replaced as a whole when the settings file is read again.

    Attributes:
        leases: of leases.
        stream: of streams, as far as all streams share them.
        streams: the streams that are read, each with its own settings.
    """

    leases: LeaseSettings
    stream: StreamSettings
    streams: StreamsById


class HeldLeases:
    """The leases that this worker holds (the module has the states and invariants). For the event loop only.

    Args:
        settings: the settings in use.
        clock: seconds, never running backwards, and running on while the host is suspended.
        meter: counts losses.
    """

    def __init__(self, settings: CurrentSettings, clock: Callable[[], float], meter: Meter) -> None:
        self.wake = asyncio.Event()  # wakes the taker: perhaps there is a lease to take
        # Bounded by use: at most three for each acquisition, which are rate-limited, and one for each renewal.
        self.events: asyncio.Queue[LeaseEvent] = asyncio.Queue()
        self._settings = settings
        self._clock = clock
        self._meter = meter
        self._held: dict[str, HeldLease] = {}
        self._lost_at: dict[str, int] = {}
        self._paused: dict[str, float] = {}
        self._namesakes: dict[str, int] = {}  # each with its counter at the last scan
        self._told_namesakes: set[str] = set()

    @property
    def all(self) -> tuple[HeldLease, ...]:
        return tuple(self._held.values())

    @property
    def keys(self) -> Collection[str]:
        return self._held.keys()

    def __contains__(self, held: HeldLease) -> bool:
        return self._held.get(held.shard_id) is held

    def age(self, held: HeldLease) -> float:
        """Returns the seconds since the last successful write began."""
        return self._clock() - held.renewed_at

    def seconds_left(self, held: HeldLease) -> float:
        """Returns the seconds until the lease expires, unless a write succeeds before."""
        return self._settings.leases.failover - self.age(held)

    def add(self, taken: Lease, began: float) -> None:
        """Adds a lease that was taken by a write that began at ``began``."""
        self._held[taken.key] = HeldLease(taken, began)
        self._lost_at.pop(taken.key, None)
        self._namesakes.pop(taken.key, None)

    def start(self, held: HeldLease) -> None:
        """Reports that the shard may be read."""
        held.started = True
        self.events.put_nowait(Gained(held))

    def give_up(self, held: HeldLease) -> None:
        """Asks the consumer to give the lease back, because its stream is read no more.

        A lease without a consumer expires by itself: nobody waits for it.
        """
        if held not in self or held.unwanted:
            return
        held.unwanted = True
        event(logger, logging.INFO, "lease of a stream that is read no more", shard=held.shard_id)
        if held.started:
            self.events.put_nowait(HandingOver(held))
        else:
            del self._held[held.shard_id]

    def record_write(self, held: HeldLease, stored: Lease | None, began: float) -> None:
        """Takes over the answer to a write that began at ``began``; ``stored`` None means that the lease is lost."""
        if stored is None or (stored.checkpoint_owner is not None and not self._settings.leases.handoff):
            self.lose(held)
            return
        held.lease, held.renewed_at = stored, began
        if stored.checkpoint_owner is not None and held.hand_over_by is None and held in self:
            held.hand_over_by = self._clock() + self._settings.leases.handoff_timeout
            event(logger, logging.INFO, "lease wanted elsewhere", shard=held.shard_id, worker=stored.owner)
            if held.started:
                self.events.put_nowait(HandingOver(held))

    def ensure_held(self, held: HeldLease) -> None:
        """Raises an error unless this acquisition is still held.

        Raises:
            LeaseLostError: the lease was lost before, or has expired just now.
        """
        if held not in self or self.seconds_left(held) <= 0:
            self.lose(held)
            raise self.lost_error(held)

    def lose(self, held: HeldLease) -> None:
        """Removes a lease, and reports the loss if its shard may be read already."""
        if held not in self:
            return
        del self._held[held.shard_id]
        self._lost_at[held.shard_id] = held.lease.counter + held.doubtful
        self._meter.observe(LOST_LEASES)
        event(logger, logging.WARNING, "lease lost", shard=held.shard_id, checkpoint=held.checkpoint)
        if held.started:
            self.events.put_nowait(Lost(held))
        self.wake.set()

    def begin_release(self, held: HeldLease) -> bool:
        """Removes a lease that is to be released; returns False when it is not held.

        The lease is not taken again before :meth:`end_release`.
        """
        if held not in self:
            return False
        del self._held[held.shard_id]
        self._paused[held.shard_id] = float("inf")
        return True

    def end_release(self, shard_id: str, pause: float = 0.0) -> None:
        """Notes that a lease is released in the table too; it is not taken again for ``pause`` seconds."""
        self._paused[shard_id] = self._clock() + pause
        self.wake.set()

    def pauses(self) -> dict[str, float]:
        """Returns, by shard, for how many seconds more a released lease is not to be taken."""
        now = self._clock()
        self._paused = {key: until for key, until in self._paused.items() if until > now}
        return {key: until - now for key, until in self._paused.items()}

    def namesakes(self, leases: Collection[Lease]) -> set[str]:
        """Returns the leases in this worker's name that this process lost to another process of the same name.

        Otherwise two daemons under one worker id would take each lease from one another for ever. So a lease that
        went on without this process is left to the other process until it has expired. A take or a renewal of this
        process, whose answer it never saw, looks the same at one scan. So only a lease that goes on from one scan to
        the next is told as another process's.
        """
        mine = self._settings.leases.worker_id
        ours = (lease for lease in leases if lease.owner == mine and not lease.just_handed)
        moved = {
            ls.key: ls.counter
            for ls in ours
            if ls.key not in self._held and ls.counter > self._lost_at.get(ls.key, ls.counter)
        }
        renewed = {key for key, counter in moved.items() if counter > self._namesakes.get(key, counter)}
        for key in sorted(renewed - self._told_namesakes):
            event(
                logger, logging.ERROR, "another daemon runs under this worker id: give each its own workerId",
                shard=key, worker=mine,
            )  # fmt: skip
        self._namesakes = moved
        self._told_namesakes = (self._told_namesakes | renewed) & moved.keys()
        return set(moved)

    def lost_error(self, held: HeldLease) -> LeaseLostError:
        """Returns the error for a call through an acquisition that is not held any more."""
        worker = self._settings.leases.worker_id
        return LeaseLostError(f"the lease of shard {held.shard_id} is not held by worker {worker!r} any more")
