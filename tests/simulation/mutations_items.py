"""Safeguards of the log's store in DynamoDB, and how soon the schedules notice that have it.

The aim "log in items" has it always, with batches in chunks and spread over stripes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simulation.mutation import Mutation, answering

STORE = "kainite.store.dynamodb"
ITEMS = "log in items"


def _any_item(original: Any) -> Any:
    """Puts a slot whatever stands there."""

    def put(self: Any, item: Any, condition: str | None = None, values: Any = None) -> Any:
        return original(self, item) if condition and "#L" in item["p"]["S"] else original(self, item, condition, values)

    return put


def _over_any_fence(original: Any) -> Any:
    """Puts a batch over a fence of whatever generation."""

    def put(self: Any, item: Any, condition: str | None = None, values: Any = None) -> Any:
        if item.get("k") == {"S": "d"}:
            return original(self, item, "attribute_not_exists(p) OR (k = :fence)", values)
        return original(self, item, condition, values)

    return put


def _any_head(original: Any) -> Any:
    def put(self: Any, item: Any, condition: str | None = None, values: Any = None) -> Any:
        return original(self, item) if item["p"]["S"].endswith("#H") else original(self, item, condition, values)

    return put


def _not_recognised(original: Any) -> Any:
    """Takes the own slot, put by an attempt that had no answer, for another owner's."""
    from kainite.store.dynamodb_items import slot_from

    def put(self: Any, item: Any, condition: str, generation: int, nonce: str) -> Any:
        in_way = self._table.put(item, condition, {":fence": {"S": "f"}, ":me": {"N": str(generation)}})
        return None if in_way is None else slot_from(in_way)

    return put


def _chunks_last(original: Any) -> Any:
    """Puts the slot before its chunks."""

    def put(self: Any, partition: str, batch: Any, nonce: str) -> Any:
        held: list[Any] = []
        table, put_item = self._table, self._table.put

        def later(item: Any, condition: str | None = None, values: Any = None) -> Any:
            if "#C" in item["p"]["S"]:
                held.append(item)
                return None
            return put_item(item, condition, values)

        table.put = later
        try:
            answer = original(self, partition, batch, nonce)
        finally:
            del table.put
        for item in held:
            put_item(item)
        return answer

    return put


def _tail_of_one(original: Any) -> Any:
    """Looks for the tail in the first stripe alone."""
    return lambda last: original(lambda stripe: None if stripe else last(stripe))


def _holes_unnoticed(original: Any) -> Any:
    """Takes the slots of a weak read as they come."""

    def read(
        self: Any, partition: str, first_id: int, last_id: int | None, *, data: bool, strong: bool
    ) -> Iterator[Any]:
        from kainite.store.dynamodb_items import slot_from

        for item in self._slots_from(partition, first_id, last_id, data=data, strong=strong):
            slot = slot_from(item)
            if not slot.is_fence and slot.next_id > first_id:
                yield self._batches.batch_from(partition, item, slot, data=data)

    return read


def _first_page(original: Any) -> Any:
    def pages(call: Any, request: Any) -> Iterator[Any]:
        yield next(original(call, request))

    return pages


def _one_stripe_less(original: Any) -> Any:
    """Computes with a stripe less than there are when it looks for a slot's place."""
    return lambda first_id, fork: original(first_id, fork) and original(first_id, fork) - 1


ON_ITEMS: tuple[Mutation, ...] = (
    Mutation("fence of a mount, in DynamoDB", f"{STORE}:DynamoDBStore.put_fence", answering(None), 200, aim=ITEMS),
    Mutation("condition of a slot", "kainite.store.log_table:LogTable.put", _any_item, 200, aim=ITEMS),
    Mutation("a batch stands over its own fence alone", "kainite.store.log_table:LogTable.put", _over_any_fence, 200,
             aim=ITEMS),
    Mutation("condition of the head", "kainite.store.log_table:LogTable.put", _any_head, 200, aim=ITEMS),
    Mutation("nonce of a slot, in DynamoDB", f"{STORE}:DynamoDBStore._put_slot", _not_recognised, 200, aim=ITEMS),
    Mutation("chunks before their slot", f"{STORE}:DynamoDBStore.put_batch", _chunks_last, 100, aim=ITEMS),
    Mutation("tail of all stripes, in DynamoDB", f"{STORE}:tail_of", _tail_of_one, 200, aim=ITEMS),
    Mutation("a slot's place in the stripes", "kainite.store.stripe_reading:stripe_of", _one_stripe_less, 100,
             aim=ITEMS),
    Mutation("holes of a weak read", "kainite.store.batch_reading:BatchReading.read", _holes_unnoticed, 500, aim=ITEMS),
    Mutation("all pages of a query", "kainite.store.log_table:pages", _first_page, 100, aim=ITEMS),
)  # fmt: skip
