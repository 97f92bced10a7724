"""A lease and its item, attribute for attribute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.checkpoint import LATEST, TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseTableError
from kainite.kinesis.shards import HashRange, Shard
from kainite.leases.table.lease import Lease, PendingCheckpoint, from_item, is_lease, to_item

IDS = st.text("abc-0123", min_size=1, max_size=8)
CHECKPOINTS = st.builds(Checkpoint, st.integers(0, 10**56).map(str), st.integers(0, 9)) | st.just(LATEST)
LEASES = st.builds(
    Lease,
    key=IDS,
    owner=st.none() | IDS,
    counter=st.integers(0, 10**9),
    checkpoint=CHECKPOINTS,
    switches=st.integers(0, 99),
    parents=st.frozensets(IDS, max_size=2),
    children=st.frozensets(IDS, max_size=2),
    hash_range=st.none() | st.builds(HashRange, st.integers(0, 2**127), st.integers(2**127, 2**128 - 1)),
    throughput=st.none() | st.integers(0, 10**9).map(lambda n: n / 1000),
    checkpoint_owner=st.none() | IDS,
    pending=st.none() | st.builds(PendingCheckpoint, CHECKPOINTS, st.none() | st.binary(min_size=1, max_size=8)),
)


def test_the_item_is_kcls_attribute_for_attribute() -> None:
    lease = Lease(
        key="shardId-000000000007",
        owner="host:1",
        counter=42,
        checkpoint=Checkpoint("4964", 3),
        switches=1,
        parents=frozenset({"shardId-000000000001", "shardId-000000000000"}),
        children=frozenset({"shardId-000000000008"}),
        hash_range=HashRange(0, 2**128 - 1),
        throughput=12.5,
        checkpoint_owner="host:0",
        pending=PendingCheckpoint(Checkpoint("4965"), b"state"),
    )
    assert to_item(lease) == {
        "leaseKey": {"S": "shardId-000000000007"},
        "leaseOwner": {"S": "host:1"},
        "leaseCounter": {"N": "42"},
        "ownerSwitchesSinceCheckpoint": {"N": "1"},
        "checkpoint": {"S": "4964"},
        "checkpointSubSequenceNumber": {"N": "3"},
        "pendingCheckpoint": {"S": "4965"},
        "pendingCheckpointSubSequenceNumber": {"N": "0"},
        "pendingCheckpointState": {"B": b"state"},
        "parentShardId": {"SS": ["shardId-000000000000", "shardId-000000000001"]},
        "childShardIds": {"SS": ["shardId-000000000008"]},
        "startingHashKey": {"S": "0"},
        "endingHashKey": {"S": "340282366920938463463374607431768211455"},
        "throughputKBps": {"N": "12.500000"},
        "checkpointOwner": {"S": "host:0"},
    }


def test_a_new_leases_item_has_no_empty_attributes() -> None:
    assert to_item(Lease.for_shard(Shard("s"), TRIM_HORIZON)) == {
        "leaseKey": {"S": "s"},
        "leaseCounter": {"N": "0"},
        "ownerSwitchesSinceCheckpoint": {"N": "0"},
        "checkpoint": {"S": "TRIM_HORIZON"},
        "checkpointSubSequenceNumber": {"N": "0"},
    }


@given(LEASES)
def test_a_lease_reads_back_as_written(lease: Lease) -> None:
    assert from_item(to_item(lease)) == lease


def test_a_state_that_kcl_wrote_as_a_number_does_not_stop_reading() -> None:
    item = to_item(Lease("s")) | {"pendingCheckpoint": {"S": "7"}, "pendingCheckpointState": {"N": "5"}}
    assert from_item(item).pending == PendingCheckpoint(Checkpoint("7"))


@pytest.mark.parametrize(
    "broken", [{"checkpoint": {"S": "x"}}, {"leaseCounter": {"S": "1"}}, {"leaseOwner": {"N": "1"}}]
)
def test_an_item_of_another_shape_is_named(broken: dict[str, dict[str, str]]) -> None:
    with pytest.raises(LeaseTableError, match="'s'"):
        from_item(to_item(Lease("s")) | broken)


def test_only_leases_are_leases() -> None:
    assert is_lease({"leaseKey": {"S": "s"}})
    assert is_lease({"leaseKey": {"S": "s"}, "entityType": {"S": "LEASE"}})
    assert not is_lease({"leaseKey": {"S": "Leader"}, "entityType": {"S": "LEADER"}})
