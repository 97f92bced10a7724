"""``kainite leases``, called as from a shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from kainite.base.checkpoint import Checkpoint
from kainite.owner.mount import mount
from kainite.store.dynamodb import DynamoDBStore
from support.lease_commands import LIMIT, LeaseCommands
from support.names import unique

FIRST, SECOND = "shardId-000000000000", "shardId-000000000001"


def test_the_living_are_told_from_the_dead_by_two_looks(world: LeaseCommands) -> None:
    world.hold(FIRST)
    with world.renewing(world.hold(SECOND, Checkpoint("77", 3))):
        ended = world.kainite("--json", "--wait", "2")
    assert ended.exit_code == 0, ended.output
    document = json.loads(ended.stdout)
    assert document["workers"] == {"w": 2}
    dead, alive = document["leases"]
    assert (dead["shard"], dead["pulse"], dead["state"]) == (FIRST, "expired", "expired")
    assert (alive["shard"], alive["pulse"], alive["state"]) == (SECOND, "fresh", "being read")
    assert (alive["checkpoint"], alive["sub"], alive["lag_millis"]) == ("77", 3, None)


def test_the_table_shows_the_lag_and_a_summary(world: LeaseCommands) -> None:
    numbers = [world.double.put(b"x", shard=FIRST) for _ in range(4)]
    world.hold(FIRST, Checkpoint(str(numbers[0]), 5))
    shown = world.kainite("show", "--lag", "--wait", "0").stdout
    assert "3000 ms" in shown
    assert f"…{str(numbers[0])[-14:]}.5" in shown
    assert "1 lease; 1 worker: w 1" in shown


def test_the_worker_that_owns_the_log_is_told(world: LeaseCommands, dynamodb: Any) -> None:
    world.hold(FIRST)
    log = unique("log")
    world.properties.write_text(world.properties.read_text() + f"\nunitsOfWork = true\nlogTableName = {log}\n")
    unknown = world.kainite("--json", "--wait", "0")
    assert json.loads(unknown.stdout)["log_owner"] is None
    assert "the log's owner is not known" in unknown.stderr
    store = DynamoDBStore(dynamodb, log)
    store.create()
    assert json.loads(world.kainite("--json", "--wait", "0").stdout)["log_owner"] is None
    owned = mount(store, "0", "w", 10.0)
    assert json.loads(world.kainite("--json", "--wait", "0").stdout)["log_owner"] == "w"
    assert "the log is owned by w" in world.kainite("show", "--wait", "0").stdout
    owned.release()
    assert "the log is owned" not in world.kainite("show", "--wait", "0").stdout


def test_without_a_table_one_line_says_so(world: LeaseCommands) -> None:
    properties = world.properties.read_text().replace(world.table.name, "nobody")
    world.properties.write_text(properties)
    for arguments in (["show"], ["reset", "--to", "LATEST", "--yes"]):
        ended = world.kainite(*arguments)
        assert ended.exit_code == 1
        assert ended.stderr.count("\n") == 1
        assert "lease table 'nobody' does not exist" in ended.stderr


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("form", [["--json"], []])
def test_watching_goes_on_until_it_is_interrupted(world: LeaseCommands, form: list[str]) -> None:
    world.hold(FIRST)
    command = [sys.executable, "-m", "kainite", "leases", "--watch", "0.1", "-p", str(world.properties), *form]
    # A test run in the background ignores SIGINT, and so would its children.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ}, preexec_fn=_heed_interrupts
    ) as process:
        assert process.stdout is not None
        try:
            rounds = 0
            while rounds < 3:
                line = process.stdout.readline()
                assert line, "it ended by itself"
                rounds += "workers" in json.loads(line) if form else line.startswith("1 lease; 1 worker")
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == 130
        finally:
            process.kill()
