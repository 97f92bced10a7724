"""``kainite leases reset``, called as from a shell."""

from __future__ import annotations

import pytest

from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.leases.table.lease import Lease
from support.lease_commands import LeaseCommands

FIRST, SECOND = "shardId-000000000000", "shardId-000000000001"


def test_a_reset_is_asked_about_and_says_what_changed(world: LeaseCommands) -> None:
    world.hold(FIRST, Checkpoint("9"))
    world.table.put_new(Lease(SECOND, checkpoint=SHARD_END))
    ended = world.kainite("reset", "--to", "TRIM_HORIZON", "--yes")
    assert ended.exit_code == 0, ended.output
    assert f"{FIRST}: 9 → TRIM_HORIZON" in ended.stdout
    assert f"{SECOND}: SHARD_END → TRIM_HORIZON" in ended.stdout
    assert world.checkpoints() == {FIRST: "TRIM_HORIZON", SECOND: "TRIM_HORIZON"}
    assert "Nothing to change" in world.kainite("reset", "--to", "TRIM_HORIZON", "--yes").stdout


@pytest.mark.parametrize(("answer", "after"), [("y\n", "LATEST"), ("n\n", "9")])
def test_nothing_is_changed_before_the_answer(
    world: LeaseCommands, monkeypatch: pytest.MonkeyPatch, answer: str, after: str
) -> None:
    world.table.put_new(Lease(FIRST, checkpoint=Checkpoint("9")))
    monkeypatch.setattr("kainite.cli.leases_reset.interactive", lambda: True)
    ended = world.kainite("reset", "--to", "LATEST", "--shard", FIRST, answer=answer)
    assert ended.exit_code == (0 if after == "LATEST" else 1)
    assert world.checkpoints() == {FIRST: after}


def test_a_time_becomes_the_last_record_before_it(world: LeaseCommands) -> None:
    numbers = [world.double.put(b"x", shard=FIRST) for _ in range(3)]
    for place, record in enumerate(world.double.shards[FIRST].records):
        record["ApproximateArrivalTimestamp"] = 1_760_000_000.0 + place
    world.table.put_new(Lease(FIRST, checkpoint=Checkpoint(str(numbers[2]))))
    world.table.put_new(Lease(SECOND, checkpoint=SHARD_END))
    ended = world.kainite("reset", "--at", "2025-10-09T08:53:21Z", "--yes")
    assert ended.exit_code == 0, ended.output
    assert world.checkpoints() == {FIRST: str(numbers[0]), SECOND: "SHARD_END"}


def test_a_live_workers_lease_is_reset_only_by_force(world: LeaseCommands) -> None:
    with world.renewing(world.hold(FIRST, Checkpoint("9"))):
        refused = world.kainite("reset", "--to", "TRIM_HORIZON", "--shard", FIRST, "--yes")
        assert refused.exit_code == 1
        assert "1 of these leases are renewed by w: stop the workers first" in refused.stderr
        assert world.checkpoints() == {FIRST: "9"}
        assert world.kainite("reset", "--to", "TRIM_HORIZON", "--shard", FIRST, "--yes", "--force").exit_code == 0
    assert world.checkpoints() == {FIRST: "TRIM_HORIZON"}


def test_with_units_of_work_it_says_what_the_log_remembers(world: LeaseCommands) -> None:
    world.properties.write_text(world.properties.read_text() + "unitsOfWork=true\n")
    world.table.put_new(Lease(FIRST, checkpoint=Checkpoint("9")))
    back = world.kainite("reset", "--to", "TRIM_HORIZON", "--shard", FIRST, "--yes").stdout
    assert "recognised and not collected twice" in back
    assert "stay incomplete" not in back
    assert "stay incomplete" in world.kainite("reset", "--to", "50", "--shard", FIRST, "--yes").stdout


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--yes"], 2, "give either --to POSITION or --at TIME"),
        (["--to", "LATEST", "--at", "1", "--yes"], 2, "give either --to POSITION or --at TIME"),
        (["--to", "12", "--yes"], 2, "belongs to one shard"),
        (["--to", "newest", "--yes"], 2, "neither TRIM_HORIZON, LATEST nor a sequence number"),
        (["--at", "yesterday", "--yes"], 2, "'yesterday' is not a time such as"),
        (["--at", "2999-01-01", "--yes"], 2, "does not lie between"),
        (["--to", "LATEST"], 2, "add --yes"),
        (["--to", "LATEST", "--shard", "shardId-9", "--yes"], 1, "no lease of shard shardId-9"),
    ],
)
def test_wrong_input_changes_nothing(world: LeaseCommands, arguments: list[str], status: int, said: str) -> None:
    world.table.put_new(Lease(FIRST, checkpoint=Checkpoint("9")))
    ended = world.kainite("reset", *arguments)
    assert (ended.exit_code, world.checkpoints()) == (status, {FIRST: "9"})
    assert said in " ".join(ended.stderr.split())


def test_a_number_that_the_shard_does_not_know_is_refused(world: LeaseCommands) -> None:
    world.table.put_new(Lease(FIRST, checkpoint=Checkpoint("9")))
    world.double.fail("GetShardIterator", "InvalidArgumentException")
    ended = world.kainite("reset", "--to", "12", "--shard", FIRST, "--yes")
    assert ended.exit_code == 1
    assert "does not have the sequence number 12" in ended.stderr
    assert world.checkpoints() == {FIRST: "9"}
