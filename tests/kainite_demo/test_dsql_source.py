from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kainite.capture.postgresql.replication import ReplicationStream, SourceSlot, create_slot
from kainite_demo.dsql_delivery import Habits, UntidyDelivery
from kainite_demo.dsql_source import Clock, DsqlSource
from support.names import unique
from support.waiting import eventually

TIDY = Habits(spread=0, repeats=0, lagging=0, lag=0, burst_every=0, burst_pause=0)


def records_on(kinesis: Any, name: str) -> list[Any]:
    found = []
    for shard in kinesis.list_shards(StreamName=name)["Shards"]:
        arguments = {"StreamName": name, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = kinesis.get_shard_iterator(**arguments)["ShardIterator"]
        found += [json.loads(record["Data"]) for record in kinesis.get_records(ShardIterator=iterator)["Records"]]
    return found


def stepping(source: DsqlSource, condition: Callable[[], bool]) -> Callable[[], bool]:
    def step() -> bool:
        source.step()
        return condition()

    return step


def test_what_commits_in_postgresql_comes_as_dsqls_records(source: SourceSlot, kinesis: Any, tmp_path: Path) -> None:
    name, journal = unique("dsql"), tmp_path / "journal"
    kinesis.create_stream(StreamName=name, ShardCount=2)
    with create_slot(source) as slot:
        begin = slot.lsn
    with psycopg.connect(source.url, autocommit=True) as connection:
        with connection.transaction():
            connection.execute("INSERT INTO item VALUES (1, 'a', 0.50), (2, 'b', 1)")
            connection.execute("UPDATE item SET name = 'c' WHERE id = 1")
        connection.execute("DELETE FROM item WHERE id = 2")
        with connection.transaction():  # leaves no trace
            connection.execute("INSERT INTO item VALUES (3, 'x', 1)")
            connection.execute("DELETE FROM item WHERE id = 3")
    with ReplicationStream.open(source, begin) as replication:
        dsql = DsqlSource(replication, kinesis, name, journal, seed=1, delivery=UntidyDelivery(TIDY, random.Random(1)))
        eventually(stepping(dsql, lambda: len(records_on(kinesis, name)) == 3))
    first, second, deleted = sorted(
        records_on(kinesis, name), key=lambda one: (one["source"]["ts_ns"], str(one["after"]))
    )
    assert (first["op"], first["after"]) == ("c", {"id": 1, "name": "c", "price": "0.50"})
    assert (second["op"], second["after"]) == ("c", {"id": 2, "name": "b", "price": "1"})
    assert (deleted["op"], deleted["before"]) == ("d", {"id": 2})
    assert first["source"] == second["source"]
    assert deleted["source"]["txId"] != first["source"]["txId"]
    commits = [commit for line in journal.read_text().splitlines() for commit in json.loads(line)["commits"]]
    assert [(tx, changes) for tx, _, changes in commits] == [
        (first["source"]["txId"], 2), (deleted["source"]["txId"], 1),
    ]  # fmt: skip


@pytest.mark.parametrize("latest", [0, 2**62])
def test_commit_times_ascend_whatever_the_clock_shows(latest: int) -> None:
    clock = Clock(latest)
    times = [clock.next() for _ in range(100)]
    assert times == sorted(set(times))
    assert times[0] > latest
