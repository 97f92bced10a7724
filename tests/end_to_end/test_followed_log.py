"""The whole way with an apply job that follows the log's owner, which is killed again and again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.pipeline import LIMIT, SHARDS, Pipeline, emit
from support.stores import SHOP, Database
from support.waiting import eventually

KILLS = 4
UNITS = 12
"""Units between two kills."""


@pytest.fixture
def pipeline(kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> Pipeline:
    name = unique("followed")
    path = tmp_path / "target.db"
    path.touch()
    database = Database(f"sqlite:///{path}")
    database.run(SHOP)
    return Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, moto_endpoint, database, tmp_path)


def unit(number: int) -> bytes:
    """Returns a unit of two deltas; all units conflict, and the last one to be applied is the highest."""
    uow = f"T-{number}"
    operation = {"op": "update", "row": {"name": uow}} if number else {"op": "insert", "row": {"id": 1, "name": uow}}
    return emit(
        {"uow": uow, "table": "region", "key": {"id": 1}, **operation},
        {"uow": uow, "table": "audit", "op": "insert", "row": {"what": uow, "at": number}},
        {"uow": uow, "end": True, "count": 2},
    )


def applied(pipeline: Pipeline, units: int) -> None:
    """Waits until at least so many units are in the target."""
    eventually(lambda: pipeline.database.rows("SELECT count(*) FROM audit")[0][0] >= units)


@pytest.mark.timeout(240)
def test_each_unit_is_applied_once_and_in_order_however_often_the_owner_is_killed(pipeline: Pipeline) -> None:
    properties = pipeline.properties(logLeaseMillis="1000")
    number = 0
    with pipeline.applying() as feed:
        for kill in range(KILLS):
            with pipeline.daemon(properties) as process:
                eventually(lambda: feed.is_following)
                for _ in range(UNITS):
                    pipeline.put([unit(number)], shard=SHARDS - 1)
                    number += 1
                if kill % 2:
                    applied(pipeline, number - UNITS // 2)
                process.kill()
                process.wait(LIMIT)
            eventually(lambda: not feed.is_following)
        with pipeline.daemon(properties):
            eventually(lambda: feed.is_following)
            applied(pipeline, number)
            eventually(lambda: set(pipeline.statuses().values()) == {"committed"})
    done = [what for (what,) in pipeline.database.rows("SELECT what FROM audit ORDER BY rowid")]
    assert done == [f"T-{place}" for place in range(number)]
    assert pipeline.database.rows("SELECT name FROM region") == [(f"T-{number - 1}",)]
