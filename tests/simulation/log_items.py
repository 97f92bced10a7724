"""The log's table in DynamoDB: items, conditional writes, pages, and reads that are weak.

Above it stands the real :class:`~kainite.store.dynamodb.DynamoDBStore`. :class:`SimLogTable` is the table;
:class:`SimLogClient` is boto3's client in one process, of which each request passes the faults under the name of what
it does to the log: ``put_batch``, ``put_fence``, ``swap_head`` and so on.

A weak read of a key sees what stood there some time ago. A page has few items. Some of a batch of deletions are left
over. A slot whose chunks are not all there is a broken promise.
"""

# ruff: noqa: N803 - the arguments are DynamoDB's
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from kainite.log.format.batch_codec import decode
from kainite.log.format.entry import Batch
from kainite.store.dynamodb_items import slot_from
from simulation.expressions import Item, changed, check, within
from simulation.faults import Effects, Faults
from simulation.log_store import Tenure
from simulation.loop import Hub, Process

PAGE = 3
"""Most items of one page."""

STALE_S = 1.0
"""How far a weak read may be behind, seconds."""

PUTS: Mapping[str, str] = {"d": "put_batch", "f": "put_fence", "s": "put_fork"}
"""What a put of a slot is, by the slot's kind."""

OTHERS: Mapping[str, str] = {"H": "head", "C": "chunk", "N": "names", "Q": "request", "L": "slot", "D": "decision"}
"""Of what an item is, by the second part of its hash key."""


class SimLogTable:
    """The items by their hash keys and range keys, and what stood there before."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._items: dict[str, dict[str, Item]] = {}
        self._past: dict[str, list[tuple[float, str, Item | None]]] = {}

    def get(self, p: str, s: str) -> Item | None:
        return self._items.get(p, {}).get(s)

    def set(self, p: str, s: str, item: Item | None) -> None:
        """Puts an item, or deletes it."""
        self._past.setdefault(p, []).append((self._hub.now, s, self.get(p, s)))
        if item is None:
            self._items.get(p, {}).pop(s, None)
        else:
            self._items.setdefault(p, {})[s] = item

    def under(self, p: str, age: float = 0.0) -> dict[str, Item]:
        """Returns the items of a hash key by their range keys, as they were ``age`` seconds ago."""
        items = dict(self._items.get(p, {}))
        for at, s, before in reversed(self._past.get(p, []) if age else []):
            if at < self._hub.now - age:
                break
            if before is None:
                items.pop(s, None)
            else:
                items[s] = before
        return dict(sorted(items.items()))


class SimLogClient:
    """boto3's DynamoDB client, in one process, for the log's table.

    Args:
        table: the table.
        faults: of the run.
        process: whose client it is; None: its requests do not fail, and take no time.
        tenure: is told what the process does as an owner.
    """

    def __init__(self, table: SimLogTable, faults: Faults, process: Process | None, tenure: Tenure) -> None:
        self._table = table
        self._faults = faults
        self._name = process.name if process else ""
        self._effects = Effects(faults, process, "log", _unanswered) if process else None
        self._tenure = tenure

    def describe_table(self, **_: Any) -> dict[str, Any]:
        return {"Table": {"TableStatus": "ACTIVE"}}

    def get_item(self, *, Key: Item, ConsistentRead: bool, **_: Any) -> dict[str, Any]:
        p, s = Key["p"]["S"], Key["s"]["S"]
        assert ConsistentRead, "the simulation knows no weak GetItem"

        def get() -> dict[str, Any]:
            item = self._table.get(p, s)
            return {} if item is None else {"Item": dict(item)}

        return self._call(f"get_{_what(p)}", get)

    def query(
        self, *, KeyConditionExpression: str, ExpressionAttributeValues: Item, ConsistentRead: bool,
        ScanIndexForward: bool, ProjectionExpression: str, Limit: int = PAGE, ExclusiveStartKey: Item | None = None,
        **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        p, fields = ExpressionAttributeValues[":p"]["S"], ProjectionExpression.split(", ")

        def page() -> dict[str, Any]:
            items = self._table.under(p, 0.0 if ConsistentRead else self._age(p))
            keys = [s for s in items if within(s, KeyConditionExpression, ExpressionAttributeValues)]
            keys = keys if ScanIndexForward else keys[::-1]
            if ExclusiveStartKey is not None:
                before = ExclusiveStartKey["s"]["S"]
                keys = [s for s in keys if (s > before if ScanIndexForward else s < before)]
            found = keys[: min(Limit, PAGE)]
            more = {"LastEvaluatedKey": {"p": {"S": p}, "s": {"S": found[-1]}}} if len(found) < len(keys) else {}
            return {"Items": [_projected(items[s], fields) for s in found], **more}

        return self._call("read_tail" if not ScanIndexForward and Limit == 1 else f"read {p}", page)

    def put_item(
        self, *, Item: Item, ConditionExpression: str | None = None, ExpressionAttributeValues: Item | None = None,
        **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        p, s = Item["p"]["S"], Item["s"]["S"]

        def put() -> dict[str, Any]:
            there = self._table.get(p, s)
            try:
                check(there, ConditionExpression, ExpressionAttributeValues or {})
            except ClientError:
                self._judge(p, Item, there, done=False)
                raise
            self._table.set(p, s, dict(Item))
            self._judge(p, Item, there, done=True)
            return {}

        name = "swap_head" if _what(p) == "head" else f"put_{_what(p)}"
        return self._call(PUTS.get(Item["k"]["S"], name) if "k" in Item else name, put)

    def update_item(
        self, *, Key: Item, UpdateExpression: str, ExpressionAttributeValues: Item, **_: Any
    ) -> dict[str, Any]:
        p, s = Key["p"]["S"], Key["s"]["S"]

        def update() -> dict[str, Any]:
            item = self._table.get(p, s) or dict(Key)
            self._table.set(p, s, changed(item, UpdateExpression, ExpressionAttributeValues, {}))
            return {}

        return self._call(f"update_{_what(p)}", update)

    def batch_write_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        ((table, requests),) = RequestItems.items()
        keys = [request["DeleteRequest"]["Key"] for request in requests]

        def delete() -> dict[str, Any]:
            most = len(keys) if self._effects is None else 1 + int(2 * len(keys) * self._chance("left over"))
            for key in keys[:most]:
                self._table.set(key["p"]["S"], key["s"]["S"], None)
            return {"UnprocessedItems": {table: requests[most:]} if requests[most:] else {}}

        return self._call(f"delete_{_what(keys[0]['p']['S'])}", delete)

    def _call(self, name: str, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return act() if self._effects is None else self._effects.call(name, act)

    def _age(self, p: str) -> float:
        """Returns how far a weak read of a hash key is behind, seconds."""
        stale = self._effects is not None and self._faults.hub.now < self._faults.until
        return STALE_S * self._chance(f"stale by {p}") if stale and self._chance(f"stale {p}") < 0.3 else 0.0

    def _chance(self, what: str) -> float:
        return self._faults.chance(what, self._faults.named(f"{self._name} {what}"))

    def _judge(self, p: str, item: Item, there: Item | None, *, done: bool) -> None:
        """Tells the tenure of a put of a head or of a slot."""
        partition = p.partition("#")[0]
        if _what(p) == "head" and done:
            generation = int(item["g"]["N"])
            if there is None or generation > int(there["g"]["N"]):
                self._tenure.claimed(partition, self._name, released=there is None or there["r"]["BOOL"])
            elif not item["r"]["BOOL"]:
                self._tenure.renewed(partition, generation)
        elif item.get("k") == {"S": "d"} and (batch := self._batch(partition, item)) is not None:
            in_way = slot_from(there) if there is not None and not done else None
            self._tenure.put(partition, batch, item["x"]["S"], in_way)

    def _batch(self, partition: str, item: Item) -> Batch | None:
        if "c" not in item:
            return decode(item["i"]["B"], None)
        chunks = self._chunks(partition, item)
        if len(chunks) < int(item["c"]["N"]):
            self._tenure.lacking(partition, int(item["s"]["S"]))
            return None
        return decode(b"".join(chunks)[: int(item["l"]["N"])], None)

    def _chunks(self, partition: str, item: Item) -> list[bytes]:
        """Returns the chunks of a slot, wherever they stand."""
        begin, _, stripe = item["p"]["S"].partition("#L")
        names = (f"{item['s']['S']}/{item['x']['S']}/{number:06}" for number in range(int(item["c"]["N"])))
        keys = [f"{begin}#C", *(f"{begin}#C#{number}" for number in range(16))] if stripe else [f"{begin}#C"]
        there = ((self._table.get(key, name) for key in keys) for name in names)
        found = [next((one for one in some if one is not None), None) for some in there]
        return [one["d"]["B"] for one in found if one is not None]


def _what(p: str) -> str:
    return OTHERS[p.split("#")[1]]


def _projected(item: Item, fields: list[str]) -> Item:
    return {name: item[name] for name in fields if name in item}


def _unanswered(name: str) -> Exception:
    return ReadTimeoutError(endpoint_url=f"dynamodb.{name}")
