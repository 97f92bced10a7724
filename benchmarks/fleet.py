"""Measures the fleet's duties: from a worker's SIGKILL to its duty running elsewhere, and what an idle fleet costs.

*Cost.* Workers look at a table in memory for an hour of their own clock; each commit and read is counted as DynamoDB
bills it: 1 KB a write unit, twice that in a transaction, 4 KB a read unit. *Failover.* Real ``kainite run`` on moto
with the fleet's default times: the worker that has the duty is killed with SIGKILL, again and again; the time ends
when the record says that the duty runs elsewhere. Without ``--kills`` the same is measured on the workers' own clock:
the protocol's part of it, at random phases of the workers.

qtopology's own numbers: a new leader after 34 s (two coordinators), a dead worker's topologies after its 30 s of
silence.

``python benchmarks/fleet.py [--kills N] [--json]``
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from kainite.base.errors import FleetError
from kainite.duties.model.records import Duty, Picture, Record, Work
from kainite.duties.model.states import DutyStatus
from kainite.duties.steps.timing import Timing
from kainite.duties.store.contract import Commit
from kainite.duties.store.dynamodb import DynamoDBFleetStore
from kainite.duties.store.items import key_of, text_of
from kainite.duties.store.memory import MemoryFleetStore
from kainite_demo.services import moto

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))  # workers are stepped and started as the tests do

from support import duty_fleet  # noqa: E402
from support.duty_fleet import SimFleet, SimWorker  # noqa: E402
from support.fleet_world import fleet  # noqa: E402

WRITE_UNIT, READ_UNIT = 1_024, 4_096
DOLLARS_A_WRITE, DOLLARS_A_READ = 0.625e-6, 0.125e-6
"""On demand, us-east-1."""
HOUR_S, TICK_S = 3_600.0, 0.1
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

    def commit(self, commit: Commit) -> bool:
        sizes = [len(text_of(change.record)) + 60 for change in commit.changes]
        sizes += [len(text_of(event)) + 60 for event in commit.events]
        once = len(sizes) == 1 and commit.led is None
        self.written += sum(-(-size // WRITE_UNIT) for size in sizes) * (1 if once else 2)
        return super().commit(commit)


@dataclass(frozen=True, slots=True)
class Cost:
    """What an idle fleet costs."""

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
        duty_fleet.TIMING = Timing()
        self.random = random.Random(seed)
        self.store = BilledStore()
        self.fleet = SimFleet(store=self.store)
        self.due: dict[str, float] = {}
        for number in range(workers):
            self.join(f"worker-{number}")
        self.run(60.0)

    def join(self, name: str) -> None:
        self.fleet.worker(name, DUTIES)
        self.due[name] = self.fleet.clock.now + self.random.uniform(0, Timing().ping)

    def run(self, seconds: float) -> None:
        end = self.fleet.clock.now + seconds
        while self.fleet.clock.now < end:
            self.tick()

    def tick(self) -> None:
        now = self.fleet.clock.now
        for worker in self.fleet.living():
            if now >= self.due[worker.name]:
                self.due[worker.name] = now + (TICK_S if self.changed_by(worker) else Timing().ping)
        self.fleet.begin_all()
        self.fleet.clock.now += TICK_S

    def changed_by(self, worker: SimWorker) -> bool:
        """Lets a worker look; returns whether that changed more than a sign of life."""
        before = self.store.written
        worker.look()
        return self.store.written - before > 1

    def failover(self) -> float:
        """Kills the worker of a duty; returns the seconds until it runs elsewhere."""
        duty = self.fleet.duty("apply")
        self.run(self.random.uniform(0, 2 * Timing().ping))
        victim = next(worker for worker in self.fleet.living() if worker.name == duty.worker)
        victim.crash()
        died = self.fleet.clock.now
        while not self.fleet.running("apply") or self.fleet.duty("apply").status is not DutyStatus.RUNNING:
            self.tick()
        took = self.fleet.clock.now - died
        self.join(f"{victim.name}+")
        self.run(30.0)
        return took


def cost_of(workers: int) -> Cost:
    """Returns what an idle fleet of so many workers costs."""
    virtual = Virtual(workers, seed=1)
    virtual.store.written = virtual.store.read_units = 0
    virtual.run(HOUR_S)
    return Cost(workers, virtual.store.written, virtual.store.read_units)


def real_failovers(kills: int, folder: Path) -> list[float]:
    """Kills real daemons; returns the seconds until the duty ran elsewhere, each time."""
    with moto(folder / "moto.log") as server:
        endpoint = server()
        kinesis = boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1")
        dynamodb = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1")
        path = folder / "duties.toml"
        path.write_text('[only]\ncommand = ["sleep", "100000"]\nreadyAfter = 0.1\n')
        more = {"fleet": "true", "fleetDutiesFile": str(path)}
        name = "fleet-benchmark"
        with fleet(kinesis, dynamodb, endpoint, name, folder, shards=1, failover=10.0, **more) as world:
            store = DynamoDBFleetStore(dynamodb, f"{name}-Fleet")
            names = (f"worker-{number}" for number in itertools.count())
            for _ in range(3):
                world.join(next(names))
            return [_killed_once(world, store, next(names)) for _ in range(kills)]


def _killed_once(world: Any, store: DynamoDBFleetStore, successor: str) -> float:
    def picture() -> Picture:
        try:
            return store.read()
        except FleetError:  # before the first daemon has made the table
            return Picture()

    def holder() -> str:
        duty = picture().duties.get("only")
        return duty.worker if duty is not None and duty.status is DutyStatus.RUNNING else ""

    world.eventually(lambda: holder() and len(picture().workers) >= 3, "the duty does not run")
    victim = holder()
    daemon = next(each for each in world.daemons if each.worker == victim)
    daemon.kill()
    died = time.monotonic()
    world.eventually(lambda: holder() not in ("", victim), "the duty does not run elsewhere")
    took = time.monotonic() - died
    world.join(successor)
    return took


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=0, help="Kills of real daemons; 0: on the workers' own clock.")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    costs = [cost_of(workers) for workers in (3, 30)]
    if given.kills:
        with tempfile.TemporaryDirectory() as folder:
            took = real_failovers(given.kills, Path(folder))
    else:
        took = [Virtual(3, seed).failover() for seed in range(50)]
    quantiles = statistics.quantiles(took, n=100, method="inclusive") if len(took) > 1 else took * 99
    result = {
        "failover_s": {"kills": len(took), "p50": round(quantiles[49], 1), "p99": round(quantiles[98], 1)},
        "idle": [
            {
                "workers": cost.workers,
                "write_units_an_hour": cost.write_units_an_hour,
                "read_units_an_hour": cost.read_units_an_hour,
                "cents_a_day": round(cost.cents_a_day, 1),
            }
            for cost in costs
        ],
    }
    print(json.dumps(result) if given.json else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
