"""``kainite leases`` and ``kainite leases reset``, called as from a shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kainite.base.checkpoint import SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.cli.main import main
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from support.kinesis_double import KinesisDouble
from support.names import unique

FIRST, SECOND = "shardId-000000000000", "shardId-000000000001"
LIMIT = 30.0


@pytest.fixture
def table(dynamodb: Any) -> LeaseTable:
    table = LeaseTable(dynamodb, unique("leases"))
    table.create()
    return table


@pytest.fixture
def double() -> Iterator[KinesisDouble]:
    double = KinesisDouble(shards=2)
    yield double
    double.close()


@dataclass
class World:
    properties: Path
    table: LeaseTable
    double: KinesisDouble

    def kainite(self, *arguments: str, answer: str | None = None) -> Result:
        return CliRunner().invoke(main, ["leases", *arguments, "-p", str(self.properties)], input=answer)

    def hold(self, shard: str, checkpoint: Checkpoint = TRIM_HORIZON) -> Lease:
        """Returns the shard's lease, taken by worker ``w``."""
        self.table.put_new(Lease(shard))
        lease = self.table.get(shard)
        assert lease is not None
        taken = self.table.take(lease, "w")
        assert taken is not None
        stored = self.table.checkpoint(taken, checkpoint)
        assert stored is not None
        return stored

    @contextmanager
    def renewing(self, lease: Lease) -> Iterator[None]:
        """Raises the counter again and again, as the lease's worker would."""
        ended = threading.Event()

        def renew() -> None:
            held: Lease | None = lease
            while held is not None and not ended.wait(0.05):
                held = self.table.renew(held)

        thread = threading.Thread(target=renew)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(LIMIT)

    def checkpoints(self) -> dict[str, str]:
        return {lease.key: str(lease.checkpoint) for lease in self.table.scan()}


@pytest.fixture
def world(table: LeaseTable, double: KinesisDouble, moto_endpoint: str, tmp_path: Path) -> World:
    properties = tmp_path / "app.properties"
    properties.write_text(
        f"executableName=true\nstreamName=orders\napplicationName={table.name}\nregionName=us-east-1\n"
        f"dynamoDBEndpoint={moto_endpoint}\nkinesisEndpoint={double.endpoint}\nfailoverTimeMillis=1000\n"
    )
    return World(properties, table, double)


def test_the_living_are_told_from_the_dead_by_two_looks(world: World) -> None:
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


def test_the_table_shows_the_lag_and_a_summary(world: World) -> None:
    numbers = [world.double.put(b"x", shard=FIRST) for _ in range(4)]
    world.hold(FIRST, Checkpoint(str(numbers[0]), 5))
    shown = world.kainite("show", "--lag", "--wait", "0").stdout
    assert "3000 ms" in shown
    assert f"…{str(numbers[0])[-14:]}.5" in shown
    assert "1 lease; 1 worker: w 1" in shown


def test_without_a_table_one_line_says_so(world: World) -> None:
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
def test_watching_goes_on_until_it_is_interrupted(world: World, form: list[str]) -> None:
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


def test_a_reset_is_asked_about_and_says_what_changed(world: World) -> None:
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
    world: World, monkeypatch: pytest.MonkeyPatch, answer: str, after: str
) -> None:
    world.table.put_new(Lease(FIRST, checkpoint=Checkpoint("9")))
    monkeypatch.setattr("kainite.cli.leases_reset.interactive", lambda: True)
    ended = world.kainite("reset", "--to", "LATEST", "--shard", FIRST, answer=answer)
    assert ended.exit_code == (0 if after == "LATEST" else 1)
    assert world.checkpoints() == {FIRST: after}


def test_a_time_becomes_the_last_record_before_it(world: World) -> None:
    numbers = [world.double.put(b"x", shard=FIRST) for _ in range(3)]
    for place, record in enumerate(world.double.shards[FIRST].records):
        record["ApproximateArrivalTimestamp"] = 1_760_000_000.0 + place
    world.table.put_new(Lease(FIRST, checkpoint=Checkpoint(str(numbers[2]))))
    world.table.put_new(Lease(SECOND, checkpoint=SHARD_END))
    ended = world.kainite("reset", "--at", "2025-10-09T08:53:21Z", "--yes")
    assert ended.exit_code == 0, ended.output
    assert world.checkpoints() == {FIRST: str(numbers[0]), SECOND: "SHARD_END"}


def test_a_live_workers_lease_is_reset_only_by_force(world: World) -> None:
    with world.renewing(world.hold(FIRST, Checkpoint("9"))):
        refused = world.kainite("reset", "--to", "TRIM_HORIZON", "--shard", FIRST, "--yes")
        assert refused.exit_code == 1
        assert "1 of these leases are renewed by w: stop the workers first" in refused.stderr
        assert world.checkpoints() == {FIRST: "9"}
        assert world.kainite("reset", "--to", "TRIM_HORIZON", "--shard", FIRST, "--yes", "--force").exit_code == 0
    assert world.checkpoints() == {FIRST: "TRIM_HORIZON"}


def test_with_units_of_work_it_says_what_the_log_remembers(world: World) -> None:
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
def test_wrong_input_changes_nothing(world: World, arguments: list[str], status: int, said: str) -> None:
    world.table.put_new(Lease(FIRST, checkpoint=Checkpoint("9")))
    ended = world.kainite("reset", *arguments)
    assert (ended.exit_code, world.checkpoints()) == (status, {FIRST: "9"})
    assert said in " ".join(ended.stderr.split())


def test_a_number_that_the_shard_does_not_know_is_refused(world: World) -> None:
    world.table.put_new(Lease(FIRST, checkpoint=Checkpoint("9")))
    world.double.fail("GetShardIterator", "InvalidArgumentException")
    ended = world.kainite("reset", "--to", "12", "--shard", FIRST, "--yes")
    assert ended.exit_code == 1
    assert "does not have the sequence number 12" in ended.stderr
    assert world.checkpoints() == {FIRST: "9"}
