"""Measures the fleet's duties: from a SIGKILL to the duty running elsewhere, and what an idle fleet costs.

*Cost.* Workers look at a table in memory for ten minutes of their own clock; each commit and read is counted as
DynamoDB bills it: 1 KB a write unit, twice that in a transaction, 4 KB a read unit. *Failover.* The protocol's part of
a failover is measured on the workers' own clock, at random phases of the workers. ``failover_s`` ends when the record
says that the duty runs elsewhere, a second after its program was started; ``leader_s`` ends when another worker leads.
With ``--kills`` the workers are real ``kainite run`` on moto: the worker that has the duty is killed with SIGKILL,
again and again, at random moments; another one is started each time. Where the killed worker led, ``leader_s`` has the
time until another worker led. ``--timeout`` shortens the fleet's times for these runs.

qtopology's own numbers: a new leader after 34 s (two coordinators), a dead worker's topologies after its 30 s of
silence.

``python benchmarks/fleet.py [--kills N [--timeout SECONDS]] [--json]``
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from runs.machine import warn_unless_quiet

from kainite.base.errors import FleetError
from kainite.fleet.model.records import Duty, Picture, Record, Work
from kainite.fleet.model.states import DutyStatus, WorkerStatus
from kainite.fleet.steps.timing import Timing
from kainite.fleet.store.contract import FleetCommit
from kainite.fleet.store.dynamodb import DynamoDBFleetStore
from kainite.fleet.store.items import key_of, text_of
from kainite.fleet.store.memory import MemoryFleetStore
from kainite.leases.table.lease_table import LeaseTable
from kainite_demo.services import moto

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))  # workers are stepped and started as the tests do

from support.duty_fleet import PacedFleet  # noqa: E402
from support.fleet_world import Fleet  # noqa: E402

WRITE_UNIT, READ_UNIT = 1_024, 4_096
DOLLARS_A_WRITE, DOLLARS_A_READ = 0.625e-6, 0.125e-6
"""On demand, us-east-1."""
PERIOD_S, PERIODS = 600.0, 6
WORKERS, LIMIT_S = 3, 90.0
DUTIES = tuple(Duty(name, Work("program", ("true",))) for name in ("log", "extract", "apply"))


class BilledStore(MemoryFleetStore):
    """Counts what DynamoDB would bill."""

    def __init__(self) -> None:
        super().__init__()
        self.written = self.read_units = 0

    def read(self) -> Picture:
        picture = super().read()
        records: list[Record] = [*picture.workers.values(), *picture.duties.values(), *picture.messages]
        size = sum(len(text_of(record)) + len(key_of(record)) + 40 for record in records) + 100
        self.read_units += -(-size // READ_UNIT)
        return picture

    def commit(self, commit: FleetCommit) -> bool:
        sizes = [len(text_of(change.record)) + 60 for change in commit.changes]
        sizes += [len(text_of(event)) + 60 for event in commit.events]
        once = len(sizes) == 1 and commit.led is None
        self.written += sum(-(-size // WRITE_UNIT) for size in sizes) * (1 if once else 2)
        return super().commit(commit)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an idle fleet."""

    workers: int
    write_units_an_hour: int
    read_units_an_hour: int

    @property
    def cents_a_day(self) -> float:
        hour = self.write_units_an_hour * DOLLARS_A_WRITE + self.read_units_an_hour * DOLLARS_A_READ
        return hour * 24 * 100


class Virtual:
    """Workers at random phases on a clock of their own, with the fleet's default times."""

    def __init__(self, workers: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.store = BilledStore()
        self.fleet = PacedFleet(Timing(), self.store)
        for number in range(workers):
            self.fleet.join(f"worker-{number}", DUTIES, self.random.uniform(0, Timing().ping))
        self.fleet.go_on(60.0)

    def failover(self) -> float:
        """Kills the worker of a duty; returns the seconds until it runs elsewhere."""
        duty = self.fleet.duty("apply")
        return self._killed(
            duty.worker,
            lambda: (
                self.fleet.duty("apply").worker != duty.worker and self.fleet.duty("apply").status is DutyStatus.RUNNING
            ),
        )

    def succession(self) -> float:
        """Kills the leader; returns the seconds until another worker leads."""
        leader = self._leader()
        return self._killed(leader, lambda: self._leader() != leader)

    def _leader(self) -> str:
        lead = self.store.read().lead
        return lead.worker if lead is not None else ""

    def _killed(self, name: str, until: Callable[[], bool]) -> float:
        self.fleet.go_on(self.random.uniform(0, 2 * Timing().ping))
        next(worker for worker in self.fleet.living() if worker.name == name).crash()
        return self.fleet.until(until, LIMIT_S)


def cost_of(workers: int) -> Cost:
    """Returns what an idle fleet of so many workers costs."""
    virtual = Virtual(workers, seed=1)
    virtual.store.written = virtual.store.read_units = 0
    virtual.fleet.go_on(PERIOD_S)
    return Cost(workers, virtual.store.written * PERIODS, virtual.store.read_units * PERIODS)


@dataclass(frozen=True, slots=True)
class Failover:
    """The times after one kill, in seconds.

    Attributes:
        duty: the time until the duty ran elsewhere.
        leader: the time until another worker led; None where the killed worker did not lead.
    """

    duty: float
    leader: float | None


def real_failovers(kills: int, timeout: float, folder: Path) -> list[Failover]:
    """Kills real daemons; returns the times after each kill."""
    with moto(folder / "moto.log") as server:
        endpoint = server()
        kinesis = boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1")
        dynamodb = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1")
        path = folder / "duties.toml"
        path.write_text('[only]\ncommand = ["sleep", "100000"]\nreadyAfter = 0.1\n')
        more = {
            "fleet": "true", "fleetDutiesFile": str(path),
            "fleetPingTimeoutMillis": f"{timeout * 1000:.0f}",
        }  # fmt: skip
        name = "fleet-benchmark"
        kinesis.create_stream(StreamName=name, ShardCount=1)
        (folder / "calls").mkdir()
        world = Fleet(kinesis, LeaseTable(dynamodb, name), endpoint, folder, 1, 10.0, more=more)
        try:
            return Killing(world, DynamoDBFleetStore(dynamodb, f"{name}-Fleet"), timeout).times(kills)
        finally:
            for daemon in world.daemons:
                daemon.end()


@dataclass(frozen=True, slots=True)
class Killing:
    """Real daemons, of which the one that has the duty is killed."""

    world: Fleet
    store: DynamoDBFleetStore
    timeout: float

    def times(self, kills: int) -> list[Failover]:
        """Kills ``kills`` times; returns the times after each kill."""
        names = (f"worker-{number}" for number in itertools.count())
        moments = random.Random(1)
        for _ in range(WORKERS):
            self.world.join(next(names))
        took = []
        for _ in range(kills):
            self._wait(self._whole, "the fleet is not whole")
            time.sleep(moments.uniform(0, self.timeout))
            took.append(self._killed_once())
            self.world.join(next(names))
            print(f"{len(took)} of {kills}: {took[-1]}", file=sys.stderr)
        return took

    def _killed_once(self) -> Failover:
        victim, led = self._holder(), self._leader()
        daemon = next(each for each in self.world.daemons if each.worker == victim)
        died = time.monotonic()
        daemon.kill()
        leader = None
        if led == victim:
            self._wait(lambda: self._leader() not in ("", victim), "nobody else leads")
            leader = time.monotonic() - died
        self._wait(lambda: self._holder() not in ("", victim), "the duty does not run elsewhere")
        return Failover(time.monotonic() - died, leader)

    def _whole(self) -> bool:
        alive = [worker for worker in self._picture().workers.values() if worker.status is WorkerStatus.ALIVE]
        return bool(self._holder()) and len(alive) == WORKERS

    def _leader(self) -> str:
        lead = self._picture().lead
        return lead.worker if lead is not None else ""

    def _holder(self) -> str:
        duty = self._picture().duties.get("only")
        return duty.worker if duty is not None and duty.status is DutyStatus.RUNNING else ""

    def _picture(self) -> Picture:
        try:
            return self.store.read()
        except FleetError:  # before the first daemon has made the table
            return Picture()

    def _wait(self, condition: Callable[[], bool], otherwise: str) -> None:
        end = time.monotonic() + LIMIT_S + 4 * self.timeout
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"{otherwise}: {self._picture()}")
            time.sleep(0.05)


def spread(took: list[float]) -> dict[str, float]:
    """Returns the quantiles of some times."""
    quantiles = statistics.quantiles(took, n=100, method="inclusive") if len(took) > 1 else took * 99
    return {
        "kills": len(took),
        "p50": round(quantiles[49], 1),
        "p99": round(quantiles[98], 1),
        "most": round(max(took), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=0, help="Kills of real daemons; 0: on the workers' own clock.")
    parser.add_argument(
        "--timeout", type=float, default=Timing().timeout, help="The real fleet's ping time-out, seconds."
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warn_unless_quiet()
    result: dict[str, Any]
    if given.kills:
        os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_DEFAULT_REGION="us-east-1")
        with tempfile.TemporaryDirectory() as folder:
            took = real_failovers(given.kills, given.timeout, Path(folder))
        led = [each.leader for each in took if each.leader is not None]
        result = {"failover_s": spread([each.duty for each in took]), "leader_s": spread(led) if led else None}
    else:
        result = {
            "failover_s": spread([Virtual(3, seed).failover() for seed in range(50)]),
            "leader_s": spread([Virtual(3, seed).succession() for seed in range(50)]),
            "idle": [as_row(cost_of(workers)) for workers in (3, 30)],
        }
    print(json.dumps(result) if given.json else json.dumps(result, indent=2))


def as_row(cost: Cost) -> dict[str, float]:
    """Returns a cost as the report's text has it."""
    return {
        "workers": cost.workers,
        "write_units_an_hour": cost.write_units_an_hour,
        "read_units_an_hour": cost.read_units_an_hour,
        "cents_a_day": round(cost.cents_a_day, 1),
    }


if __name__ == "__main__":
    main()
