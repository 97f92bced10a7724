"""The DynamoDB store's items, attribute by attribute (:mod:`kainite.store.dynamodb` has the table of items)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kainite.aws.dynamodb import Item, Value, flag, number, text
from kainite.log.contract import Fork, LogHead, Slot

SLOT_FIELDS = "p, s, k, g, n, x, st, sb"
"""The attributes of a slot without its batch, as a projection."""


def query_arguments(p: str, first: str | None, last: str | None) -> Any:
    """Returns the arguments of a Query for one hash key, with a lower and an upper bound of range keys, or either."""
    ranges = {
        (False, False): "",
        (True, False): " AND s >= :first",
        (False, True): " AND s <= :last",
        (True, True): " AND s BETWEEN :first AND :last",
    }
    condition = f"p = :p{ranges[first is not None, last is not None]}"
    values = {":p": p, ":first": first, ":last": last}
    given = {name: text(value) for name, value in values.items() if value is not None}
    return {"KeyConditionExpression": condition, "ExpressionAttributeValues": given}


def key(p: str, s: str) -> dict[str, Value]:
    return {"p": text(p), "s": text(s)}


def slots_key(partition: str, stripe: int | None) -> str:
    """Returns the hash key of the slots of a stripe, or of the spine (None)."""
    return f"{partition}#L" if stripe is None else f"{partition}#L#{stripe}"


def chunks_key(partition: str, stripe: int | None) -> str:
    """Returns the hash key of the chunks of a stripe, or of the spine (None)."""
    return f"{partition}#C" if stripe is None else f"{partition}#C#{stripe}"


def id_key(tid: int) -> str:
    return f"{tid:020}"


def chunk_key(first_id: int, nonce: str, number: int) -> str:
    return f"{id_key(first_id)}/{nonce}/{number:06}"


def slot_fields(generation: int, count: int, nonce: str) -> dict[str, Value]:
    return {"g": number(generation), "n": number(count), "x": text(nonce)}


def fork_fields(fork: Fork, generation: int, nonce: str) -> dict[str, Value]:
    return {**slot_fields(generation, 0, nonce), "st": number(fork.stripes), "sb": number(fork.block)}


def slot_from(item: Item) -> Slot:
    first_id, nonce = int(item["s"]["S"]), item["x"]["S"]
    if "st" in item:
        fork = Fork(first_id, int(item["st"]["N"]), int(item["sb"]["N"]))
        return Slot(first_id, int(item["g"]["N"]), 0, nonce, fork)
    return Slot(first_id, int(item["g"]["N"]), int(item["n"]["N"]), nonce)


class SlotItems:
    """Reads the slots of one partition with the named attributes of their items, key by key.

    Args:
        query: queries one hash key, as :meth:`kainite.store.log_table.LogTable.query` does.
        partition: the partition.
        fields: names of the attributes.
    """

    def __init__(self, query: Callable[..., Iterator[Item]], partition: str, fields: str) -> None:
        self._query = query
        self._partition = partition
        self._fields = fields

    def upwards(
        self, stripe: int | None, first_id: int, last_id: int | None, *, strong: bool
    ) -> Iterator[tuple[Slot, Item]]:
        """Yields the slots that begin from ``first_id`` to ``last_id``, in order."""
        at, last = slots_key(self._partition, stripe), None if last_id is None else id_key(last_id)
        for item in self._query(at, first=id_key(first_id), last=last, fields=self._fields, strong=strong):
            yield slot_from(item), item

    def holding(self, stripe: int | None, at: int, *, strong: bool) -> tuple[Slot, Item] | None:
        """Returns the last slot that begins at ``at`` or before it."""
        key = slots_key(self._partition, stripe)
        found = self._query(key, last=id_key(at), fields=self._fields, strong=strong, backwards=True, limit=1)
        return next(((slot_from(item), item) for item in found), None)


HEAD_WITHOUT_TOKEN = "g, o, v, t, r, hwm, lwm, snap, w, a, f"
"""The attributes of HEAD but the token, as a projection: the policies in docs/aws list them too."""


def head_fields(head: LogHead) -> dict[str, Value]:
    return {
        "g": number(head.generation),
        "o": text(head.owner),
        "v": text(head.version),
        "t": number(head.lease_ms),
        "r": flag(head.released),
        "hwm": number(head.high_water_mark),
        "lwm": number(head.low_water_mark),
        "snap": number(head.snapshot),
        **({"w": text(head.process)} if head.process else {}),
        **({"a": text(head.address)} if head.address else {}),
        **({"k": text(head.token)} if head.token else {}),
        **({"f": text(head.summary)} if head.summary else {}),
    }


def head_from(item: Item) -> LogHead:
    return LogHead(
        generation=int(item["g"]["N"]),
        owner=item["o"]["S"],
        version=item["v"]["S"],
        lease_ms=int(item["t"]["N"]),
        released=item["r"]["BOOL"],
        high_water_mark=int(item["hwm"]["N"]),
        low_water_mark=int(item["lwm"]["N"]),
        snapshot=int(item["snap"]["N"]),
        process=item["w"]["S"] if "w" in item else "",
        address=item["a"]["S"] if "a" in item else "",
        token=item["k"]["S"] if "k" in item else "",
        summary=item["f"]["S"] if "f" in item else "",
    )
