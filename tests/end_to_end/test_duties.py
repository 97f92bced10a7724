"""Duties of real daemons that are killed, stand still and end: each duty's program runs at one place, and runs again.

The programs write down when they run (``tests/children/duty.py``), by the boot clock that all processes here share.
"""

from __future__ import annotations

import itertools
import json
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest

from kainite.base.errors import FleetError
from kainite.fleet.model.records import Picture, Subject, Work
from kainite.fleet.model.states import DutyStatus
from kainite.fleet.operator import Operator
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from support.dynamodb_local import dynamodb_local
from support.fleet_world import PUT_EVERY, Daemon, Fleet, fleet
from support.names import unique
from support.waiting import eventually

CHILD = Path(__file__).parents[1] / "children" / "duty.py"
LIMIT_S = 90.0
MOST_MEMORY = 250 << 20
SLACK_S = 0.3
"""Two programs whose runs touch may have written their last and first lines in either order on a loaded machine."""

pytestmark = pytest.mark.timeout(300)


@dataclass
class DutyFleet:
    """Daemons with duties, and where their programs write."""

    world: Fleet
    store: DynamoDBFleetStore
    folder: Path

    def picture(self) -> Picture:
        try:
            return self.store.read()
        except FleetError:  # before the first daemon has made the table
            return Picture()

    def holder(self, duty: str) -> str:
        found = self.picture().duties.get(duty)
        return found.worker if found is not None and found.status is DutyStatus.RUNNING else ""

    def daemon(self, name: str) -> Daemon:
        return next(daemon for daemon in self.world.daemons if daemon.worker == name)

    def leader(self) -> str:
        lead = self.picture().lead
        return lead.worker if lead is not None else ""

    def wait(self, condition: Callable[[], object]) -> None:
        eventually(condition, LIMIT_S)

    def runs(self, duty: str) -> dict[int, tuple[float, float]]:
        """Returns the first and the last time at which each process of a duty's program ran."""
        found: dict[int, tuple[float, float]] = {}
        path = self.folder / duty
        for line in path.read_text().splitlines() if path.exists() else ():
            _, pid, at = line.split()
            first, last = found.get(int(pid), (float(at), float(at)))
            found[int(pid)] = (min(first, float(at)), max(last, float(at)))
        return found

    def overlap(self, duty: str) -> float:
        """Returns for how long at most two processes of one duty ran side by side."""
        spans = sorted(self.runs(duty).values())
        return max((before[1] - after[0] for before, after in itertools.pairwise(spans)), default=0.0)

    def spread_of(self, names: list[str], workers: str) -> dict[str, int]:
        """Waits until all duties run at these workers; returns how many each of them has."""

        def held() -> list[str]:
            duties = self.picture().duties
            running = [duties[name] for name in names if duties[name].status is DutyStatus.RUNNING]
            return [duty.worker for duty in running]

        self.wait(lambda: len(held()) == len(names) and {*held()} <= {*workers})
        return dict(Counter(held()))

    def processor_time(self, worker: str) -> float:
        used = psutil.Process(self.daemon(worker).process.pid).cpu_times()
        return float(used.user + used.system)

    def kainite(self, *arguments: str) -> str:
        path = self.world.folder / f"{self.world.daemons[0].worker}.properties"
        command = [sys.executable, "-m", "kainite", "fleet", arguments[0], "-p", str(path), *arguments[1:]]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout


@contextmanager
def duties(
    kinesis: Any,
    dynamodb: Any,
    endpoint: str,
    folder: Path,
    names: list[str],
    *arguments: str,
    more: str = "",
    **settings: str,
) -> Iterator[DutyFleet]:
    written = folder / "written"
    written.mkdir()
    words = [[sys.executable, str(CHILD), str(written / name), *arguments] for name in names]
    tables = (
        f"[{name}]\ncommand = {json.dumps(command)}\nreadyAfter = 0.1\nbackoff = 0.1\nstopGrace = 1\n{more}\n"
        for name, command in zip(names, words, strict=True)
    )
    path = folder / "duties.toml"
    path.write_text("".join(tables))
    name = unique("duties")
    all_settings = {
        "fleet": "true", "fleetDutiesFile": str(path), "fleetPingTimeoutMillis": "1500",
        **settings,
    }  # fmt: skip
    opened = fleet(kinesis, dynamodb, endpoint, name, folder, shards=1, failover=5.0, **all_settings)
    with opened as world:
        yield DutyFleet(world, DynamoDBFleetStore(dynamodb, f"{name}-Fleet"), written)


def test_daemons_die_and_their_duties_go_on_once_each(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    names = ["one", "two", "three"]
    with duties(kinesis, dynamodb, moto_endpoint, tmp_path, names) as fleet_:
        for worker in ("a", "b", "c"):
            fleet_.world.join(worker)
        fleet_.wait(lambda: all(map(fleet_.holder, names)))
        # The leader, then a worker that has a duty: the last one has them all.
        leader = fleet_.leader()
        fleet_.daemon(leader).kill()
        fleet_.wait(lambda: all(fleet_.holder(name) not in ("", leader) for name in names))
        second = next(worker for worker in ("a", "b", "c") if worker != leader and worker == fleet_.holder("one"))
        fleet_.daemon(second).kill()
        fleet_.wait(lambda: all(fleet_.holder(name) not in ("", leader, second) for name in names))
        assert {name: fleet_.overlap(name) > SLACK_S for name in names} == dict.fromkeys(names, False)


@pytest.mark.long
def test_the_leader_and_a_worker_die_at_the_same_instant(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    names = ["one", "two", "three"]
    with duties(kinesis, dynamodb, moto_endpoint, tmp_path, names) as fleet_:
        workers = ("a", "b", "c")
        for worker in workers:
            fleet_.world.join(worker)
        fleet_.wait(lambda: len(fleet_.picture().workers) == 3 and all(map(fleet_.holder, names)))
        fleet_.kainite("rebalance", "--yes")  # the worker that came first may have all duties
        fleet_.wait(lambda: set(map(fleet_.holder, names)) == set(workers))
        leader = fleet_.leader()
        dead = [leader, next(worker for worker in workers if worker != leader)]
        (left,) = set(workers) - set(dead)
        kill_together([fleet_.daemon(worker) for worker in dead])
        fleet_.wait(lambda: fleet_.leader() == left and all(fleet_.holder(name) == left for name in names))
        assert {name: fleet_.overlap(name) > SLACK_S for name in names} == dict.fromkeys(names, False)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_hundred_duties_on_five_workers_go_on_once_each(kinesis: Any, moto_endpoint: str, tmp_path: Path) -> None:
    # Each program holds a lock of the system while it runs: one that is started beside another ends with status 9.
    workers, names = "abcde", [f"duty-{number}" for number in range(100)]
    with dynamodb_local() as endpoint:
        table = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1")
        lock = ("flock", "--nonblock", "--conflict-exit-code=9")
        commands = {name: (*lock, str(tmp_path / name), "sleep", "100000") for name in names}
        settings = {
            "fleetPingTimeoutMillis": "8000", "dynamoDBEndpoint": endpoint,
            "fleetCommands": ", ".join(map(shlex.join, commands.values())),
        }  # fmt: skip
        with duties(kinesis, table, moto_endpoint, tmp_path, [], **settings) as fleet_:
            for worker in workers:
                fleet_.world.join(worker)
            fleet_.wait(lambda: len(fleet_.picture().workers) == len(workers))
            operator = Operator(fleet_.store, "a test")
            began = time.monotonic()
            for name, command in commands.items():
                operator.add(name, Work(command=command, ready_after=0.1, stop_grace=1.0))
            before = fleet_.spread_of(names, workers)
            placed = time.monotonic() - began
            assert max(before.values()) - min(before.values()) <= 1
            memory = max(psutil.Process(fleet_.daemon(worker).process.pid).memory_info().rss for worker in workers)
            assert memory < MOST_MEMORY
            began = time.monotonic()
            fleet_.daemon("c").kill()
            after = fleet_.spread_of(names, workers.replace("c", ""))
            moved = time.monotonic() - began
            assert max(after.values()) - min(after.values()) <= 1
            used = sum(fleet_.processor_time(worker) for worker in after)
            fleet_.world.pass_time(200)
            used = sum(fleet_.processor_time(worker) for worker in after) - used
            share = used / len(after) / (200 * PUT_EVERY)
            print(f"placed in {placed:.1f} s, moved in {moved:.1f} s")
            print(f"a daemon: {memory >> 20} MiB, {share:.2f} of a core, which looks every four seconds")
            told = {line.why for name in names for line in fleet_.store.history(Subject.DUTY, name, 99)}
            assert not [why for why in told if "status 9" in why]
            fleet_.world.caught_up()


def kill_together(daemons: list[Daemon]) -> None:
    """Sends SIGKILL to daemons, one right after the other, and waits until their children have noticed."""
    families = [process for daemon in daemons for process in daemon.family()]
    for daemon in daemons:
        daemon.process.kill()
    for daemon in daemons:
        daemon.process.wait(LIMIT_S)
    _, alive = psutil.wait_procs(families, LIMIT_S)
    assert not alive, "children outlive their daemons"


def test_a_program_that_is_never_ready_is_killed_and_tried_again_until_it_is_an_error(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    more = 'ready = "what it never says"\nstartTimeout = 1.0\ntries = 2'
    with duties(kinesis, dynamodb, moto_endpoint, tmp_path, ["mute"], more=more) as fleet_:
        fleet_.world.join("a")
        fleet_.wait(lambda: "mute" in fleet_.picture().duties)
        fleet_.wait(lambda: fleet_.picture().duties["mute"].status is DutyStatus.ERROR)
        assert fleet_.picture().duties["mute"].error == "not ready within 1 s"
        seen = {line.status for line in fleet_.store.history(Subject.DUTY, "mute", 99)}
        assert DutyStatus.RUNNING not in seen
        assert len(fleet_.runs("mute")) == 2
        assert fleet_.overlap("mute") <= SLACK_S
        tried = fleet_.runs("mute")
        fleet_.world.caught_up()
        assert fleet_.runs("mute") == tried, "a program of a duty in error still runs"


@pytest.mark.parametrize("whole_host", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_daemon_that_stands_still_loses_its_duty_before_another_one_has_it(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path, whole_host: bool
) -> None:
    with duties(kinesis, dynamodb, moto_endpoint, tmp_path, ["only"]) as fleet_:
        for worker in ("a", "b"):
            fleet_.world.join(worker)
        # Running is said of a program that has not written yet: its interpreter takes longer to start than readyAfter.
        fleet_.wait(lambda: fleet_.holder("only") and fleet_.runs("only"))
        frozen = fleet_.daemon(fleet_.holder("only"))
        if whole_host:
            frozen.pause()
        else:
            frozen.process.send_signal(signal.SIGSTOP)
        fleet_.wait(lambda: fleet_.holder("only") not in ("", frozen.worker))
        if whole_host:
            frozen.wake()
        else:
            frozen.process.send_signal(signal.SIGCONT)
        fleet_.wait(lambda: str(fleet_.picture().workers[frozen.worker].status) == "alive")
        assert fleet_.holder("only") != frozen.worker
        # A host that stood still with its guards goes on for a moment: what its program writes to must fence it.
        fleet_.wait(lambda: len(fleet_.runs("only")) == 2)
        assert fleet_.overlap("only") <= (LIMIT_S if whole_host else SLACK_S)


def test_an_operator_steers_and_a_program_that_dies_tells_why(
    kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    bad = f"{sys.executable} {CHILD} {tmp_path / 'written' / 'bad'} --die 3"
    with duties(kinesis, dynamodb, moto_endpoint, tmp_path, ["good"], fleetCommands=bad) as fleet_:
        for worker in ("a", "b"):
            fleet_.world.join(worker)
        fleet_.wait(lambda: fleet_.holder("good"))
        fleet_.kainite("stop", "good", "--yes")
        fleet_.wait(lambda: fleet_.picture().duties["good"].status is DutyStatus.STOPPED)
        fleet_.kainite("start", "good")
        fleet_.wait(lambda: fleet_.holder("good"))
        goal = "b" if fleet_.holder("good") == "a" else "a"
        fleet_.kainite("move", "good", goal, "--yes")
        fleet_.wait(lambda: fleet_.holder("good") == goal)
        fleet_.kainite("add", "bad", "--command", bad, "--restart", "never")
        fleet_.wait(lambda: fleet_.picture().duties["bad"].status is DutyStatus.ERROR)
        rows = {row["duty"]: row for row in json.loads(fleet_.kainite("duties", "--json"))}
        assert rows["bad"]["error"] == "it ended with status 3\nwhy it died"
        assert rows["good"]["status"] == "running"
        assert "an operator: stopped" in fleet_.kainite("history", "duty", "good")
        fleet_.kainite("shut-down", goal, "--yes")
        fleet_.wait(lambda: fleet_.holder("good") not in ("", goal))
        assert fleet_.daemon(goal).process.wait(LIMIT_S) == 0
        assert fleet_.overlap("good") <= SLACK_S
        fleet_.world.caught_up()
