"""The DynamoDB store's items, key by key (:mod:`kainite.log.store.dynamodb` has the table of them)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kainite.log.store.contract import LogHead, Slot

Item = dict[str, Any]


def query_arguments(p: str, first: str | None, last: str | None) -> Any:
    ranges = {
        (False, False): ("", {}),
        (True, False): (" AND s >= :first", {":first": first}),
        (False, True): (" AND s <= :last", {":last": last}),
        (True, True): (" AND s BETWEEN :first AND :last", {":first": first, ":last": last}),
    }
    text, bounds = ranges[first is not None, last is not None]
    values = {":p": {"S": p}} | {name: {"S": value} for name, value in bounds.items()}
    return {"KeyConditionExpression": f"p = :p{text}", "ExpressionAttributeValues": values}


def key(p: str, s: str) -> Item:
    return {"p": {"S": p}, "s": {"S": s}}


def id_key(tid: int) -> str:
    return f"{tid:020}"


def chunk_key(first_id: int, nonce: str, number: int) -> str:
    return f"{id_key(first_id)}/{nonce}/{number:06}"


def slot_fields(generation: int, count: int, nonce: str) -> Item:
    return {"g": {"N": str(generation)}, "n": {"N": str(count)}, "x": {"S": nonce}}


def slot_from(item: Item) -> Slot:
    return Slot(int(item["s"]["S"]), int(item["g"]["N"]), int(item["n"]["N"]), item["x"]["S"])


def head_fields(head: LogHead) -> Item:
    return {
        "g": {"N": str(head.generation)},
        "o": {"S": head.owner},
        "v": {"S": head.version},
        "t": {"N": str(head.lease_ms)},
        "r": {"BOOL": head.released},
        "hwm": {"N": str(head.high_water_mark)},
        "lwm": {"N": str(head.low_water_mark)},
        "snap": {"N": str(head.snapshot)},
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
    )


def strings(values: Mapping[str, str]) -> Item:
    return {"M": {name: {"S": value} for name, value in values.items()}}


def plain(attribute: Item) -> dict[str, str]:
    return {name: value["S"] for name, value in attribute["M"].items()}
