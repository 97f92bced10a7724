"""KCL's conditions, case by case (docs/kcl.md, *Leases*), on each DynamoDB that the tests have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.config import Config

from kainite.base.checkpoint import SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseTableError, LeaseTableUnavailableError
from kainite.kinesis.shards import HashRange
from kainite.leases.table.collected_into import LogNote
from kainite.leases.table.lease import Lease, PendingCheckpoint, to_item
from kainite.leases.table.lease_table import LeaseTable
from support.dynamodb_doubles import on_each_double
from support.names import unique

pytestmark = on_each_double

NEW = Lease("s", checkpoint=TRIM_HORIZON, parents=frozenset({"p"}), hash_range=HashRange(0, 9))


def put(table: LeaseTable, dynamodb: Any, lease: Lease) -> Lease:
    dynamodb.put_item(TableName=table.name, Item=to_item(lease))
    return lease


@pytest.fixture
def taken(table: LeaseTable) -> Lease:
    """Returns a lease that worker ``me`` has just taken."""
    table.put_new(NEW)
    lease = table.take(NEW, "me")
    assert lease is not None
    return lease


def test_a_lease_is_created_once(table: LeaseTable) -> None:
    assert table.put_new(NEW)
    assert not table.put_new(Lease("s", checkpoint=SHARD_END))
    assert table.scan() == (NEW,)
    assert table.get("s") == NEW
    assert table.get("other") is None


def test_other_entities_in_the_table_are_passed_over(table: LeaseTable, dynamodb: Any) -> None:
    table.put_new(NEW)
    leader = {"leaseKey": {"S": "Leader"}, "entityType": {"S": "LEADER"}, "ownerName": {"S": "w"}}
    dynamodb.put_item(TableName=table.name, Item=leader)
    assert table.scan() == (NEW,)
    assert table.get("Leader") is None


def test_a_scan_of_many_pages_is_whole(table: LeaseTable, dynamodb: Any) -> None:
    for n in range(30):
        put(table, dynamodb, Lease(f"s{n}", owner="x" * 60_000))
    assert {lease.key for lease in table.scan()} == {f"s{n}" for n in range(30)}


def test_taking_an_expired_lease_counts_the_switch(table: LeaseTable, dynamodb: Any) -> None:
    lease = put(table, dynamodb, Lease("s", owner="other", counter=5, switches=2, checkpoint_owner="old"))
    assert table.take(lease, "me") == Lease("s", owner="me", counter=6, switches=3)


def test_taking_ones_own_or_an_unowned_lease_counts_no_switch(taken: Lease, table: LeaseTable) -> None:
    assert (taken.owner, taken.counter, taken.switches) == ("me", 1, 0)
    again = table.take(taken, "me")
    assert again is not None
    assert (again.counter, again.switches) == (2, 0)


def test_a_worker_with_a_log_notes_it_with_each_take_and_renewal(table: LeaseTable, dynamodb: Any) -> None:
    collecting, note = LeaseTable(dynamodb, table.name, "orders-log/0"), LogNote("me", "orders-log/0")
    lease = collecting.take(put(table, dynamodb, Lease("s", owner="other", log_note=LogNote("other", "b/0"))), "me")
    assert lease is not None
    assert (lease.log_note, lease.log) == (note, "orders-log/0")
    put(table, dynamodb, replace(lease, log_note=None))
    renewed = collecting.renew(lease)
    assert renewed is not None
    assert renewed.log_note == note


def test_a_worker_without_units_of_work_takes_the_note_away_and_another_one_leaves_it(
    taken: Lease, table: LeaseTable, dynamodb: Any
) -> None:
    noted = LeaseTable(dynamodb, table.name, "orders-log/0").renew(taken)
    assert noted is not None
    assert (noted.log, replace(noted, owner="java").log) == ("orders-log/0", None)
    again = table.take(noted, "me")
    assert again is not None
    assert again.log_note is None


def test_a_lease_whose_counter_moved_since_the_scan_is_not_taken(taken: Lease, table: LeaseTable) -> None:
    assert table.take(NEW, "other") is None
    assert table.get("s") == taken


def test_a_renewal_after_anothers_take_is_a_loss(taken: Lease, table: LeaseTable) -> None:
    assert table.take(taken, "other") is not None
    assert table.renew(taken) is None
    assert table.checkpoint(taken, Checkpoint("7")) is None
    stored = table.get("s")
    assert stored is not None
    assert (stored.owner, stored.checkpoint) == ("other", TRIM_HORIZON)


def test_a_renewal_whose_answer_was_lost_is_recognised(taken: Lease, table: LeaseTable) -> None:
    first = table.renew(taken)
    assert first is not None
    assert first.counter == 2
    assert table.renew(taken) == first
    assert table.renew(first) is not None
    assert table.renew(taken) is None


def test_a_checkpoint_whose_answer_was_lost_is_recognised(taken: Lease, table: LeaseTable) -> None:
    first = table.checkpoint(taken, Checkpoint("7"))
    assert table.checkpoint(taken, Checkpoint("7")) == first
    second = table.checkpoint(taken, Checkpoint("8"))
    assert second is not None
    assert (second.counter, second.checkpoint) == (3, Checkpoint("8"))
    assert table.checkpoint(taken, Checkpoint("9")) is None


def test_a_checkpoint_that_comes_too_late_does_not_go_back_behind_a_later_one(taken: Lease, table: LeaseTable) -> None:
    later = table.checkpoint(taken, Checkpoint("8"))
    assert table.checkpoint(taken, Checkpoint("7")) is None
    assert table.get("s") == later


def test_a_hand_over_is_adopted_at_renewal_and_the_old_owner_checkpoints_until_it_assigns(table: LeaseTable) -> None:
    table.put_new(NEW)
    mine = table.take(NEW, "me")
    assert mine is not None
    handed = table.handoff(mine, "new")
    assert handed is not None
    assert (handed.owner, handed.checkpoint_owner, handed.counter) == ("new", "me", mine.counter)
    assert table.handoff(handed, "third") is None
    adopted = table.renew(mine, doubtful=False)
    assert adopted is not None
    assert (adopted.checkpoint_owner, adopted.counter) == ("me", 2)
    renewed = table.renew(adopted, doubtful=False)
    assert renewed is not None
    stored = table.checkpoint(renewed, Checkpoint("7"), doubtful=False)
    assert stored is not None
    given = table.assign(stored, "new")
    assert given is not None
    assert (given.owner, given.checkpoint_owner, given.counter, given.switches) == ("new", None, 5, 1)
    assert table.assign(stored, "new") is None
    assert table.renew(stored) is None


def test_an_end_of_a_hand_over_that_arrives_late_does_not_end_a_later_one_between_the_same_workers(
    taken: Lease, table: LeaseTable
) -> None:
    """Holds where the call hung: its sender's lease expired, it took the lease again, and is handing over anew."""
    first = table.handoff(taken, "new")
    assert first is not None
    again = table.take(first, "me")
    assert again is not None
    second = table.handoff(again, "new")
    assert second is not None

    assert table.assign(first, "new") is None
    assert table.get("s") == second
    assert table.assign(second, "new") is not None


def test_a_hand_over_between_two_others_is_a_loss(table: LeaseTable, dynamodb: Any) -> None:
    put(table, dynamodb, Lease("s", owner="new", counter=5, checkpoint_owner="old"))
    assert table.renew(Lease("s", owner="me", counter=5)) is None


def test_giving_up_a_lease_in_a_hand_over_leaves_it_to_the_next_owner(taken: Lease, table: LeaseTable) -> None:
    assert table.handoff(taken, "new") is not None
    assert table.evict(taken)
    stored = table.get("s")
    assert stored is not None
    assert (stored.owner, stored.checkpoint_owner, stored.counter) == ("new", None, 2)


def test_a_counter_moved_in_ones_own_name_is_ones_own_write_only_if_an_answer_was_lost(
    taken: Lease, table: LeaseTable
) -> None:
    assert table.renew(taken) is not None
    assert table.renew(taken, doubtful=False) is None
    assert table.checkpoint(taken, Checkpoint("7"), doubtful=False) is None
    assert table.renew(taken) is not None


def test_a_checkpoint_brings_children_and_hash_keys_that_are_known(table: LeaseTable, dynamodb: Any) -> None:
    known = Lease("s", "me", 5, children=frozenset("c"), hash_range=HashRange(3, 9))
    put(table, dynamodb, Lease("s", "me", 5))
    assert table.checkpoint(known, Checkpoint("7")) == Lease(
        "s", "me", 6, Checkpoint("7"), 0, children=frozenset("c"), hash_range=HashRange(3, 9)
    )


def test_a_renewal_brings_the_throughput_that_was_measured(taken: Lease, table: LeaseTable) -> None:
    renewed = table.renew(taken, throughput=12.25)
    assert renewed is not None
    assert renewed.throughput == 12.25


def test_a_checkpoint_renews_and_clears_what_was_pending(table: LeaseTable, dynamodb: Any) -> None:
    before = put(
        table,
        dynamodb,
        Lease(
            "s",
            "me",
            5,
            TRIM_HORIZON,
            3,
            frozenset("p"),
            frozenset("c"),
            HashRange(0, 9),
            pending=PendingCheckpoint(Checkpoint("6"), b"x"),
        ),
    )
    after = table.checkpoint(before, Checkpoint("7", 2))
    assert after == Lease("s", "me", 6, Checkpoint("7", 2), 0, frozenset("p"), frozenset("c"), HashRange(0, 9))
    assert table.get("s") == after


def test_attributes_of_later_versions_survive_every_write(taken: Lease, table: LeaseTable, dynamodb: Any) -> None:
    dynamodb.update_item(
        TableName=table.name,
        Key={"leaseKey": {"S": "s"}},
        UpdateExpression="SET somethingNew = :x",
        ExpressionAttributeValues={":x": {"S": "kept"}},
    )
    lease = table.checkpoint(taken, Checkpoint("7"))
    assert lease is not None
    assert table.set_children(lease, ["c"])
    renewed = table.renew(lease)
    assert renewed is not None
    assert table.evict(renewed)
    item = dynamodb.get_item(TableName=table.name, Key={"leaseKey": {"S": "s"}}, ConsistentRead=True)["Item"]
    assert item["somethingNew"] == {"S": "kept"}
    assert item["childShardIds"] == {"SS": ["c"]}


def test_an_evicted_lease_is_free_at_once_and_lost_to_its_owner(taken: Lease, table: LeaseTable) -> None:
    assert table.evict(taken)
    free = table.get("s")
    assert free is not None
    assert (free.owner, free.counter) == (None, 2)
    assert table.renew(taken) is None


def test_a_lease_of_another_owner_is_not_evicted(taken: Lease, table: LeaseTable) -> None:
    table.take(taken, "other")
    assert not table.evict(taken)


def test_a_release_that_arrives_late_frees_no_lease_that_was_taken_again(taken: Lease, table: LeaseTable) -> None:
    again = table.take(taken, "me")
    assert not table.evict(taken), "whoever sent it waits no more, and reads the shard"
    assert table.handoff(taken, "new") is not None
    assert not table.evict(taken)
    assert again is not None
    assert table.evict(again)


def test_writes_after_a_delete_bring_no_lease_back(taken: Lease, table: LeaseTable) -> None:
    table.delete("s")
    table.delete("s")
    assert table.renew(taken) is None
    assert table.checkpoint(taken, Checkpoint("7")) is None
    assert not table.evict(taken)
    assert not table.set_children(taken, ["c"])
    assert table.take(taken, "me") is None
    assert table.scan() == ()


def test_a_missing_table_is_named_and_no_answer_may_be_tried_again(dynamodb: Any) -> None:
    with pytest.raises(LeaseTableError, match="does not exist") as missing:
        LeaseTable(dynamodb, unique("nowhere")).scan()
    assert not missing.value.retryable
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=1)
    nobody = boto3.client("dynamodb", endpoint_url="http://127.0.0.1:9", region_name="us-east-1", config=config)
    with pytest.raises(LeaseTableUnavailableError):
        LeaseTable(nobody, "t").renew(NEW)
