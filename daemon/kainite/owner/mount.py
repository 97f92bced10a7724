"""Mounts a log partition: takes it over, holds it by heartbeats, and releases it.

The states are in docs/state-machines.md, *Log partition*.

Mounting is three steps, or four, each a primitive of the store; a crash after any of them leaves a log
that the next mount can take over:

1. *claim*   write the head with the generation raised by one, if nobody wrote it in between and
   the partition is free (below). Crash: the old owner's heartbeats fail and it stops; nobody owns the partition.
2. *find*    read the tail. A tail of a higher generation means that we were overtaken: give up.
3. *fence*   put a fence behind the tail. If the old owner's batch got there first: find again.
   Crash: the old owner's next append meets the fence; the next mount fences over ours.
4. *fork*    where the settings ask for stripes and the log has none yet (:mod:`kainite.store.striping`): put a
   fork over the fence, and find again: the next fence stands in a stripe. Crash: the next mount fences there.

From then on no batch of an older generation can be put: each would have to stand where our
fence, or a batch of ours over it, stands. The claim alone protects nothing; it only prevents two
owners from fencing each other for ever. For this it must not take what another process still uses, whatever that
process is called: two hosts with one worker id would fence each other in fractions of a second.

=============================================  =====================================================================
the head                                       the partition is free
=============================================  =====================================================================
was released                                   at once
is this process's own, under the same name     at once: a mount whose answer was lost, or that was not released
is of a process that is provably gone          at once: a restart on one host (:mod:`kainite.base.process_identity`)
is of a generation whose owner refuses         at once: its port is closed, so its process is most likely gone; when
connections                                    this is believed says :mod:`kainite.peers.sharing.membership`
is anybody else's, or names no process         when it was silent for a whole lease on our own clock
=============================================  =====================================================================

The tests run random interleavings of two owners' primitives
against every store.

An owner acknowledges an append only while its lease runs (:meth:`Mount.valid`), because a slot
that was truncated after we lost the partition could be created again without meeting a fence.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial

from kainite.base.clock import boot_seconds
from kainite.base.errors import LogFencedError, LogHeldError
from kainite.base.lease import Tenure, seconds_left
from kainite.base.liveness import Sighting, observe
from kainite.base.process_identity import ProcessIdentity, from_text, this_process
from kainite.log.contract import Fork, LogHead, LogStore

Clock = Callable[[], float]


def new_token() -> str:
    """Returns a head version or slot nonce that is unlike any other."""
    return uuid.uuid4().hex


class LeaseWatch:
    """Tells whether another owner's lease has run out, by our own clock alone.

    The lease counts from when *we* first saw the head's present version (:mod:`kainite.base.liveness`).
    """

    def __init__(self, clock: Clock = boot_seconds) -> None:
        self._clock = clock
        self._seen: Sighting[str] | None = None
        self._head: LogHead | None = None
        self._alive = False

    def remaining(self, head: LogHead) -> float:
        """Returns the seconds until ``head``'s owner counts as dead; 0 or less when it counts as dead now."""
        if head != self._head:
            self._alive = self._head is not None and _is_heartbeat(self._head, head)
        self._seen, self._head = observe(self._seen, head.version, self._clock()), head
        return self.left

    @property
    def left(self) -> float:
        """Returns the seconds until the owner of the head that was seen last counts as dead; 0 if none was seen."""
        if self._seen is None or self._head is None:
            return 0.0
        return seconds_left(self._seen, self._head.lease_ms / 1000, self._clock())

    @property
    def is_late(self) -> bool:
        """Returns whether that owner has been silent for half of its lease, in which it writes two heartbeats."""
        return self._head is not None and self.left <= self._head.lease_ms / 2000

    def has_living_namesake(self, owner: str) -> bool:
        """Returns whether another process holds the partition under our name, and was seen to send heartbeats."""
        return self._alive and self._head is not None and self._head.owner == owner


def _is_heartbeat(before: LogHead, after: LogHead) -> bool:
    """Returns whether the owner of a head wrote it again."""
    return before.version != after.version and before.generation == after.generation


class Mount:
    """A mounted log partition: the generation that we hold, and the lease that we renew.

    Safe to use from several threads: writes of the head are serialized.
    """

    def __init__(
        self, store: LogStore, partition: str, head: LogHead, next_id: int, seen_at: float, clock: Clock
    ) -> None:
        self._store = store
        self._head = head
        self._tenure = Tenure(head.lease_ms / 1000, seen_at)
        self._clock = clock
        self._lock = threading.Lock()
        self.partition = partition
        self.generation = head.generation
        self.first_id = next_id
        """Transaction id of the first entry that this mount may append."""

    def __repr__(self) -> str:
        return f"<Mount partition={self.partition} generation={self.generation} valid={self.valid()}>"

    @property
    def head(self) -> LogHead:
        return self._head

    def valid(self) -> bool:
        """Returns whether the lease runs, so that an append just made durable may be acknowledged."""
        return self._tenure.holds(self._clock())

    def renew(
        self,
        high_water_mark: int = -1,
        low_water_mark: int = 0,
        snapshot: int = -1,
        *,
        released: bool = False,
        summary: str | None = None,
    ) -> None:
        """Writes a heartbeat; marks only rise. ``summary`` is the log's; None keeps the one that HEAD has.

        Raises:
            LogFencedError: another owner claimed the partition.
            LogUnavailableError: the store did not answer; the lease runs on until its end.
        """
        with self._lock:
            started = self._clock()
            write = partial(self._write, high_water_mark, low_water_mark, snapshot, released, summary)
            written = write()
            if written is None and self._adopt():
                written = write()
            if written is None:
                raise fenced(self._store, self.partition, self.generation)
            self._head = written
            self._tenure = self._tenure.renewed(started)

    def _write(
        self, high_water_mark: int, low_water_mark: int, snapshot: int, released: bool, summary: str | None
    ) -> LogHead | None:
        new = replace(
            self._head,
            version=new_token(),
            released=released,
            high_water_mark=max(self._head.high_water_mark, high_water_mark),
            low_water_mark=max(self._head.low_water_mark, low_water_mark),
            snapshot=max(self._head.snapshot, snapshot),
            summary=self._head.summary if summary is None else summary,
        )
        return new if self._store.swap_head(self.partition, new, self._head) else None

    def _adopt(self) -> bool:
        """Adopts the head as it stands if its generation is still ours: a write of ours got no reply."""
        current = self._store.read_head(self.partition)
        if current is None or current.generation != self.generation:
            return False
        self._head = current
        return True

    def release(self) -> None:
        """Releases the partition, so that anybody may mount at once; the mount must not be used afterwards."""
        self.renew(released=True)
        self._tenure = self._tenure.given_up()


def mount_steps(
    store: LogStore,
    partition: str,
    owner: str,
    lease: float,
    watch: LeaseWatch,
    clock: Clock = boot_seconds,
    process: ProcessIdentity | None = None,
    *,
    address: str = "",
    gone: int | None = None,
    stripes: int = 1,
    token: str = "",
) -> Generator[str, None, Mount]:
    """Mounts a partition, yielding before each primitive: a point at which anything else may happen.

    Args:
        store: where the partition is.
        partition: its name.
        owner: our name.
        lease: seconds without a heartbeat after which others may take over.
        watch: what we saw of the head before; the same one in every attempt.
        clock: measures the lease, in seconds.
        process: identity of the process that mounts; None: the calling one.
        address: where other processes reach this one; empty: nowhere.
        gone: a generation whose owner need not be waited for; None: no such generation is known.
        token: lets in who has read HEAD (:mod:`kainite.peers.access`); empty: nobody is let in by it.
        stripes: over how many keys the log is to be spread, if it is in one key yet; 1: it stays there.

    Raises:
        LogHeldError: another owner's lease is still running.
        LogFencedError: another owner mounted the partition at the same time.
    """
    process = process or this_process()
    yield "read head"
    old = store.read_head(partition)
    if old is not None and (left := seconds_held(old, owner, watch, process, gone)) > 0:
        raise LogHeldError(
            f"log partition {partition} is held by {holder_of(old, owner)}; its lease runs {left:.1f} s more"
        )
    head = LogHead(
        generation=old.generation + 1 if old else 1,
        owner=owner,
        version=new_token(),
        lease_ms=int(lease * 1000),
        high_water_mark=old.high_water_mark if old else -1,
        low_water_mark=old.low_water_mark if old else 0,
        snapshot=old.snapshot if old else -1,
        process=process.as_text(),
        address=address,
        token=token,
        summary=old.summary if old else "",
    )
    claimed_at = clock()
    yield "claim"
    if not store.swap_head(partition, head, old):
        raise LogHeldError(f"log partition {partition} was claimed by another owner just now")
    next_id = yield from _fence_steps(store, partition, head.generation, stripes)
    return Mount(store, partition, head, next_id, claimed_at, clock)


def seconds_held(
    head: LogHead, owner: str, watch: LeaseWatch, process: ProcessIdentity, gone: int | None = None
) -> float:
    """Returns the seconds until the partition may be claimed; 0 or less when it may be claimed now.

    The arguments are those of :func:`mount_steps`.
    """
    if _is_free(head, owner, process) or head.generation == gone:
        return 0.0
    return watch.remaining(head)


def _is_free(head: LogHead, owner: str, process: ProcessIdentity) -> bool:
    """Returns whether a head may be claimed at once, without waiting for its lease."""
    if head.released or (head.owner, head.process) == (owner, process.as_text()):
        return True
    before = from_text(head.process)
    return before is not None and before.is_gone(process)


def holder_of(head: LogHead, owner: str = "") -> str:
    """Returns who holds a partition, for messages to the worker ``owner``."""
    process = from_text(head.process)
    holder = f"{head.owner} ({process})" if process else head.owner
    return f"{holder}, under our own name" if head.owner == owner else holder


def _fence_steps(store: LogStore, partition: str, generation: int, stripes: int) -> Generator[str, None, int]:
    nonce = new_token()
    while True:
        yield "find tail"
        tail = store.read_tail(partition)
        if tail is not None and tail.generation > generation:
            raise fenced(store, partition, generation)
        at = tail.next_id if tail else 0
        yield "put fence"
        in_way = store.put_fence(partition, at, generation, nonce)
        if in_way is None:
            if stripes == 1 or (tail is not None and tail.fork is not None):
                return at
            yield "put fork"
            in_way = store.put_fork(partition, Fork(at, stripes), generation, new_token())
        if in_way is not None and in_way.generation > generation:
            raise fenced(store, partition, generation)


def mount(
    store: LogStore,
    partition: str,
    owner: str,
    lease: float,
    watch: LeaseWatch | None = None,
    clock: Clock = boot_seconds,
    process: ProcessIdentity | None = None,
    *,
    address: str = "",
    gone: int | None = None,
    stripes: int = 1,
    token: str = "",
) -> Mount:
    """Mounts ``partition`` in one go; arguments and errors as :func:`mount_steps`."""
    steps = mount_steps(
        store, partition, owner, lease, watch or LeaseWatch(clock), clock, process,
        address=address, gone=gone, stripes=stripes, token=token,
    )  # fmt: skip
    while True:
        try:
            next(steps)
        except StopIteration as done:
            mounted: Mount = done.value
            return mounted


def fenced(store: LogStore, partition: str, generation: int) -> LogFencedError:
    """Returns the error of an owner that was overtaken; its message names the new owner."""
    head = store.read_head(partition)
    by = f"{holder_of(head)} (generation {head.generation})" if head else "another owner"
    return LogFencedError(
        f"log partition {partition} was taken over from us (generation {generation}) by {by}; "
        "a daemon goes on as its client, and of two apply jobs of one application one must end"
    )
