"""Creating leases for the stream's shards: first leases, splits, merges, and a timestamp."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import SettingsError, StreamUnavailableError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import Shard
from kainite.leases.lineage import may_start
from kainite.leases.shard_sync.create_leases import create_child_leases, create_missing
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import InitialPosition, StreamSettings
from support.kinesis_double import KinesisDouble
from support.names import unique

FIRST, SECOND = "shardId-000000000000", "shardId-000000000001"
OLDEST = StreamSettings(name="orders", initial_position=InitialPosition.TRIM_HORIZON)
NEWEST = StreamSettings(name="orders", initial_position=InitialPosition.LATEST)


def checkpoints(table: LeaseTable) -> dict[str, Checkpoint]:
    return {lease.key: lease.checkpoint for lease in table.scan()}


def take(table: LeaseTable, key: str) -> Lease:
    lease = next(lease for lease in table.scan() if lease.key == key)
    taken = table.take(lease, "me")
    assert taken is not None
    return taken


def finish(table: LeaseTable, key: str) -> None:
    assert table.checkpoint(take(table, key), SHARD_END) is not None


@pytest.mark.parametrize(("settings", "initial"), [(OLDEST, TRIM_HORIZON), (NEWEST, LATEST)])
def test_an_empty_table_gets_a_lease_for_each_shard(
    table: LeaseTable, stream: StreamClient, settings: StreamSettings, initial: Checkpoint
) -> None:
    create_missing(table, stream, settings, ())
    create_missing(table, stream, settings, ())
    assert checkpoints(table) == {FIRST: initial, SECOND: initial}
    assert all(lease.hash_range is not None for lease in table.scan())


def test_a_listing_with_a_hole_makes_no_first_leases(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    double.shards[SECOND].start += 1
    with pytest.raises(StreamUnavailableError, match="hole"):
        create_missing(table, stream, NEWEST, ())
    assert table.scan() == ()


def test_at_a_timestamp_the_shards_of_that_time_are_asked_for(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    settings = StreamSettings(name="orders", initial_position=InitialPosition.AT_TIMESTAMP, initial_timestamp=1000.0)
    double.split(FIRST)
    create_missing(table, stream, settings, ())
    assert double.asked("ListShards")[0]["ShardFilter"] == {"Type": "AT_TIMESTAMP", "Timestamp": 1000.0}
    assert checkpoints(table) == {FIRST: AT_TIMESTAMP, SECOND: AT_TIMESTAMP}
    with pytest.raises(SettingsError, match="initialPositionInStreamExtended"):
        create_missing(table, stream, dataclasses.replace(settings, initial_timestamp=None), ())


def test_a_split_on_moto_is_followed_from_parent_to_children(table: LeaseTable, kinesis: Any) -> None:
    name = unique("stream")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    stream = StreamClient(kinesis, name)
    create_missing(table, stream, NEWEST, ())
    kinesis.split_shard(StreamName=name, ShardToSplit=FIRST, NewStartingHashKey=str(2**127))
    create_missing(table, stream, NEWEST, table.scan())
    assert checkpoints(table) == {FIRST: LATEST}
    children = [shard for shard in stream.list_shards() if shard.parents]
    assert create_child_leases(table, stream, NEWEST, take(table, FIRST), children)
    assert checkpoints(table) == {FIRST: LATEST, **{child.id: TRIM_HORIZON for child in children}}
    parent = table.get(FIRST)
    assert parent is not None
    assert parent.children == {child.id for child in children}
    assert {lease.parents for lease in table.scan() if lease.key != FIRST} == {frozenset({FIRST})}


def test_a_merged_childs_lease_is_created_once_whichever_parent_ends_first(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    create_missing(table, stream, OLDEST, ())
    child = Shard(double.merge(FIRST, SECOND), (FIRST, SECOND))
    assert create_child_leases(table, stream, OLDEST, take(table, SECOND), [child])
    finish(table, SECOND)
    assert create_child_leases(table, stream, OLDEST, take(table, FIRST), [child])
    assert checkpoints(table) == {FIRST: TRIM_HORIZON, SECOND: SHARD_END, child.id: TRIM_HORIZON}


def test_a_merged_childs_other_parent_is_given_the_lease_it_lacks(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    create_missing(table, stream, OLDEST, ())
    table.delete(SECOND)
    child = Shard(double.merge(FIRST, SECOND), (FIRST, SECOND))
    assert create_child_leases(table, stream, OLDEST, take(table, FIRST), [child])
    assert checkpoints(table).keys() == {FIRST, SECOND, child.id}


def test_a_merged_child_waits_for_a_parent_whose_own_line_is_still_read(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    create_missing(table, stream, OLDEST, ())
    _, near = double.split(FIRST)
    grandchild, _ = double.split(near)
    merged = double.merge(double.split(grandchild)[1], SECOND)
    parents = next(shard.parents for shard in stream.list_shards() if shard.id == merged)
    assert create_child_leases(table, stream, OLDEST, take(table, SECOND), [Shard(merged, parents)])
    finish(table, SECOND)
    found = checkpoints(table)
    assert not may_start(parents, found)
    line = {near, grandchild, *parents} - {SECOND}
    assert all(found[key] == TRIM_HORIZON for key in line)
    for key in (FIRST, *sorted(line)):
        assert may_start(next(shard.parents for shard in stream.list_shards() if shard.id == key), checkpoints(table))
        finish(table, key)
    assert may_start(parents, checkpoints(table))


def test_the_end_of_a_shard_whose_lease_is_gone_makes_no_ghost(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    create_missing(table, stream, OLDEST, ())
    lost = take(table, FIRST)
    table.delete(FIRST)
    assert not create_child_leases(
        table, stream, OLDEST, lost, [Shard(child, (FIRST,)) for child in double.split(FIRST)]
    )
    assert table.get(FIRST) is None
