"""Two daemons of one application whose files name two log partitions: the later one takes no shard, and says so."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from kainite.leases.table.lease_table import LeaseTable
from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.pipeline import Pipeline, emit
from support.stores import SHOP, Database
from support.waiting import eventually


def other(pipeline: Pipeline, folder: Path) -> Pipeline:
    """Returns the same application with another log partition; its stream is there already."""
    made = copy.copy(pipeline)
    made.folder, made.partition = folder, "1"
    return made


def owners(table: LeaseTable) -> list[str | None]:
    return [lease.owner for lease in table.scan()]


def part(uow: str, ordinal: int) -> bytes:
    """Returns one of a unit's two deltas; the last one comes with the end."""
    delta = {"uow": uow, "table": "audit", "op": "insert", "row": {"what": uow, "at": ordinal}, "ordinal": ordinal}
    return emit(delta, *([{"uow": uow, "end": True, "count": 2}] if ordinal else []))


@pytest.mark.timeout(240)
def test_a_daemon_with_another_log_takes_no_shard_and_every_unit_is_whole(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, postgres: str, tmp_path: Path
) -> None:
    name, database = unique("other-log"), Database(postgres)
    database.run(SHOP)
    for log in ("0", "1"):
        (tmp_path / log).mkdir()
    first = Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, moto_endpoint, database, tmp_path / "0")
    second = other(first, tmp_path / "1")
    table = LeaseTable(dynamodb, name)
    table.create()
    with first.daemon(first.properties()):
        eventually(lambda: owners(table) == ["w", "w"])
        with second.daemon(second.properties(workerId="later")):
            eventually(lambda: "no lease taken: another worker" in (tmp_path / "1" / "stderr").read_text())
            for number in range(5):
                first.put([part(f"T-{number}", 0)], shard=0)
                first.put([part(f"T-{number}", 1)], shard=1)
            eventually(lambda: list(first.statuses().values()) == ["in progress"] * 5)
            assert owners(table) == ["w", "w"]
            assert second.rows() == {}
