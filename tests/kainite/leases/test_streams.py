"""The streams of a lease table: which leases are whose, what is covered, and which table is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.base.errors import LeaseTableError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import MAX_HASH_KEY, HashRange, Shard
from kainite.leases.streams import ReadStream, all_covered, of_streams, refuse_other_mode, to_be_collected
from kainite.leases.table.lease import Lease, from_item, to_item
from kainite.settings import StreamSettings

A, B = "123456789012:a:1", "123456789012:b:2"
HALF = MAX_HASH_KEY // 2
RANGES = HashRange(0, HALF), HashRange(HALF + 1, MAX_HASH_KEY)


def leases_of(stream: str) -> list[Lease]:
    shards = [Shard(f"shardId-{n}", hash_range=keys).within(stream) for n, keys in enumerate(RANGES)]
    return [Lease.for_shard(shard, Checkpoint("5")) for shard in shards]


def test_an_item_of_several_streams_is_kcls_attribute_for_attribute() -> None:
    shard = Shard("shardId-2", ("shardId-0", "shardId-1"), HashRange(0, 9)).within(A)
    lease = replace(Lease.for_shard(shard, Checkpoint("4964")), children=frozenset({f"{A}:shardId-3"}))

    assert to_item(lease) == {
        "leaseKey": {"S": f"{A}:shardId-2"},
        "streamName": {"S": A},
        "shardId": {"S": "shardId-2"},
        "leaseCounter": {"N": "0"},
        "ownerSwitchesSinceCheckpoint": {"N": "0"},
        "checkpoint": {"S": "4964"},
        "checkpointSubSequenceNumber": {"N": "0"},
        "parentShardId": {"SS": ["shardId-0", "shardId-1"]},
        "childShardIds": {"SS": ["shardId-3"]},
        "startingHashKey": {"S": "0"},
        "endingHashKey": {"S": "9"},
    }
    assert from_item(to_item(lease)) == lease
    assert lease.parents == {f"{A}:shardId-0", f"{A}:shardId-1"}
    assert lease.stream == A


def test_leases_are_told_apart_by_stream() -> None:
    both = [*leases_of(A), *leases_of(B)]
    assert of_streams(both, (A,)) == tuple(leases_of(A))
    assert of_streams(both, (A, B)) == tuple(both)


def test_a_hole_in_one_stream_is_not_filled_by_another_one() -> None:
    (first, _), whole = leases_of(A), leases_of(B)
    assert all_covered([*leases_of(A), *whole], (A, B))
    assert not all_covered([first, *whole], (A, B))
    assert not all_covered(whole, (A, B)), "a stream without leases: they are still to be created"


def test_a_stream_of_others_counts_while_it_is_to_be_read() -> None:
    (first, second), whole = leases_of(A), leases_of(B)
    ended = [replace(lease, checkpoint=SHARD_END) for lease in (first, second)]
    assert not all_covered([first, *whole], (B,))
    assert all_covered([*ended, *whole], (B,))


def test_a_plain_stream_does_not_count_and_one_of_others_does() -> None:
    (first, _), whole = leases_of(A), leases_of(B)
    client = cast(StreamClient, None)
    plain = {A: ReadStream(client, StreamSettings(A), collected=False), B: ReadStream(client, StreamSettings(B))}

    assert to_be_collected([first, *whole], plain) == (tuple(whole), frozenset({B}))
    assert all_covered(*to_be_collected([first, *whole], plain)), "the plain stream's hole matters to no unit"
    assert to_be_collected([first, *whole], {B: plain[B]}) == ((first, *whole), frozenset({B}))


def test_a_table_of_the_other_mode_is_refused() -> None:
    refuse_other_mode("t", leases_of(A), (A,))
    refuse_other_mode("t", leases_of(""), ("",))
    refuse_other_mode("t", leases_of(B), (A,))  # another stream, the same mode
    with pytest.raises(LeaseTableError, match="streamName made, and this one has streamNames"):
        refuse_other_mode("t", leases_of(""), (A,))
    with pytest.raises(LeaseTableError, match="streamNames made, and this one has streamName"):
        refuse_other_mode("t", leases_of(A), ("",))
