"""SIGKILL of the daemon with units half collected: all records come again, every unit is applied once and whole."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import pytest

from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.pipeline import LIMIT, SHARDS, Pipeline, emit
from support.stores import SHOP, Database
from support.waiting import eventually

MORTAL = str(Path(__file__).with_name("mortal_daemon.py"))
LARGE = 10_000


@pytest.fixture
def pipeline(kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> Pipeline:
    name = unique("kill")
    path = tmp_path / "target.db"
    path.touch()
    database = Database(f"sqlite:///{path}")
    database.run(SHOP)
    return Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, moto_endpoint, database, tmp_path)


def unit(uow: str, number: int, *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns what is emitted for a unit: its deltas in the source's order, and its end."""
    numbered = [{"uow": uow, "ordinal": ordinal, **delta} for ordinal, delta in enumerate(deltas)]
    return [*numbered, {"uow": uow, "end": True, "count": len(deltas), "number": number}]


def insert(table: str, row: dict[str, Any], *key: str) -> dict[str, Any]:
    return {"table": table, "op": "insert", "key": {name: row[name] for name in key or ("id",)}, "row": row}


def delete(table: str, **key: Any) -> dict[str, Any]:
    return {"table": table, "op": "delete", "key": key}


def tree(number: int) -> list[dict[str, Any]]:
    """Returns rows of five topological layers, children first; one references its own table."""
    n, m = 10 * number, 10 * number + 1
    return [
        insert("shipment", {"id": n, "order_id": n, "line_no": 1}),
        insert("order_line", {"order_id": n, "line_no": 1, "qty": 1}, "order_id", "line_no"),
        insert("orders", {"id": n, "customer_id": m, "note": "é"}),
        insert("customer", {"id": m, "region_id": n, "referrer": n}),
        insert("customer", {"id": n, "region_id": n}),
        insert("region", {"id": n, "name": "r"}),
        {"table": "audit", "op": "insert", "row": {"what": f"tree {number}", "at": number}},
    ]


def felled(number: int) -> list[dict[str, Any]]:
    """Returns deletes of the same rows, parents first."""
    n, m = 10 * number, 10 * number + 1
    return [
        delete("region", id=n),
        {**delete("customer", id=n), "before": {"id": n, "region_id": n}},
        {**delete("customer", id=m), "before": {"id": m, "region_id": n, "referrer": n}},
        delete("orders", id=n),
        delete("order_line", order_id=n, line_no=1),
        delete("shipment", id=n),
        {"table": "audit", "op": "insert", "row": {"what": f"felled {number}", "at": number}},
    ]


def test_units_in_any_order_over_shards_twice_and_through_a_kill_are_applied_once(pipeline: Pipeline) -> None:
    large = [insert("region", {"id": 1000 + n, "name": "x"}) for n in range(LARGE - 1)]
    note = {"table": "audit", "op": "insert", "row": {"what": "large", "at": 0}}
    units = [unit(f"tree {n}", n, *tree(n)) for n in range(1, 7)]
    units += [unit(f"felled {n}", n + 6, *felled(n)) for n in range(1, 4)]
    pieces = [emit(delta) for one in units for delta in one]
    whole = unit("large", 10, *large, note)
    pieces += [emit(*whole[start : start + 500]) for start in range(0, len(whole), 500)]
    chance = random.Random(7)
    twice = pieces + chance.sample(pieces, len(pieces) // 2)
    chance.shuffle(twice)
    half = len(twice) // 2
    properties = pipeline.properties("never", uowOrder="dense")

    with pipeline.daemon(properties) as process:
        for place, piece in enumerate(twice[:half]):
            pipeline.put([piece], shard=place % SHARDS)
        eventually(lambda: len(pipeline.rows()) > 5)
        process.send_signal(signal.SIGKILL)
        process.wait(LIMIT)
    with pipeline.daemon(properties):
        for place, piece in enumerate(twice[half:]):
            pipeline.put([piece], shard=place % SHARDS)
        eventually(lambda: list(pipeline.statuses().values()) == ["in progress"] * 10)
        assert [row.number for row in pipeline.rows().values()] == list(range(1, 11)), "not in the source's order"
        pipeline.apply()
        eventually(lambda: set(pipeline.statuses().values()) == {"committed"})

    expected = [f"tree {n}" for n in range(1, 7)] + [f"felled {n}" for n in range(1, 4)] + ["large"]
    assert sorted(what for (what,) in pipeline.database.rows("SELECT what FROM audit")) == sorted(expected)
    left = [10 * n for n in range(4, 7)]
    assert pipeline.database.rows("SELECT id FROM shipment ORDER BY id") == [(n,) for n in left]
    referrers = [(n, None) if place == 0 else (n + 1, n) for n in left for place in (0, 1)]
    assert pipeline.database.rows("SELECT id, referrer FROM customer ORDER BY id") == referrers
    assert pipeline.database.rows("SELECT count(*) FROM region") == [(LARGE - 1 + len(left),)]


@pytest.mark.parametrize(
    ("effect", "stripes"),
    [
        pytest.param("before append", 1, marks=pytest.mark.long),
        ("after append", 1),
        ("before checkpoint", 1),
        ("after checkpoint", 1),
        ("before fork", 3),
        ("after fork", 3),
        pytest.param("after append", 3, marks=pytest.mark.long),
    ],
)
def test_a_daemon_killed_at_each_step_is_followed_by_one_that_finishes_its_work(
    pipeline: Pipeline, effect: str, stripes: int
) -> None:
    units = [unit(f"tree {n}", n, *tree(n)) for n in range(1, 5)]
    for place, one in enumerate(units):
        for delta in one:
            delta.pop("ordinal", None)  # so that only the shard's position tells which records come again
        pipeline.put([emit(*one[:3])], shard=place % SHARDS)
        pipeline.put([emit(*one[3:])], shard=(place + 1) % SHARDS)
    properties = pipeline.properties(logLeaseMillis="1000", logStripes=str(stripes))

    with pipeline.daemon(properties, MORTAL, effect) as process:
        assert process.wait(LIMIT) == -signal.SIGKILL
    with pipeline.daemon(properties):
        eventually(lambda: list(pipeline.statuses().values()) == ["in progress"] * 4)
    pipeline.apply()

    assert sorted(pipeline.database.rows("SELECT what FROM audit")) == [(f"tree {n}",) for n in range(1, 5)]
    assert pipeline.database.rows("SELECT count(*) FROM shipment") == [(4,)]
