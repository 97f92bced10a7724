"""The log's store in DynamoDB: one table, six kinds of items, one conditional write for each batch.

==========  =======================  ===========================================================
p (hash)    s (range)                item
==========  =======================  ===========================================================
``0#H``     ``head``                 the partition's head
``0#L``     20-digit first id        a slot: ``k`` d (batch) or f (fence), ``g`` generation, ``n``
                                     number of entries, ``x`` nonce, ``i`` index and ``d`` payload;
                                     or ``k`` s, a fork: ``st`` stripes, ``sb`` ids in a block
``0#L#3``   20-digit first id        a slot in a stripe, behind a fork
``0#C``     first id, nonce, number  chunks of a batch too large for one item; the slot then has
                                     ``c`` chunks and ``l``, the index's length within them
``0#C#3``   first id, nonce, number  chunks of a batch that stands in a stripe; they begin in that
                                     stripe's key, and go on through the others'
``0#N``     the segment's key        ``d``: digests of names of dispatched units
``0#D``     the transaction's name   ``c``: whether a transaction of several targets is committed
``0#Q``     time and a random part   a request to the owner, and the owner's answer beside it
==========  =======================  ===========================================================

The ``0`` is the log partition's name. A batch that needs chunks is durable when its slot is: the chunks are
written before the slot. Chunks that a crash leaves without a slot are deleted with the truncation of the ids
around them. Sort keys are strings so that ids and chunks order alike; ids never exceed 19 digits.

The put's condition is the log's whole protection (:mod:`kainite.log.contract`). It relies on
DynamoDB's documented behaviour only: PutItem with a ConditionExpression is atomic, and
ReturnValuesOnConditionCheckFailure=ALL_OLD returns the item in the way (AWS, *Condition
expressions*). Nothing is cached but forks, which never change, so several processes may read one table. A writer that
does not know of a fork writes into the spine, and finds the fork in its way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kainite.aws.dynamodb import Item, binary, flag, number, text
from kainite.log.contract import Fork, LogHead, Slot, TransactionDecision
from kainite.log.format.entry import Batch
from kainite.store.batch_items import BatchItems
from kainite.store.batch_reading import BatchReading
from kainite.store.dynamodb_items import (
    HEAD_WITHOUT_TOKEN,
    SLOT_FIELDS,
    chunks_key,
    fork_fields,
    head_fields,
    head_from,
    id_key,
    key,
    slot_fields,
    slot_from,
    slots_key,
)
from kainite.store.forks import KnownForks
from kainite.store.inbox_items import InboxItems
from kainite.store.log_table import LogTable
from kainite.store.striping import tail_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


class DynamoDBStore:
    """Implements :class:`~kainite.log.contract.LogStore`.

    Args:
        client: a boto3 DynamoDB client; thread-safe, so one serves all.
        table: the table's name; :meth:`create` creates the table.
        token: whether HEAD is read with the token that opens its owner's port. Commands that do not go there leave it
            out: IAM then need not allow it to those who call them.
    """

    def __init__(self, client: DynamoDBClient, table: str, *, token: bool = True) -> None:
        self.name = table
        self._head_fields = None if token else HEAD_WITHOUT_TOKEN
        self._table = LogTable(client, table)
        self._forks = KnownForks()
        self._batches = BatchItems(self._table, self._forks)
        self._reading = BatchReading(self._table, self._forks, self._batches)
        self._inbox = InboxItems(self._table, deletes=token)  # the owner's store reads the token

    def create(self) -> None:
        self._table.create()

    # Head

    def read_head(self, partition: str) -> LogHead | None:
        item = self._table.get(f"{partition}#H", "head", self._head_fields)
        return None if item is None else head_from(item)

    def swap_head(self, partition: str, new: LogHead, expected: LogHead | None) -> bool:
        item = {**key(f"{partition}#H", "head"), **head_fields(new)}
        if expected is None:
            in_way = self._table.put(item, "attribute_not_exists(p)")
        else:
            in_way = self._table.put(item, "v = :seen", {":seen": text(expected.version)})
        # Each write has a version of its own, so finding this one means that the write was done and its reply lost.
        return in_way is None or in_way.get("v", {}).get("S") == new.version

    # Slots: batches, fences, the fork

    def read_tail(self, partition: str) -> Slot | None:
        return tail_of(lambda stripe: self.last_slot(partition, stripe))

    def last_slot(self, partition: str, stripe: int | None) -> Slot | None:
        """Returns the last slot of a stripe, or of the spine (None), strongly consistent."""
        at = slots_key(partition, stripe)
        items = self._table.query(at, fields=SLOT_FIELDS, strong=True, backwards=True, limit=1)
        found = next((slot_from(item) for item in items), None)
        if stripe is None:
            self._forks.learn_last(partition, found)
        return found

    def put_fence(self, partition: str, at: int, generation: int, nonce: str) -> Slot | None:
        if (fork := self._forks.in_way(partition, at, generation)) is not None:
            return fork
        item = {**self._forks.slot_key(partition, at), "k": text("f"), **slot_fields(generation, 0, nonce)}
        condition = "attribute_not_exists(p) OR (k = :fence AND g < :me)"
        return self._put_slot(item, condition, generation, nonce)

    def put_fork(self, partition: str, fork: Fork, generation: int, nonce: str) -> Slot | None:
        at = key(slots_key(partition, None), id_key(fork.at))
        item = {**at, "k": text("s"), **fork_fields(fork, generation, nonce)}
        return self._put_slot(item, "k = :fence AND g = :me", generation, nonce)

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        if (fork := self._forks.in_way(partition, batch.first_id, batch.generation)) is not None:
            return fork
        item = {
            **self._forks.slot_key(partition, batch.first_id),
            "k": text("d"),
            **slot_fields(batch.generation, len(batch.entries), nonce),
            **self._batches.body(partition, batch, nonce),
        }
        condition = "attribute_not_exists(p) OR (k = :fence AND g = :me)"
        return self._put_slot(item, condition, batch.generation, nonce)

    def _put_slot(self, item: Item, condition: str, generation: int, nonce: str) -> Slot | None:
        in_way = self._table.put(item, condition, {":fence": text("f"), ":me": number(generation)})
        if in_way is None:
            return None
        slot = slot_from(in_way)
        return None if slot.nonce == nonce else slot

    def read_batches(
        self, partition: str, first_id: int, last_id: int | None = None, *, data: bool = True, strong: bool = False
    ) -> Iterator[Batch]:
        return self._reading.read(partition, first_id, last_id, data=data, strong=strong)

    def truncate(self, partition: str, below: int) -> int:
        self.read_tail(partition)
        fork = self._forks.of(partition)
        keys = (None, *range(fork.stripes)) if fork else (None,)
        gone = [id_ for stripe in keys for id_ in self._truncate_key(partition, stripe, below)]
        if gone:
            # Slots first: a reader may find a chunk without its slot, never a slot without its chunk.
            for stripe in keys:
                at = chunks_key(partition, stripe)
                chunks = self._table.query(at, last=id_key(max(gone) + 1), fields="p, s")
                self._table.delete(at, [item["s"]["S"] for item in chunks])
        return len(gone)

    def _truncate_key(self, partition: str, stripe: int | None, below: int) -> list[int]:
        """Deletes one key's slots that end below ``below``, except the last slot; returns their first ids."""
        last, at = self.last_slot(partition, stripe), slots_key(partition, stripe)
        slots = [slot_from(item) for item in self._table.query(at, last=id_key(below), fields=SLOT_FIELDS, strong=True)]
        gone = [slot.first_id for slot in slots if slot.next_id <= below and last and slot.first_id != last.first_id]
        self._table.delete(at, [id_key(first_id) for first_id in gone])
        return gone

    # Names

    def put_names(self, partition: str, segment: str, names: bytes) -> None:
        self._table.put({**key(f"{partition}#N", segment), "d": binary(names)})

    def read_names(self, partition: str) -> Iterator[tuple[str, bytes]]:
        for item in self._table.query(f"{partition}#N", fields="s, d", strong=True):
            yield item["s"]["S"], bytes(item["d"]["B"])

    def delete_names(self, partition: str, keys: Sequence[str]) -> None:
        self._table.delete(f"{partition}#N", keys)

    # Decisions

    def decide(self, partition: str, name: str, *, committed: bool, targets: Sequence[str] = ()) -> bool:
        item = {**key(f"{partition}#D", name), "c": flag(committed)}
        if targets:
            item["t"] = text(" ".join(targets))
        in_way = self._table.put(item, "attribute_not_exists(p)")
        return committed if in_way is None else in_way["c"]["BOOL"]

    def read_decisions(self, partition: str) -> Iterator[tuple[str, TransactionDecision]]:
        for item in self._table.query(f"{partition}#D", fields="s, c, t", strong=True):
            targets = item["t"]["S"].split() if "t" in item else ()
            yield item["s"]["S"], TransactionDecision(item["c"]["BOOL"], tuple(targets))

    def delete_decisions(self, partition: str, names: Sequence[str]) -> None:
        self._table.delete(f"{partition}#D", names)

    # Requests

    def put_request(self, partition: str, request: Mapping[str, str]) -> str:
        return self._inbox.put(partition, request)

    def read_requests(self, partition: str) -> Sequence[tuple[str, Mapping[str, str]]]:
        return self._inbox.read(partition)

    def answer_request(self, partition: str, request_id: str, answer: Mapping[str, str]) -> None:
        self._inbox.answer(partition, request_id, answer)

    def take_answer(self, partition: str, request_id: str) -> Mapping[str, str] | None:
        return self._inbox.take_answer(partition, request_id)
