"""A reset as an operation: planned, refused while workers live, carried out, recorded."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.checkpoint import LATEST, TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseTableError
from kainite.kinesis.shards import Shard
from kainite.leases.administration.reset import CheckpointChange
from kainite.leases.table.lease import Lease
from kainite.log.format.entry import OperationResult
from kainite.operations.carrying_out import Operations
from kainite.operations.checkpoints import effects
from kainite.operations.operation import ResetCheckpoints
from kainite.settings import load
from kainite.store.dynamodb import DynamoDBStore
from support.lease_commands import LeaseCommands
from support.names import unique

FIRST, SECOND = "shardId-000000000000", "shardId-000000000001"


@pytest.fixture
def operations(world: LeaseCommands, dynamodb: Any) -> Operations:
    name = unique("log")
    DynamoDBStore(dynamodb, name).create()
    with world.properties.open("a") as file:
        file.write(f"\nunitsOfWork = true\nlogTableName = {name}\n")
    return Operations(load(world.properties, needs=("applicationName", "streamName")))


def test_a_reset_is_previewed_carried_out_and_recorded_without_an_owner(
    operations: Operations, world: LeaseCommands
) -> None:
    for shard in (FIRST, SECOND):
        world.table.put_new(Lease(shard, checkpoint=Checkpoint("9")))
    back = ResetCheckpoints(TRIM_HORIZON, (FIRST,))
    preview = operations.preview(back)
    assert preview.does == f"set the checkpoints of shards: {FIRST}: 9 → TRIM_HORIZON"
    assert preview.details[0] == f"{FIRST}: 9 → TRIM_HORIZON: records behind the new position are delivered again"
    assert "unitsOfWork is on" in preview.details[1]
    assert world.checkpoints() == {FIRST: "9", SECOND: "9"}
    outcome = operations.carry_out(back, "ann", "read it again")
    assert (outcome.result, outcome.sentence) == (OperationResult.DONE, "1 of 1 shard is reset")
    assert world.checkpoints() == {FIRST: "TRIM_HORIZON", SECOND: "9"}
    (noted,) = operations.history()
    assert (noted.who, noted.why, noted.what, noted.about, noted.result) == (
        "ann", "read it again", "reset checkpoints", f"{FIRST}: 9 → TRIM_HORIZON", "done"
    )  # fmt: skip


def test_a_lease_that_a_worker_renews_is_not_reset(operations: Operations, world: LeaseCommands) -> None:
    with world.renewing(world.hold(FIRST, Checkpoint("9"))), pytest.raises(LeaseTableError, match="stop the workers"):
        operations.carry_out(ResetCheckpoints(LATEST), "ann")
    assert world.checkpoints()[FIRST] == "9"
    assert operations.history() == []


@pytest.mark.parametrize(
    ("before", "after", "collected", "says"),
    [
        ("9", "5", True, "9 → 5: records behind the new position are delivered again"),
        ("5", "9", True, "5 → 9: records between the two positions are skipped"),
        ("SHARD_END", "9", False, "SHARD_END → 9: records behind the new position are delivered again"),
        ("9", "LATEST", True, "9 → LATEST: goes on where the log has collected it to"),
        ("9", "LATEST", False, "9 → LATEST: records that are not read yet are skipped"),
        (None, "TRIM_HORIZON", True, "no lease → TRIM_HORIZON: is read from there on"),
    ],
)
def test_what_is_read_again_and_what_is_skipped_is_said(
    before: str | None, after: str, collected: bool, says: str
) -> None:
    lease = Lease("s", checkpoint=Checkpoint(before)) if before is not None else None
    same = CheckpointChange(Shard("same"), Lease("same", checkpoint=LATEST), LATEST)
    change = CheckpointChange(Shard("s"), lease, Checkpoint(after))
    assert list(effects([same, change], collected=lambda shard: collected and shard == "s")) == [f"s: {says}"]
