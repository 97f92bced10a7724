"""Where a log partition is durable: the primitives that a store must offer, and nothing more.

The scheme is reference/waltz.md §7. A partition has one HEAD and a run of slots. A slot is keyed
by the transaction id it starts at, and holds either a batch or a *fence*: an empty slot by which
a new owner closes the tail, so that the owner before it can never append again. Slots are
created only where nothing stands, or over the writer's own fence; that condition, evaluated by
the store in one step, is all the protection there is. Everything else (who may mount, when an
append is acknowledged) is built on it in :mod:`kainite.log.owner.mount` and :mod:`kainite.log.owner.owner`.

Invariants that every store keeps, and the conformance suite checks:

* I1  a batch's slot never changes and never vanishes, but for :meth:`LogStore.truncate`;
* I2  ids are dense: a batch is put at the id after the last one of the slot before it;
* I3  :meth:`LogStore.put_batch` that failed and is sent again with the same nonce reports success
  if the first attempt had succeeded after all (a lost reply);
* I4  reads marked strong see every put that has returned.

All calls block; the daemon runs them in threads. Any of them may raise
:class:`~kainite.base.errors.LogUnavailableError`, after which the same call may be made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kainite.base.retry import Backoff
from kainite.log.format.entry import Batch

STORE_BACKOFF = Backoff((0.05, 0.1, 0.2, 0.5, 1.0))
"""For a batch that is sent again to a store that did not answer, until it answers."""


@dataclass(frozen=True, slots=True)
class LogHead:
    """A partition's head item.

    Attributes:
        generation: raised by each mount.
        owner: who mounted it last (a worker id).
        version: changes with every write of the head; a heartbeat is a change of it.
        lease_ms: how long the owner may be silent before another one may mount.
        released: the owner has let go; anybody may mount at once.
        high_water_mark: last durable id at the last heartbeat, -1 for none.
        low_water_mark: ids below it are truncated, and readers ignore them.
        snapshot: id of the latest durable snapshot entry, -1 for none.
    """

    generation: int
    owner: str
    version: str
    lease_ms: int
    released: bool = False
    high_water_mark: int = -1
    low_water_mark: int = 0
    snapshot: int = -1


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot without its contents. ``count`` is 0 for a fence."""

    first_id: int
    generation: int
    count: int
    nonce: str

    @property
    def is_fence(self) -> bool:
        return self.count == 0

    @property
    def next_id(self) -> int:
        """The id after this slot: where the next batch belongs."""
        return self.first_id + self.count


class LogStore(Protocol):
    """The primitives. Partitions are named by strings, ids are transaction ids."""

    def create(self) -> None:
        """Make what the store needs (a table) where it is missing, and wait until it is usable."""

    def read_head(self, partition: str) -> LogHead | None:
        """The head, strongly consistent; None for a partition never mounted."""

    def swap_head(self, partition: str, new: LogHead, expected: LogHead | None) -> bool:
        """Write the head if it still has ``expected.version`` (or is absent); False otherwise."""

    def read_tail(self, partition: str) -> Slot | None:
        """The last slot, strongly consistent; None for an empty partition."""

    def put_fence(self, partition: str, at: int, generation: int, nonce: str) -> Slot | None:
        """Put a fence where nothing stands, or over a fence of a lower generation.

        Returns:
            None when the fence stands (also when it stood already with this nonce), else the
            slot that is in the way.
        """

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        """Put a batch where nothing stands, or over the fence of its own generation.

        Returns:
            None when the batch is durable (also by an earlier attempt with this nonce), else the
            slot that is in the way.

        Raises:
            LogError: the batch is larger than the store takes.
        """

    def read_batches(
        self, partition: str, first_id: int, last_id: int | None = None, *, data: bool = True, strong: bool = False
    ) -> Iterator[Batch]:
        """Batches that hold any id from ``first_id`` to ``last_id`` (or to the tail), in order.

        ``data=False`` reads the index alone: entries come without their data. Without ``strong``
        the last batches may be missing, and a hole in the middle is read again strongly.

        Raises:
            LogCorruptError: a batch is not what was written, or ids are missing in the middle.
        """

    def truncate(self, partition: str, below: int) -> int:
        """Delete slots that end below ``below``; only the owner may, and never the last slot.

        Returns:
            How many slots went.
        """

    def put_request(self, partition: str, request: Mapping[str, str]) -> str:
        """Leave a request (retry, discard) in the partition's inbox; returns its id."""

    def read_requests(self, partition: str) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Requests that have no answer yet, oldest first: (id, request)."""

    def answer_request(self, partition: str, request_id: str, answer: Mapping[str, str]) -> None:
        """Store the owner's answer beside a request, which takes it out of the inbox."""

    def take_answer(self, partition: str, request_id: str) -> Mapping[str, str] | None:
        """The answer to a request, removing both; None while there is none."""
