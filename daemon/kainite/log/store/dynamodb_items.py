"""The DynamoDB store's items, attribute by attribute (:mod:`kainite.log.store.dynamodb` has the table of items)."""

from __future__ import annotations

from typing import Any

from kainite.aws.dynamodb import Item, Value, flag, number, text
from kainite.log.store.contract import LogHead, Slot


def query_arguments(p: str, first: str | None, last: str | None) -> Any:
    """Returns the arguments of a Query for one hash key, between two range keys or from or up to one."""
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


def id_key(tid: int) -> str:
    return f"{tid:020}"


def chunk_key(first_id: int, nonce: str, number: int) -> str:
    return f"{id_key(first_id)}/{nonce}/{number:06}"


def slot_fields(generation: int, count: int, nonce: str) -> dict[str, Value]:
    return {"g": number(generation), "n": number(count), "x": text(nonce)}


def slot_from(item: Item) -> Slot:
    return Slot(int(item["s"]["S"]), int(item["g"]["N"]), int(item["n"]["N"]), item["x"]["S"])


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
    )
