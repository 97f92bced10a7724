"""The contract of a log store: the primitives that make a log partition durable.

docs/formats.md has the items, docs/decisions.md the reasons.

A partition has one HEAD and a run of slots. A slot is keyed
by the transaction id it starts at, and holds either a batch or a *fence*: an empty slot by which
a new owner closes the tail, so that the owner before it can never append again. Slots are
created only where nothing stands, or over the writer's own fence. The store evaluates this condition in
one step, and the condition is the log's whole protection. Everything else (who may mount, when an
append is acknowledged) is built on it in :mod:`kainite.owner.mount` and :mod:`kainite.owner.append`.

A partition's slots stand in one key of the store, or behind a *fork* in several (:mod:`kainite.store.striping`).
Callers name ids alone; where a slot stands is the store's matter.

Invariants of every store, which the conformance suite checks:

* I1  a batch's slot never changes, and only :meth:`LogStore.truncate` removes it;
* I2  ids are dense: a batch is put at the id after the last one of the slot before it;
* I3  a :meth:`LogStore.put_batch` that is sent again with the same nonce reports success
  if the first attempt succeeded and its reply was lost;
* I4  a strong read sees every put that has returned;
* I5  a fork is put once, over the writer's own fence, and stays;
* I6  the first decision that is put under a name stands until it is deleted, whoever puts another one.

All calls block; the daemon runs them in threads. Any of them may raise
:class:`~kainite.base.errors.LogUnavailableError`, after which the same call may be made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kainite.base.retry import Backoff
from kainite.log.format.entry import Batch

STORE_BACKOFF = Backoff((0.05, 0.1, 0.2, 0.5, 1.0))
"""Pauses before a batch is sent again to a store that did not answer."""

NAMES_BYTES = 262_144
"""The most bytes of a segment of names: far below DynamoDB's limit for an item."""

ANSWERS_KEPT = 100
"""How many answers that nobody takes are kept: each poll of the inbox reads them, and an age would depend on clocks."""

REQUESTS_AT_ONCE = 200
"""How many requests are read at once: whoever may leave one may leave any number, and an item has up to 400 KB."""


@dataclass(frozen=True, slots=True)
class LogHead:
    """A partition's head item.

    Attributes:
        generation: raised by each mount.
        owner: the last owner to mount the partition (a worker id).
        process: identity of the process that mounted it (:mod:`kainite.base.process_identity`), as text.
        version: changes with every write of the head, and so with every heartbeat.
        lease_ms: milliseconds without a heartbeat after which another owner may mount.
        released: the owner has released the partition; anybody may mount at once.
        high_water_mark: last durable id at the last heartbeat, -1 for none.
        low_water_mark: ids below it are truncated, and readers ignore them.
        snapshot: id of the latest durable snapshot entry, -1 for none.
        address: the owner's address (:mod:`kainite.peers.address`), as text; empty for an owner that does not listen.
        token: by which the owner knows who has read this item; empty where it knows its users otherwise.
        summary: the log's figures at the last heartbeat (:mod:`kainite.log.state.summary`), as text; empty for none.
    """

    generation: int
    owner: str
    version: str
    lease_ms: int
    released: bool = False
    high_water_mark: int = -1
    low_water_mark: int = 0
    snapshot: int = -1
    process: str = ""
    address: str = ""
    token: str = field(default="", repr=False)
    summary: str = field(default="", repr=False)


BLOCK = 1024
"""Ids in a row whose slots stand in one stripe: at a high rate a batch or two, so that batches go round the stripes."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a partition's slots begin to be spread over several keys, for good.

    Attributes:
        at: the first id whose slots are spread.
        stripes: the number of keys over which slots are spread.
        block: how many ids in a row belong to one key.
    """

    at: int
    stripes: int
    block: int = BLOCK


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot without its contents. ``count`` is 0 for a fence, and for a fork.

    Attributes:
        fork: the fork from which on the partition's slots are spread; None without a fork, and in a slot that another
            method than :meth:`LogStore.read_tail` returned.
    """

    first_id: int
    generation: int
    count: int
    nonce: str
    fork: Fork | None = field(default=None, compare=False)

    @property
    def is_fence(self) -> bool:
        return self.count == 0

    @property
    def next_id(self) -> int:
        """Returns the id after this slot: the first id of the next batch."""
        return self.first_id + self.count


class TransactionDecision(NamedTuple):
    """What is decided on a transaction of several targets.

    Attributes:
        committed: whether it is to be committed, or rolled back.
        targets: the targets in which it is prepared; empty where whoever decided did not know.
    """

    committed: bool
    targets: tuple[str, ...] = ()


class LogStore(Protocol):
    """The primitives of a log store. Strings name partitions, ids are transaction ids."""

    def create(self) -> None:
        """Creates the store's table where it is missing, and waits until it is usable."""

    def read_head(self, partition: str) -> LogHead | None:
        """Returns the head, strongly consistent; None for a partition that was never mounted."""

    def swap_head(self, partition: str, new: LogHead, expected: LogHead | None) -> bool:
        """Writes the head if it still has ``expected.version`` (None: if it is absent).

        Returns:
            Whether the head stands (also by an earlier attempt with ``new.version``).
        """

    def read_tail(self, partition: str) -> Slot | None:
        """Returns the last slot, strongly consistent; None for an empty partition.

        While others append and truncate, the result is the last slot at some moment of the call.
        """

    def put_fence(self, partition: str, at: int, generation: int, nonce: str) -> Slot | None:
        """Puts a fence where nothing stands, or over a fence of a lower generation.

        Returns:
            None when the fence stands (also by an earlier attempt with this nonce), else the
            slot in the way.
        """

    def put_fork(self, partition: str, fork: Fork, generation: int, nonce: str) -> Slot | None:
        """Puts a fork over the writer's own fence, in a partition without one.

        Returns:
            None when the fork stands (also by an earlier attempt with this nonce), else the slot in the way.

        Raises:
            LogUnavailableError: the store does not answer, or has no fence at the fork's place; nothing was written.
        """

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        """Puts a batch where nothing stands, or over the fence of its own generation.

        Returns:
            None when the batch is durable (also by an earlier attempt with this nonce), else the
            slot in the way.

        Raises:
            LogError: the batch is larger than the store takes.
        """

    def read_batches(
        self, partition: str, first_id: int, last_id: int | None = None, *, data: bool = True, strong: bool = False
    ) -> Iterator[Batch]:
        """Yields the batches that hold any id from ``first_id`` to ``last_id`` (or to the tail), in order.

        ``data=False`` reads the index alone: entries come without their data. Without ``strong``
        the last batches may be missing, and a hole in the middle is read again strongly.

        Raises:
            LogCorruptError: a batch does not read back as written, or ids are missing in the middle.
        """

    def truncate(self, partition: str, below: int) -> int:
        """Deletes slots that end below ``below``, but never the last slot of a key; only the owner may call it.

        Returns:
            How many slots were deleted.
        """

    def put_names(self, partition: str, segment: str, names: bytes) -> None:
        """Writes a segment of the names of dispatched units (:mod:`kainite.log.state.recent_units`) under its key.

        The same key is only ever written with the same bytes, at most :data:`NAMES_BYTES`.
        """

    def read_names(self, partition: str) -> Iterator[tuple[str, bytes]]:
        """Yields all segments with their keys, in order of keys, strongly consistent."""

    def delete_names(self, partition: str, keys: Sequence[str]) -> None:
        """Deletes the segments with these keys, if they exist; only the owner may call it."""

    def put_request(self, partition: str, request: Mapping[str, str]) -> str:
        """Puts a request (retry, discard) into the partition's inbox; returns its id."""

    def read_requests(self, partition: str) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Returns the oldest requests without an answer, at most :data:`REQUESTS_AT_ONCE`, oldest first: (id, request).

        Of the answers that nobody has taken, because the client is gone, the latest :data:`ANSWERS_KEPT` stay.
        """

    def answer_request(self, partition: str, request_id: str, answer: Mapping[str, str]) -> None:
        """Stores the owner's answer beside a request, which takes the request out of the inbox."""

    def take_answer(self, partition: str, request_id: str) -> Mapping[str, str] | None:
        """Returns the answer to a request and removes both; None while there is no answer."""

    def decide(self, partition: str, name: str, *, committed: bool, targets: Sequence[str] = ()) -> bool:
        """Puts the decision on a transaction of several targets, where none stands; returns the one that stands.

        A call that is sent again finds the decision of the first attempt.

        Args:
            partition: the log partition.
            name: the transaction's (:mod:`kainite_spark.targets.preparing`).
            committed: whether it is to be committed, or rolled back.
            targets: the targets in which it is prepared, as far as whoever decides knows.
        """

    def read_decisions(self, partition: str) -> Iterator[tuple[str, TransactionDecision]]:
        """Yields the names of decided transactions, in order, with their decisions; strongly consistent."""

    def delete_decisions(self, partition: str, names: Sequence[str]) -> None:
        """Deletes the decisions under these names, if they exist."""
