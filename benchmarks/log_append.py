"""Measures how many units a second the serialization log takes, and what they cost in DynamoDB.

Measures the owner as the daemon runs it (group commit, packed and compressed batches, one
conditional PutItem a batch) against one TransactWriteItems a unit with an item for each of its
signatures, which is how such a log is usually built. Both write the same units (5 deltas, 15
signatures) to the same server in the same run: moto's, in a process of its own, or any DynamoDB
named with ``--endpoint`` (DynamoDB Local, LocalStack). moto copies a table for every transaction,
so there the baseline gets a new table every few units, not counted in its time.

Write units are computed from the items' sizes by DynamoDB's rules (AWS, *Capacity unit
consumption*), for doubles bill one unit whatever the size: 1 per begun KB, twice that in a
transaction.

With ``--stripes N`` the log is spread over N keys of the table, and the busiest key's share of the write units is told:
1,000 a second is what one key takes.

    python benchmarks/log_append.py [--units N] [--baseline-units N] [--stripes N] [--endpoint URL] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import orjson
from runs.machine import warn_unless_quiet

from kainite.base.position import Position
from kainite.owner.mount import mount
from kainite.owner.serving import serve_log
from kainite.settings import LogSettings, UowSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.packing import pack
from kainite.uow.touches import Touched
from kainite_demo.services import moto

SHARDS = 8
UNITS_PER_CALL = 100
BASELINE_TABLE_UNITS = 10
PLAIN_TABLE = "plain-log"
AIM_RATE, AIM_COST = 20.0, 1 / 20


@dataclass(frozen=True)
class Result:
    """``wcu`` is write units for 1,000 units of work, ``busiest`` the share of the key that took most of them."""

    units_per_second: float
    wcu: float
    busiest: float = 1.0


class Meter:
    """A boto3 client's writes, with the write units that they would cost."""

    def __init__(self, client: Any) -> None:
        self.units = 0
        self.by_key: Counter[str] = Counter()
        client.meta.events.register("provide-client-params.dynamodb.PutItem", self._put)
        client.meta.events.register("provide-client-params.dynamodb.TransactWriteItems", self._transact)

    def _put(self, params: Any, **_: Any) -> None:
        self.units += write_units(params["Item"])
        self.by_key[str(params["Item"]["p"])] += write_units(params["Item"])

    def _transact(self, params: Any, **_: Any) -> None:
        self.units += sum(2 * write_units(action["Put"]["Item"]) for action in params["TransactItems"])


def write_units(item: dict[str, Any]) -> int:
    return math.ceil(sum(len(name) + _size(value) for name, value in item.items()) / 1024)


def _size(value: dict[str, Any]) -> int:
    [(kind, inner)] = value.items()
    if kind == "N":
        return math.ceil(len(str(inner).lstrip("-")) / 2) + 1
    return 1 if kind == "BOOL" else len(inner)


def fragments(count: int) -> list[Fragment]:
    """Yields units that insert an order with three lines and update one of many accounts."""
    chance = random.Random(17)
    return [_order(number, chance) for number in range(count)]


def packed(call: Sequence[Fragment]) -> list[Fragment]:
    """Returns the units of one call, packed together as the holder of a shard does it."""
    pieces = pack([unit.deltas for unit in call])
    return [replace(unit, piece=piece) for unit, piece in zip(call, pieces, strict=True)]


def _order(number: int, chance: random.Random) -> Fragment:
    account = chance.randrange(1_000_000)
    deltas = [Delta("sales.orders", Operation.INSERT, {"id": number}, {"id": number, "account": account}, {}, 0)]
    for line in range(3):
        row = {"order_id": number, "line": line, "product": chance.randrange(5000), "qty": chance.randint(1, 9)}
        key = {"order_id": number, "line": line}
        deltas.append(Delta("sales.order_line", Operation.INSERT, key, row, {}, line + 1))
    deltas.append(Delta("sales.account", Operation.UPDATE, {"id": account}, {"balance": f"{number}.50"}, {}, 4))
    written = frozenset(chance.getrandbits(64) for _ in range(9))
    read = frozenset(chance.getrandbits(64) for _ in range(6))
    return Fragment(f"T-{number}", tuple(deltas), Touched(written, read), (UnitEnd(5, number + 1),))


@contextlib.contextmanager
def moto_server() -> Iterator[str]:
    """Yields the address of moto's server, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, moto(Path(folder) / "moto.log") as server:
        yield server()


def client(endpoint: str) -> Any:
    return boto3.client(
        "dynamodb", endpoint_url=endpoint, region_name="us-east-1",
        aws_access_key_id="x", aws_secret_access_key="x",
    )  # fmt: skip


def measure_log(endpoint: str, units: Sequence[Fragment], stripes: int) -> Result:
    dynamodb = client(endpoint)
    store = DynamoDBStore(dynamodb, "kainite-log")
    store.create()
    meter = Meter(dynamodb)
    started = time.perf_counter()
    asyncio.run(_append_all(store, units, stripes))
    rate = len(units) / (time.perf_counter() - started)
    return Result(rate, meter.units * 1000 / len(units), max(meter.by_key.values()) / meter.units)


async def _append_all(store: DynamoDBStore, units: Sequence[Fragment], stripes: int) -> None:
    settings = LogSettings(table="kainite-log", owner="bench", enabled=True, stripes=stripes)
    mounted = mount(store, settings.partition, settings.owner, settings.lease, stripes=stripes)
    async with serve_log(store, settings, UowSettings(), mounted) as log:

        async def shard(number: int) -> None:
            mine, after = units[number::SHARDS], None
            for start in range(0, len(mine), UNITS_PER_CALL):
                at = Position(start)
                calls = packed(mine[start : start + UNITS_PER_CALL])
                await log.append(f"shard-{number}", at, at, calls, after)
                after = at

        await asyncio.gather(*(shard(number) for number in range(SHARDS)))


def measure_baseline(endpoint: str, units: Sequence[Fragment]) -> Result:
    dynamodb = client(endpoint)
    meter = Meter(dynamodb)
    seconds = 0.0
    for start in range(0, len(units), BASELINE_TABLE_UNITS):
        _create_plain_table(dynamodb)
        started = time.perf_counter()
        for number, unit in enumerate(units[start : start + BASELINE_TABLE_UNITS], start):
            _transact(dynamodb, number, unit)
        seconds += time.perf_counter() - started
        dynamodb.delete_table(TableName=PLAIN_TABLE)
    return Result(len(units) / seconds, meter.units * 1000 / len(units))


def _create_plain_table(dynamodb: Any) -> None:
    dynamodb.create_table(
        TableName=PLAIN_TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
    )


def _transact(dynamodb: Any, number: int, unit: Fragment) -> None:
    data = orjson.dumps([delta.to_json() for delta in unit.deltas])
    items = [{"p": {"S": f"T#{number}"}, "uow": {"S": unit.uow}, "d": {"B": data}}]
    items += [
        {"p": {"S": f"{signature}#{number}"}, "t": {"N": str(number)}}
        for signature in unit.touched.written | unit.touched.read
    ]
    puts = [
        {"Put": {"TableName": PLAIN_TABLE, "Item": item, "ConditionExpression": "attribute_not_exists(p)"}}
        for item in items
    ]
    dynamodb.transact_write_items(TransactItems=puts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=50_000)
    parser.add_argument("--baseline-units", type=int, default=1_000)
    parser.add_argument("--stripes", type=int, default=1)
    parser.add_argument("--endpoint", help="a DynamoDB to use instead of moto's server")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    with contextlib.nullcontext(options.endpoint) if options.endpoint else moto_server() as endpoint:
        log = measure_log(endpoint, fragments(options.units), options.stripes)
        baseline = measure_baseline(endpoint, fragments(options.baseline_units))
    rate, cost = log.units_per_second / baseline.units_per_second, log.wcu / baseline.wcu
    if options.json:
        print(json.dumps({"log": vars(log), "baseline": vars(baseline), "rate_ratio": rate, "cost_ratio": cost}))
        return
    print(f"{'':34}{'units/s':>10}{'write units per 1,000 units':>30}")
    print(f"{'Kainite, packed batches':34}{log.units_per_second:>10,.0f}{log.wcu:>30,.0f}")
    print(f"{'TransactWriteItems a unit':34}{baseline.units_per_second:>10,.0f}{baseline.wcu:>30,.0f}")
    print(f"{'busiest key of the log':34}{'':10}{f'{log.busiest:.0%}':>30}")
    print(f"{'ratio':34}{rate:>9.1f}x{f'1/{1 / cost:.0f}':>30}")
    print(f"{'aim':34}{AIM_RATE:>9.0f}x{f'1/{1 / AIM_COST:.0f}':>30}")


if __name__ == "__main__":
    main()
