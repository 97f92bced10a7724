"""Sends good and bad emits through a real daemon into PostgreSQL: each bad unit fails alone with its cause."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kainite.store.dynamodb import DynamoDBStore
from support.apply_world import TABLES
from support.names import unique
from support.pipeline import LIMIT, Pipeline, emit
from support.stores import Database
from support.waiting import eventually

ROW = {"table": "item", "op": "upsert"}


def upsert(uow: str, key: int, **row: Any) -> dict[str, Any]:
    return {"uow": uow, **ROW, "key": {"id": key}, "row": {"v": key, **row}}


def end(uow: str, count: int) -> dict[str, Any]:
    return {"uow": uow, "end": True, "count": count}


@dataclass(frozen=True)
class Bad:
    """A malformed unit: what is emitted between a sound delta and its end, and the cause that the log must name."""

    name: str
    lines: tuple[bytes, ...]
    cause: str
    count: int | None = 2

    def emitted(self, key: int) -> list[bytes]:
        ending = [] if self.count is None else [emit(end(self.name, self.count))]
        return [emit(upsert(self.name, key)), *self.lines, *ending, *good(f"after {self.name}", key)]


def good(uow: str, key: int) -> list[bytes]:
    """Returns a unit of two deltas; the second one notes in the journal that the unit was applied."""
    note = {"uow": uow, "table": "journal", "op": "insert", "row": {"tid": 0, "what": uow}}
    return [emit(upsert(uow, key), note, end(uow, 2))]


def with_delta(name: str, cause: str, **delta: Any) -> Bad:
    return Bad(name, (emit({"uow": name, **ROW, "key": {"id": 1000}, "row": {"v": 1}, **delta}),), cause)


MALFORMED = (
    with_delta("unknown table", "table 'nowhere' is not in the target's catalogue", table="nowhere"),
    with_delta("unknown column", "has no column 'w'", key={"id": 3000}, row={"w": 1}),
    with_delta("missing key column", "key column 'id' of 'loose' is missing", table="loose", key={"v": 1}),
    with_delta("no key", "key column 'id' of 'loose' is missing", table="loose", key=None),
    with_delta("wrong type", "is no whole number", table="loose", key={"id": "seven"}),
    with_delta("row of the wrong type", "'row' must be an object", row=[1]),
    with_delta("unknown operation", "'op' must be one of", op="merge"),
    Bad("invalid JSON", (b'{"action":"emit","deltas":[{"uow":"invalid JSON","table":',), "invalid JSON"),
    Bad("invalid UTF-8", (b'{"action":"emit","deltas":[{"uow":"invalid UTF-8","table":"\xff"}]}',), "invalid JSON"),
    Bad("two ends", (emit(end("two ends", 3)),), "two ends disagree"),
    Bad("too many", (emit(upsert("too many", 1001)),), "2 deltas came, its end announced 1", count=1),
    Bad("count never comes", (), "1 of 2 deltas came within 2 s"),
    Bad("missing end", (), "no end came within 2 s; 1 delta did", count=None),
)
REFUSED = (
    with_delta("violates a check", "violates check constraint", row={"v": -1}),
    with_delta("parent is missing", "violates foreign key constraint", key={"id": 2000}, row={"v": 1, "parent_id": 77}),
)
BAD = (*MALFORMED, *REFUSED)
LATE = ("count never comes", "missing end")
"""They take their place in the log when their time has run out, so units that came meanwhile go before them."""


@pytest.fixture
def pipeline(kinesis: Any, dynamodb: Any, moto_endpoint: str, postgres: str, tmp_path: Path) -> Pipeline:
    name = unique("bad")
    database = Database(postgres)
    database.run(f"{TABLES} CREATE TABLE loose (id bigint PRIMARY KEY, v bigint)")
    return Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, moto_endpoint, database, tmp_path)


def kainite(properties: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "kainite", *arguments[:2], "-p", str(properties), *arguments[2:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def all_dispatched(pipeline: Pipeline) -> bool:
    """Tells whether no unit collects any more, by one look at the log: between two looks all units may come."""
    statuses = pipeline.statuses().values()
    return len(statuses) == 3 * len(BAD) and "collecting" not in statuses


def applied(pipeline: Pipeline) -> list[str]:
    return sorted(what for (what,) in pipeline.database.rows("SELECT what FROM journal"))


def discard(pipeline: Pipeline, properties: Path, *names: str) -> None:
    """Discards the first unit by the command, the others by requests as the command writes them, without processes."""
    kainite(properties, "uow", "discard", names[0], "--yes")
    asked = [pipeline.store.put_request("0", {"action": "discard", "uow": name, "by": "a test"}) for name in names[1:]]
    for request in asked:
        eventually(partial(pipeline.store.take_answer, "0", request))


@pytest.mark.timeout(300)
def test_bad_units_fail_alone_hold_back_their_rows_and_are_resolved(pipeline: Pipeline) -> None:
    for key, bad in enumerate(BAD):
        pipeline.put(bad.emitted(key), shard=key % 2)
        pipeline.put(good(f"good {key}", 100 + key), shard=key % 2)
    followers = [f"after {bad.name}" for bad in BAD if bad.name not in LATE]
    unharmed = [f"good {key}" for key in range(len(BAD))] + [f"after {name}" for name in LATE]
    properties = pipeline.properties(uowTimeoutMillis="2000")
    with pipeline.daemon(properties):
        eventually(partial(all_dispatched, pipeline))
        pipeline.apply()
        eventually(lambda: "in progress" not in pipeline.statuses().values())

        shown = {row["uow"]: row for row in map(json.loads, kainite(properties, "log", "show", "--json").splitlines())}
        for bad in BAD:
            row = shown[bad.name]
            assert (row["status"], bad.cause in (row["cause"] or "")) == ("failed", True), row
        assert {name for name, row in shown.items() if row["status"] == "blocked"} == set(followers)
        assert {name for name, row in shown.items() if row["status"] == "committed"} == set(unharmed)
        assert applied(pipeline) == sorted(unharmed)

        discard(pipeline, properties, *(bad.name for bad in MALFORMED))
        pipeline.database.run("ALTER TABLE item DROP CONSTRAINT item_v_check; INSERT INTO parent VALUES (77)")
        for bad in REFUSED:
            kainite(properties, "uow", "retry", bad.name)
        pipeline.apply()
        eventually(lambda: not {"in progress", "blocked", "failed"} & set(pipeline.statuses().values()))

    statuses = pipeline.statuses()
    assert {statuses[bad.name] for bad in MALFORMED} == {"discarded"}
    assert {statuses[bad.name] for bad in REFUSED} == {"committed"}
    assert applied(pipeline) == sorted([*unharmed, *followers])
    assert pipeline.database.rows("SELECT v, parent_id FROM item WHERE id >= 1000 ORDER BY id") == [(-1, None), (1, 77)]
