"""The sync of one stream: when an audit leads to it, and which garbage it deletes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.checkpoint import LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import StreamUnavailableError
from kainite.base.logs import KeyValueFormatter
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import MAX_HASH_KEY, HashRange, Shard
from kainite.leases.shard_sync.stream_sync import SURE_AFTER, Audit, HoleTracker, StreamSync
from kainite.leases.streams import ReadStream, of_streams
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import InitialPosition
from support.keepers import FIRST, SECOND, STREAM
from support.kinesis_double import KinesisDouble

HALF = MAX_HASH_KEY // 2
HOLE, OTHER = HashRange(0, 9), HashRange(10, 19)
ID = "123456789012:orders:1700000000"
ADDED, CLOSED = "shardId-000000000002", "shardId-000000000003"


@pytest.fixture
def read(stream: StreamClient) -> ReadStream:
    return ReadStream(stream, STREAM)


@pytest.fixture
def among_several(double: KinesisDouble) -> Iterator[ReadStream]:
    client = boto3.client("kinesis", endpoint_url=double.endpoint, region_name="us-east-1")
    yield ReadStream(StreamClient(client, "orders", id=ID), STREAM)
    client.close()


@pytest.fixture
def sync(table: LeaseTable) -> StreamSync:
    return StreamSync(table)


@pytest.fixture
def first_only(table: LeaseTable) -> None:
    """Puts the lease of the first shard: the second half of the hash keys is a hole."""
    table.put_new(Lease(FIRST, "me", hash_range=HashRange(0, HALF)))


async def look(sync: StreamSync, table: LeaseTable, read: ReadStream, *, clean_up: bool = True) -> bool:
    return await sync.run(read, of_streams(table.scan(), (read.client.id,)), clean_up=clean_up)


def keys(table: LeaseTable) -> set[str]:
    return {lease.key for lease in table.scan()}


@given(st.lists(st.sampled_from([None, HOLE, OTHER])))
def test_only_the_same_hole_three_times_running_is_one(holes: list[HashRange | None]) -> None:
    watch = HoleTracker()
    for hole in holes:
        watch = watch.after(hole)
    last = holes[-SURE_AFTER:]
    assert watch.sure == (len(last) == SURE_AFTER and len(set(last)) == 1 and last[0] is not None)


async def test_an_empty_table_is_filled_at_the_first_look_and_later(
    sync: StreamSync, table: LeaseTable, read: ReadStream
) -> None:
    assert await look(sync, table, read)
    assert keys(table) == {FIRST, SECOND}
    assert sync.audit is None
    for key in (FIRST, SECOND):
        table.delete(key)
    assert await look(sync, table, read)
    assert keys(table) == {FIRST, SECOND}
    assert sync.audit == Audit(partial=True, syncing=True)


@pytest.mark.usefixtures("first_only")
async def test_the_first_look_beside_leases_is_a_sync(sync: StreamSync, table: LeaseTable, read: ReadStream) -> None:
    assert await look(sync, table, read)
    assert keys(table) == {FIRST, SECOND}
    assert not await look(sync, table, read)
    assert sync.audit == Audit(partial=False, syncing=False)


@pytest.mark.usefixtures("first_only")
async def test_a_first_look_that_fails_leaves_the_sync_to_the_next_one(
    sync: StreamSync, table: LeaseTable, read: ReadStream, double: KinesisDouble
) -> None:
    double.fail("ListShards", "LimitExceededException")
    with pytest.raises(StreamUnavailableError):
        await look(sync, table, read)
    assert keys(table) == {FIRST}
    assert await look(sync, table, read)
    assert keys(table) == {FIRST, SECOND}


@pytest.mark.usefixtures("first_only")
async def test_a_hole_leads_to_a_sync_when_it_is_seen_the_third_time(
    sync: StreamSync, table: LeaseTable, read: ReadStream, double: KinesisDouble
) -> None:
    unless_leases = replace(read, settings=replace(STREAM, skip_sync_if_leases=True))
    found: list[tuple[bool, Audit | None]] = []
    for _ in range(SURE_AFTER):
        assert double.count("ListShards") == 0
        found.append((await look(sync, table, unless_leases), sync.audit))
    waits = Audit(partial=True, syncing=False)
    assert found == [(False, waits), (False, waits), (True, Audit(partial=True, syncing=True))]
    assert keys(table) == {FIRST, SECOND}


@pytest.mark.usefixtures("first_only")
async def test_a_sync_that_fails_is_due_while_the_hole_is_there(
    sync: StreamSync, table: LeaseTable, read: ReadStream, double: KinesisDouble
) -> None:
    sync.rest()
    for _ in range(SURE_AFTER - 1):
        await look(sync, table, read)
    double.fail("ListShards", "LimitExceededException")
    with pytest.raises(StreamUnavailableError):
        await look(sync, table, read)
    assert await look(sync, table, read)
    assert keys(table) == {FIRST, SECOND}


@pytest.mark.usefixtures("first_only")
async def test_holes_that_were_seen_before_another_worker_led_count_no_more(
    sync: StreamSync, table: LeaseTable, read: ReadStream
) -> None:
    sync.rest()
    for _ in range(SURE_AFTER - 1):
        assert not await look(sync, table, read)
    sync.rest()
    assert sync.audit is None
    assert [await look(sync, table, read) for _ in range(SURE_AFTER)] == [False, False, True]


@pytest.mark.parametrize("several", [False, True])
async def test_a_hole_is_told_with_the_stream_where_there_are_several(
    sync: StreamSync, table: LeaseTable, read: ReadStream, among_several: ReadStream, several: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    stream = among_several if several else read
    table.put_new(Lease.for_shard(Shard(FIRST, hash_range=HashRange(0, HALF)).within(stream.client.id), TRIM_HORIZON))
    sync.rest()
    with caplog.at_level(logging.WARNING):
        await look(sync, table, stream)
    (told,) = [KeyValueFormatter().format(record).partition(" ")[2] for record in caplog.records]
    what = f"WARNING leases leave a hole keys={HALF + 1}-{MAX_HASH_KEY} times=1 syncing=False"
    assert told == (f"{what} stream={ID}" if several else what)


async def test_leases_that_lack_their_hash_keys_are_given_them_before_a_hole_is_looked_for(
    sync: StreamSync, table: LeaseTable, read: ReadStream
) -> None:
    for key in (FIRST, SECOND):
        table.put_new(Lease(key, "me"))
    sync.rest()
    assert not await look(sync, table, read)
    assert sync.audit == Audit(partial=False, syncing=False)
    assert {lease.hash_range for lease in table.scan()} == {HashRange(0, HALF), HashRange(HALF + 1, MAX_HASH_KEY)}


async def test_garbage_is_what_is_read_and_listed_no_more(
    sync: StreamSync, table: LeaseTable, among_several: ReadStream
) -> None:
    await look(sync, table, among_several)
    first = table.get(f"{ID}:{FIRST}")
    assert first is not None
    table.checkpoint(first, SHARD_END)
    table.put_new(Lease.for_shard(Shard(ADDED, hash_range=HashRange(0, HALF)).within(ID), Checkpoint("5")))
    table.put_new(Lease.for_shard(Shard(CLOSED).within(ID), SHARD_END))
    assert not await look(sync, table, among_several, clean_up=False)
    listed = {f"{ID}:{FIRST}", f"{ID}:{SECOND}"}
    assert keys(table) == {*listed, f"{ID}:{ADDED}", f"{ID}:{CLOSED}"}
    assert await look(sync, table, among_several)
    assert keys(table) == {*listed, f"{ID}:{ADDED}"}, "an unread shard stays, and so does one that is still listed"


async def test_the_stream_is_not_listed_where_nothing_can_be_garbage(
    sync: StreamSync, table: LeaseTable, read: ReadStream, double: KinesisDouble
) -> None:
    await look(sync, table, read)
    before = double.count("ListShards")
    assert not await look(sync, table, read)
    assert double.count("ListShards") == before


async def test_the_logs_beginning_is_noted_before_the_first_leases_at_latest(
    sync: StreamSync, table: LeaseTable, read: ReadStream
) -> None:
    noted: list[tuple[Checkpoint, float | None, set[str]]] = []

    async def begin(initial: Checkpoint, time: float | None) -> float:
        noted.append((initial, time, keys(table)))
        return 0.0

    latest = replace(STREAM, initial_position=InitialPosition.LATEST)
    assert await look(sync, table, replace(read, settings=latest, begin=begin))
    assert noted == [(LATEST, None, set())]
    assert keys(table) == {FIRST, SECOND}


async def test_a_shard_that_is_read_to_its_end_leaves_a_hole_while_its_children_have_no_leases(
    sync: StreamSync, table: LeaseTable, read: ReadStream
) -> None:
    await look(sync, table, read)
    first = table.get(FIRST)
    assert first is not None
    table.checkpoint(first, SHARD_END)
    await look(sync, table, read)
    assert sync.audit == Audit(partial=True, syncing=False)
