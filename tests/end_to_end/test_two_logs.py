"""Two applications with a stream and a log partition each, in one table and into one target; daemons are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.pipeline import LIMIT, SHARDS, Pipeline, emit
from support.stores import SHOP, Database
from support.waiting import eventually

LOGS = ("eu", "us")
KILLS = 4
UNITS = 10
"""Units of each log between two kills."""


@pytest.fixture
def pipelines(kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path, postgres: str) -> list[Pipeline]:
    table = unique("two-logs")
    database = Database(postgres)
    database.run(SHOP)
    made = []
    for log in LOGS:
        (tmp_path / log).mkdir()
        store = DynamoDBStore(dynamodb, table)
        name = f"{table}-{log}"
        made.append(Pipeline(kinesis, store, name, moto_endpoint, database, tmp_path / log, partition=log, table=table))
    return made


def unit(log: int, number: int) -> bytes:
    """Returns a unit of two deltas; all units of a log conflict, and those of two logs have the same names."""
    uow, key = f"T-{number}", {"id": log}
    change = {"op": "update", "row": {"name": uow}} if number else {"op": "insert", "row": {**key, "name": uow}}
    return emit(
        {"uow": uow, "table": "region", "key": key, **change},
        {"uow": uow, "table": "audit", "op": "insert", "row": {"what": f"{LOGS[log]}: {uow}", "at": number}},
        {"uow": uow, "end": True, "count": 2},
    )


def applied(pipeline: Pipeline, units: int) -> None:
    """Waits until at least so many units of the pipeline's log are in the target."""
    asked = f"SELECT count(*) FROM audit WHERE what LIKE '{pipeline.partition}:%'"
    eventually(lambda: pipeline.database.rows(asked)[0][0] >= units)


def all_committed(pipeline: Pipeline, units: int) -> None:
    eventually(lambda: list(pipeline.statuses().values()) == ["committed"] * units)


@pytest.mark.timeout(240)
def test_units_of_both_logs_are_applied_once_and_in_order_whichever_daemon_is_killed(pipelines: list[Pipeline]) -> None:
    """Shows each log gets on while the other one's daemon is away, and both have all of their own units."""
    files = [pipeline.properties(logLeaseMillis="1000") for pipeline in pipelines]
    done = 0
    with pipelines[0].applying(), pipelines[1].applying():
        for kill in range(KILLS):
            victim, other = (pipelines, pipelines[::-1])[kill % 2]
            with victim.daemon(files[kill % 2]) as process, other.daemon(files[1 - kill % 2]):
                for number in range(done, done + UNITS):
                    for log, pipeline in enumerate(pipelines):
                        pipeline.put([unit(log, number)], shard=SHARDS - 1)
                done += UNITS
                if kill >= KILLS // 2:
                    applied(victim, done - UNITS // 2)
                process.kill()
                process.wait(LIMIT)
                applied(other, done)
        with pipelines[0].daemon(files[0]), pipelines[1].daemon(files[1]):
            for pipeline in pipelines:
                applied(pipeline, done)
                all_committed(pipeline, done)
    database = pipelines[0].database
    names = [f"{log}: T-{number}" for log in LOGS for number in range(done)]
    assert sorted(what for (what,) in database.rows("SELECT what FROM audit")) == sorted(names)
    assert database.rows("SELECT id, name FROM region ORDER BY id") == [(0, f"T-{done - 1}"), (1, f"T-{done - 1}")]
