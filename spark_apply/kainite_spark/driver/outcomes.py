"""The apply job's own log partition: what became of units, durable before anybody hears of it.

The main log has one owner, the daemon, so the apply job cannot append to it. It appends outcomes
to a log partition of its own, ``<partition>:outcomes``, mounted and fenced by the same code; the
owner copies them into the main log and notes how far (``StatusMeta.through``), and what is below
that is truncated here.

What a crash leaves behind:

* before the put   the target's acknowledgements alone; the units are tried again and found applied;
* after the put    outcomes that the owner takes over when it comes by, and that the next apply
                   job reads back (:meth:`Outcomes.read_from`);
* in a truncation  slots below a low-water mark that the head names already; they go later.

An append is reported as durable only while our lease runs after the store's reply; a lease
that has run out is renewed first, which fails when another apply job has mounted the partition.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from kainite.base.clock import epoch_ms
from kainite.base.errors import LogFencedError, LogHeldError, LogUnavailableError
from kainite.base.logs import event
from kainite.base.retry import only, retry
from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta
from kainite.log.owner.mount import LeaseWatch, Mount, fenced, mount, new_token
from kainite.log.owner.upkeep import outcomes_of
from kainite.log.store.contract import STORE_BACKOFF, LogStore

_LOG = logging.getLogger(__name__)


class Outcomes:
    """A mounted outcomes partition, kept by heartbeats on a thread of its own while it is entered.

    Args:
        store: where the partition is.
        mounted: our hold on it.
        stop: set when waiting should end: a store that is away is not asked for ever.
    """

    def __init__(self, store: LogStore, mounted: Mount, stop: threading.Event) -> None:
        self._store = store
        self._mount = mounted
        self._next_id = mounted.first_id
        self._truncated = mounted.head.low_water_mark
        self._stop = stop
        self._closing = threading.Event()
        self._lost: LogFencedError | None = None
        self._heartbeats = threading.Thread(target=self._beat, name="outcomes-heartbeat", daemon=True)

    @property
    def generation(self) -> int:
        """Of this apply job; it also fences the target."""
        return self._mount.generation

    def __enter__(self) -> Self:
        self._heartbeats.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let the partition go, unless it is gone already."""
        self._closing.set()
        self._heartbeats.join()
        if self._lost is None and not isinstance(error, LogFencedError):
            try:
                self._mount.release()
            except (LogFencedError, LogUnavailableError) as failure:
                event(_LOG, logging.WARNING, "outcomes partition not released", error=failure)

    def check(self) -> None:
        """Raises LogFencedError once a heartbeat found that another apply job has mounted the partition."""
        if self._lost is not None:
            raise self._lost

    def read_from(self, first_id: int) -> tuple[Outcome, ...]:
        """All outcomes in entries from ``first_id`` on, in order; nobody else can append any."""
        batches = self._store.read_batches(self._mount.partition, first_id, data=False, strong=True)
        return outcomes_of(batches, first_id)

    def append(self, outcomes: Iterable[Outcome]) -> None:
        """Make outcomes durable; nothing happens for none.

        Raises:
            LogFencedError: another apply job has mounted the partition.
            LogUnavailableError: we were told to stop while the store was away.
        """
        meta = StatusMeta(tuple(outcomes))
        if meta.outcomes:
            self._put(Batch(self._next_id, self.generation, epoch_ms(), (Entry(EntryKind.STATUS, meta),)))
            self._next_id += 1

    def truncate(self, below: int) -> None:
        """Let go of what the main log has taken over: entries below ``below``."""
        if below > self._truncated:
            self._mount.renew(self._next_id - 1, below)
            self._store.truncate(self._mount.partition, below)
            self._truncated = below

    def _put(self, batch: Batch) -> None:
        nonce = new_token()

        def put() -> None:
            if self._store.put_batch(self._mount.partition, batch, nonce) is not None:
                raise fenced(self._store, self._mount.partition, self.generation)
            if not self._mount.valid():
                self._mount.renew(batch.last_id)

        def failed(error: Exception, failures: int, pause: float) -> None:
            event(_LOG, logging.WARNING, "outcomes not written, trying again", error=error, pause=pause)

        retry(put, STORE_BACKOFF, wait=self._stop.wait, retryable=only(LogUnavailableError), failed=failed)

    def _beat(self) -> None:
        while not self._closing.wait(self._mount.head.lease_ms / 1000 / 4):
            try:
                self._mount.renew(self._next_id - 1)
            except LogFencedError as error:
                self._lost = error
                return
            except LogUnavailableError as error:
                event(_LOG, logging.WARNING, "outcomes heartbeat not written", error=error)


def mount_outcomes(
    store: LogStore, partition: str, owner: str, lease: float, stop: threading.Event, watch: LeaseWatch | None = None
) -> Outcomes | None:
    """Mount an outcomes partition, waiting while another apply job's lease runs.

    Args:
        store: where it is.
        partition: its name.
        owner: our name, unlike that of any other process.
        lease: seconds that we may be silent.
        stop: ends the waiting.
        watch: what was seen of another apply job's lease before (:func:`begin_to_watch`).

    Returns:
        None when ``stop`` was set first.

    Raises:
        LogFencedError: another apply job mounted while we did.
    """
    watch = watch or LeaseWatch()
    told = False
    while not stop.is_set():
        try:
            return Outcomes(store, mount(store, partition, owner, lease, watch), stop)
        except LogHeldError as error:
            if not told:
                event(_LOG, logging.WARNING, "waiting for another apply job to end", error=error)
            told = True
            stop.wait(min(lease / 10, 1.0))
    return None


def begin_to_watch(store: LogStore, partition: str) -> LeaseWatch:
    """Look at an outcomes partition's lease, so that the time until we mount counts towards its end."""
    watch = LeaseWatch()
    head = store.read_head(partition)
    if head is not None:
        watch.remaining(head)
    return watch
