"""Creating leases for the stream's shards: first leases, splits, merges, and a timestamp."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import LogUnavailableError, SettingsError, StreamUnavailableError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import Shard, roots
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
async def test_an_empty_table_gets_a_lease_for_each_shard(
    table: LeaseTable, stream: StreamClient, settings: StreamSettings, initial: Checkpoint
) -> None:
    await create_missing(table, stream, settings, ())
    await create_missing(table, stream, settings, ())
    assert checkpoints(table) == {FIRST: initial, SECOND: initial}
    assert all(lease.hash_range is not None for lease in table.scan())


async def test_a_listing_with_a_hole_makes_no_first_leases(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    double.shards[SECOND].start += 1
    with pytest.raises(StreamUnavailableError, match="hole"):
        await create_missing(table, stream, NEWEST, ())
    assert table.scan() == ()


async def test_at_a_timestamp_the_shards_of_that_time_are_asked_for(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    settings = StreamSettings(name="orders", initial_position=InitialPosition.AT_TIMESTAMP, initial_timestamp=1000.0)
    double.split(FIRST)
    await create_missing(table, stream, settings, ())
    assert double.asked("ListShards")[0]["ShardFilter"] == {"Type": "AT_TIMESTAMP", "Timestamp": 1000.0}
    assert checkpoints(table) == {FIRST: AT_TIMESTAMP, SECOND: AT_TIMESTAMP}
    with pytest.raises(SettingsError, match="initialPositionInStreamExtended"):
        await create_missing(table, stream, dataclasses.replace(settings, initial_timestamp=None), ())


async def test_a_split_on_moto_is_followed_from_parent_to_children(table: LeaseTable, kinesis: Any) -> None:
    name = unique("stream")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    stream = StreamClient(kinesis, name)
    await create_missing(table, stream, NEWEST, ())
    kinesis.split_shard(StreamName=name, ShardToSplit=FIRST, NewStartingHashKey=str(2**127))
    await create_missing(table, stream, NEWEST, table.scan())
    assert checkpoints(table) == {FIRST: LATEST}
    children = [shard for shard in stream.list_shards() if shard.parents]
    assert await create_child_leases(table, stream, NEWEST, take(table, FIRST), children)
    assert checkpoints(table) == {FIRST: LATEST, **{child.id: TRIM_HORIZON for child in children}}
    parent = table.get(FIRST)
    assert parent is not None
    assert parent.children == {child.id for child in children}
    assert {lease.parents for lease in table.scan() if lease.key != FIRST} == {frozenset({FIRST})}


async def test_a_merged_childs_lease_is_created_once_whichever_parent_ends_first(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    await create_missing(table, stream, OLDEST, ())
    child = Shard(double.merge(FIRST, SECOND), (FIRST, SECOND))
    assert await create_child_leases(table, stream, OLDEST, take(table, SECOND), [child])
    finish(table, SECOND)
    assert await create_child_leases(table, stream, OLDEST, take(table, FIRST), [child])
    assert checkpoints(table) == {FIRST: TRIM_HORIZON, SECOND: SHARD_END, child.id: TRIM_HORIZON}


async def test_a_merged_childs_other_parent_is_given_the_lease_it_lacks(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    await create_missing(table, stream, OLDEST, ())
    table.delete(SECOND)
    child = Shard(double.merge(FIRST, SECOND), (FIRST, SECOND))
    assert await create_child_leases(table, stream, OLDEST, take(table, FIRST), [child])
    assert checkpoints(table).keys() == {FIRST, SECOND, child.id}


async def test_a_merged_child_waits_for_a_parent_whose_own_line_is_still_read(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    await create_missing(table, stream, OLDEST, ())
    _, near = double.split(FIRST)
    grandchild, _ = double.split(near)
    merged = double.merge(double.split(grandchild)[1], SECOND)
    parents = next(shard.parents for shard in stream.list_shards() if shard.id == merged)
    assert await create_child_leases(table, stream, OLDEST, take(table, SECOND), [Shard(merged, parents)])
    finish(table, SECOND)
    found = checkpoints(table)
    assert not may_start(parents, found)
    line = {near, grandchild, *parents} - {SECOND}
    assert all(found[key] == TRIM_HORIZON for key in line)
    for key in (FIRST, *sorted(line)):
        assert may_start(next(shard.parents for shard in stream.list_shards() if shard.id == key), checkpoints(table))
        finish(table, key)
    assert may_start(parents, checkpoints(table))


async def test_the_end_of_a_shard_whose_lease_is_gone_makes_no_ghost(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    await create_missing(table, stream, OLDEST, ())
    lost = take(table, FIRST)
    table.delete(FIRST)
    assert not await create_child_leases(
        table, stream, OLDEST, lost, [Shard(child, (FIRST,)) for child in double.split(FIRST)]
    )
    assert table.get(FIRST) is None


async def test_a_shard_that_had_no_lease_when_the_log_began_is_read_before_its_children(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    """Has a worker die between the first leases; the log begins; then the shard without a lease is split."""
    table.put_new(Lease(FIRST, checkpoint=LATEST))
    begun = Begun(double)
    double.split(SECOND)
    await create_missing(table, stream, NEWEST, table.scan(), begun)
    assert checkpoints(table) == {FIRST: LATEST, SECOND: LATEST}
    assert begun.asked == [(LATEST, None)]


async def test_a_shard_that_was_closed_before_the_log_began_gets_no_lease(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    double.clock = lambda: Begun.AT - 1
    children = double.split(FIRST)
    await create_missing(table, stream, NEWEST, (), Begun(double))
    assert checkpoints(table) == dict.fromkeys((*children, SECOND), LATEST)


async def test_the_stream_is_listed_when_the_beginning_is_durable(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    """Shows why: a listing from before it may have shards as open that are closed after it, without their children."""
    left: list[str] = []
    await create_missing(table, stream, NEWEST, (), Begun(double, lambda: left.extend(double.split(FIRST))))
    assert checkpoints(table) == {FIRST: LATEST, SECOND: LATEST}
    assert double.asked("ListShards")[2]["ShardFilter"] == {"Type": "FROM_TIMESTAMP", "Timestamp": Begun.AT}


@pytest.mark.parametrize("listing", [1, 2, 3])
async def test_shards_that_live_between_two_listings_are_reached_from_their_ancestors(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble, listing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Has a worker stand still behind one of its listings, while a shard is split, and its children merged again."""
    listed, listings = stream.list_shards, itertools.count(1)

    def list_shards(**asked: Any) -> tuple[Shard, ...]:
        found = listed(**asked)
        if next(listings) == listing:
            double.merge(*double.split(FIRST))
        return found

    monkeypatch.setattr(stream, "list_shards", list_shards)
    await create_missing(table, stream, NEWEST, (), Begun(double))
    assert {FIRST, SECOND} == {shard.id for shard in roots(stream.list_shards()) if shard.id in checkpoints(table)}


async def test_at_a_timestamp_reading_begins_where_the_log_did(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    settings = StreamSettings("orders", initial_position=InitialPosition.AT_TIMESTAMP, initial_timestamp=1000.0)
    double.clock = lambda: Begun.AT - 1
    children, begun = double.split(FIRST), Begun(double)
    await create_missing(table, stream, settings, (), begun)
    assert checkpoints(table) == dict.fromkeys((*children, SECOND), AT_TIMESTAMP)
    assert begun.asked == [(AT_TIMESTAMP, 1000.0)]


async def test_a_log_that_does_not_note_its_beginning_makes_no_first_leases(
    table: LeaseTable, stream: StreamClient
) -> None:
    async def begin(checkpoint: Checkpoint, timestamp: float | None) -> float:
        raise LogUnavailableError("away")

    with pytest.raises(LogUnavailableError):
        await create_missing(table, stream, NEWEST, (), begin)
    assert table.scan() == ()


async def test_among_several_streams_one_at_trim_horizon_is_awaited_before_its_first_lease(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    there = list[tuple[Lease, ...]]()
    stream.id = "1:orders:7"
    begun = Begun(double, lambda: there.append(table.scan()))
    for _ in range(2):
        await create_missing(table, stream, OLDEST, table.scan(), begun)
    assert (begun.asked, there) == ([(TRIM_HORIZON, None)], [()])


async def test_leases_of_another_application_need_no_beginning(
    table: LeaseTable, stream: StreamClient, double: KinesisDouble
) -> None:
    """Checks that reading goes on at checkpoints: the log has nothing to note, and its beginning would delay units."""
    for key in (FIRST, SECOND):
        table.put_new(Lease(key, checkpoint=Checkpoint("17")))
    double.split(FIRST)
    begun = Begun(double)
    await create_missing(table, stream, NEWEST, table.scan(), begun)
    await create_missing(table, stream, OLDEST, (), begun)
    assert begun.asked == []


class Begun:
    """A log that begins when it is asked; from then on the stream's clock shows later times.

    Args:
        double: the stream.
        meanwhile: happens when the beginning is durable.
    """

    AT = 1_000_000.0

    def __init__(self, double: KinesisDouble, meanwhile: Callable[[], None] = lambda: None) -> None:
        double.clock = lambda: self.AT
        self.asked: list[tuple[Checkpoint, float | None]] = []
        self._meanwhile = meanwhile

    async def __call__(self, checkpoint: Checkpoint, timestamp: float | None) -> float:
        self.asked.append((checkpoint, timestamp))
        self._meanwhile()
        return self.AT
