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

import itertools
import time
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kainite.aws.dynamodb import Item, Value, binary, flag, number, text, text_map, text_map_of
from kainite.base.errors import LogCorruptError, LogError, LogUnavailableError
from kainite.log.contract import ANSWERS_KEPT, REQUESTS_AT_ONCE, Fork, LogHead, Slot, TransactionDecision
from kainite.log.format.batch_codec import decode, encode
from kainite.log.format.entry import Batch
from kainite.store.dynamodb_items import (
    HEAD_WITHOUT_TOKEN,
    SlotItems,
    chunk_key,
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
from kainite.store.log_table import LogTable
from kainite.store.stripe_reading import striped_slots
from kainite.store.striping import passes, place, tail_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

CHUNK_BYTES = 380_000
"""The most bytes of a batch in one item: DynamoDB's 400 KB an item, less room for keys and attributes."""

MAX_BATCH_BYTES = 256 * 1024 * 1024

MOST_READS = 20
"""How often one read begins again behind a place that was empty at first: each time a writer was faster than it."""

_SLOT_FIELDS = "p, s, k, g, n, x, st, sb"


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
        self._forks: dict[str, Slot] = {}

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

    # Slots

    def read_tail(self, partition: str) -> Slot | None:
        return tail_of(lambda stripe: self.last_slot(partition, stripe))

    def last_slot(self, partition: str, stripe: int | None) -> Slot | None:
        """Returns the last slot of a stripe, or of the spine (None), strongly consistent."""
        at = slots_key(partition, stripe)
        items = self._table.query(at, fields=_SLOT_FIELDS, strong=True, backwards=True, limit=1)
        found = next((slot_from(item) for item in items), None)
        if stripe is None and self._learn(partition, found) is None:
            self._forks.pop(partition, None)  # a fork of another table that had the same name
        return found

    def put_fence(self, partition: str, at: int, generation: int, nonce: str) -> Slot | None:
        if passes(at, generation, known := self._forks.get(partition)):
            return known
        item = {**self._place(partition, at), "k": text("f"), **slot_fields(generation, 0, nonce)}
        condition = "attribute_not_exists(p) OR (k = :fence AND g < :me)"
        return self._put_slot(item, condition, generation, nonce)

    def put_fork(self, partition: str, fork: Fork, generation: int, nonce: str) -> Slot | None:
        at = key(slots_key(partition, None), id_key(fork.at))
        item = {**at, "k": text("s"), **fork_fields(fork, generation, nonce)}
        return self._put_slot(item, "k = :fence AND g = :me", generation, nonce)

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        if passes(batch.first_id, batch.generation, known := self._forks.get(partition)):
            return known
        item = {
            **self._place(partition, batch.first_id),
            "k": text("d"),
            **slot_fields(batch.generation, len(batch.entries), nonce),
            **self._body(partition, batch, nonce),
        }
        condition = "attribute_not_exists(p) OR (k = :fence AND g = :me)"
        return self._put_slot(item, condition, batch.generation, nonce)

    def _place(self, partition: str, first_id: int) -> dict[str, Value]:
        """Returns the key of the slot that begins at ``first_id``."""
        return key(slots_key(partition, place(first_id, self._fork(partition))), id_key(first_id))

    def _chunk(self, partition: str, first_id: int, nonce: str, chunk_number: int) -> dict[str, Value]:
        """Returns the key of a chunk of the batch that begins at ``first_id``."""
        fork = self._fork(partition)
        stripe = place(first_id, fork)
        if fork is not None and stripe is not None:
            stripe = (stripe + chunk_number) % fork.stripes
        return key(chunks_key(partition, stripe), chunk_key(first_id, nonce, chunk_number))

    def _learn(self, partition: str, slot: Slot | None) -> Fork | None:
        """Remembers a slot if it is a fork, which stays for good; returns the fork."""
        if slot is None or slot.fork is None:
            return None
        self._forks[partition] = slot
        return slot.fork

    def _fork(self, partition: str) -> Fork | None:
        known = self._forks.get(partition)
        return known.fork if known else None

    def _put_slot(self, item: Item, condition: str, generation: int, nonce: str) -> Slot | None:
        in_way = self._table.put(item, condition, {":fence": text("f"), ":me": number(generation)})
        if in_way is None:
            return None
        slot = slot_from(in_way)
        return None if slot.nonce == nonce else slot

    def _body(self, partition: str, batch: Batch, nonce: str) -> Item:
        index, payload = encode(batch)
        if len(index) + len(payload) <= CHUNK_BYTES:
            # Some doubles of DynamoDB refuse an empty binary.
            return {"i": binary(index), "d": binary(payload)} if payload else {"i": binary(index)}
        whole = index + payload
        if len(whole) > MAX_BATCH_BYTES:
            raise LogError(
                f"a batch of {len(whole)} bytes is larger than the log takes ({MAX_BATCH_BYTES}), and was not written: "
                "let the children emit less in one call (smaller batches: maxRecords), or the source send smaller units"
            )
        chunks = range(0, len(whole), CHUNK_BYTES)
        for chunk_number, start in enumerate(chunks):
            at = self._chunk(partition, batch.first_id, nonce, chunk_number)
            self._table.put({**at, "d": binary(whole[start : start + CHUNK_BYTES])})
        return {"c": number(len(chunks)), "l": number(len(index))}

    def read_batches(
        self, partition: str, first_id: int, last_id: int | None = None, *, data: bool = True, strong: bool = False
    ) -> Iterator[Batch]:
        begin = first_id
        for attempt in range(MOST_READS):
            hole = yield from self._to_hole(partition, begin, last_id, data=data, strong=strong or attempt > 0)
            if hole is None:
                return
            if attempt and hole == begin:
                raise LogCorruptError(f"log partition {partition} has no entry {hole}")
            begin = hole
        raise LogUnavailableError(
            f"log partition {partition}: a read from entry {first_id} came to entry {begin} and was overtaken "
            f"{MOST_READS} times by batches that came to the log's end meanwhile; try again"
        )

    def _to_hole(
        self, partition: str, first_id: int, last_id: int | None, *, data: bool, strong: bool
    ) -> Generator[Batch, None, int | None]:
        """Yields batches as :meth:`read_batches`, up to a missing one; returns the missing id, or None at the end.

        A place that a request has found empty, or with a fence, was the tail. What a later request of this read finds
        behind it may have come since, and a batch in that place before it. So the caller reads again from the place,
        strongly. A place that is missing then is a hole.
        """
        expected = first_id
        for item in self._slots_from(partition, first_id, last_id, data=data, strong=strong):
            slot = slot_from(item)
            if slot.first_id > expected:
                return expected
            if slot.is_fence or slot.next_id <= first_id:
                continue
            yield self._batch_from(partition, item, slot, data=data)
            expected = slot.next_id
        return None

    def _slots_from(
        self, partition: str, first_id: int, last_id: int | None, *, data: bool, strong: bool
    ) -> Iterator[Item]:
        """Yields slot items in order, from the slot that holds ``first_id``."""
        fields = f"{_SLOT_FIELDS}, i, c, l" + (", d" if data else "")
        fork = self._fork(partition)
        if fork is None or first_id < fork.at:
            spine = SlotItems(self._table.query, partition, fields)
            before = spine.holding(None, first_id, strong=strong)
            after = spine.upwards(None, first_id + 1, last_id, strong=strong)
            for slot, item in itertools.chain(() if before is None else (before,), after):
                fork = self._learn(partition, slot)
                if fork is not None:
                    break
                yield item
        if fork is not None:
            stripes = SlotItems(self._table.query, partition, fields)
            for _, item in striped_slots(stripes, fork, first_id, last_id, strong=strong):
                yield item

    def _batch_from(self, partition: str, item: Item, slot: Slot, *, data: bool) -> Batch:
        if "c" in item:
            index, payload = self._read_chunks(partition, item, slot, data=data)
        else:
            index = item["i"]["B"]
            payload = (item["d"]["B"] if "d" in item else b"") if data else None
        batch = decode(index, payload)
        if (batch.first_id, batch.generation, len(batch.entries)) != (slot.first_id, slot.generation, slot.count):
            raise LogCorruptError(f"log partition {partition}: slot {slot.first_id} holds another slot's batch")
        return batch

    def _read_chunks(self, partition: str, item: Item, slot: Slot, *, data: bool) -> tuple[bytes, bytes | None]:
        length = int(item["l"]["N"])
        needed = int(item["c"]["N"]) if data else -(-length // CHUNK_BYTES)
        parts = []
        for chunk_number in range(needed):
            at = self._chunk(partition, slot.first_id, slot.nonce, chunk_number)
            chunk = self._table.get(at["p"]["S"], at["s"]["S"])
            if chunk is None:
                raise LogCorruptError(
                    f"log partition {partition}: chunk {chunk_number} of slot {slot.first_id} is missing"
                )
            parts.append(chunk["d"]["B"])
        whole = b"".join(parts)
        return whole[:length], whole[length:] if data else None

    def truncate(self, partition: str, below: int) -> int:
        self.read_tail(partition)
        fork = self._fork(partition)
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
        slots = [
            slot_from(item) for item in self._table.query(at, last=id_key(below), fields=_SLOT_FIELDS, strong=True)
        ]
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
        request_id = f"{time.time_ns():020}-{uuid.uuid4().hex[:8]}"
        self._table.put({**key(f"{partition}#Q", request_id), "r": text_map(request)})
        return request_id

    def read_requests(self, partition: str) -> Sequence[tuple[str, Mapping[str, str]]]:
        answered: list[str] = []
        requests: list[tuple[str, Mapping[str, str]]] = []
        for item in self._table.query(f"{partition}#Q", fields="p, s, r, a", strong=True):
            if "a" in item:
                answered.append(item["s"]["S"])
            elif "r" in item:
                requests.append((item["s"]["S"], text_map_of(item, "r")))
            if len(requests) == REQUESTS_AT_ONCE:
                break
        # The latest answers stay for their clients; the others, whose clients are gone, are deleted.
        if self._head_fields is None:  # the owner's store: who only looks may have no right to delete
            self._table.delete(f"{partition}#Q", answered[:-ANSWERS_KEPT])
        return requests

    def answer_request(self, partition: str, request_id: str, answer: Mapping[str, str]) -> None:
        self._table.set(f"{partition}#Q", request_id, "a", text_map(answer))

    def take_answer(self, partition: str, request_id: str) -> Mapping[str, str] | None:
        item = self._table.get(f"{partition}#Q", request_id)
        if item is None or "a" not in item:
            return None
        self._table.delete(f"{partition}#Q", [request_id])
        return text_map_of(item, "a")
