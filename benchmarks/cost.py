"""Counts what a worker asks of AWS for a shard and hour: requests, and DynamoDB's capacity units.

``kainite run`` runs as in production, on one host and as a fleet of hosts, with the default intervals. Its DynamoDB is
DynamoDB Local behind a proxy that asks for the consumed capacity of each request, as DynamoDB bills it; Kinesis is a
double in this process. *idle*: no records come. *busy*: records come all the time, and the children checkpoint each
batch. Beside the plain worker stand one with units of work, which owns its log, one with a fleet for duties, and one
with both (*all*); with ``--java`` the real KCL 3.1.3 does the plain work, as a worker of 2.x (its Kinesis is
kinesis-local). Run it after ``make peers``.

A round of the workers takes up to 20 s (Java's), so ``--seconds`` below 60 counts too few rounds or too many.

    python benchmarks/cost.py [--seconds N] [--shards N] [--hosts N ...] [--kinds plain log fleet all] [--java] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import boto3
import javaproperties
from cost_parts.counting_proxy import CountingProxy, Counts

sys.path.insert(
    0, str(Path(__file__).parents[1] / "tests")
)  # Kinesis is played, and peers are started, as in the tests

from runs.machine import warn_unless_quiet

from support.dynamodb_local import dynamodb_local
from support.java_kcl import AS_2X, Application
from support.kinesis_double import KinesisDouble
from support.kinesis_local import client_of, kinesis_local

CHILD = Path(__file__).parents[1] / "tests" / "children" / "scripted.py"
CHECKPOINTS = json.dumps({"processRecords": ["checkpoint last", "status"]})
SETTLE_LIMIT_S = 240.0
KINDS = {
    "plain": {},
    "log": {"unitsOfWork": "true"},
    "fleet": {"fleet": "true"},
    "all": {"unitsOfWork": "true", "fleet": "true"},
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one kind of worker asked for in a while.

    Attributes:
        kind: the kind of worker.
        hosts, shards: how many there were.
        busy: whether records came.
        seconds: for how long it was counted.
        requests: how often each call of DynamoDB was made.
        kinesis: how often each call of Kinesis was made; empty where it was not counted.
        write_units, read_units: DynamoDB's capacity units.
    """

    kind: str
    hosts: int
    shards: int
    busy: bool
    seconds: float
    requests: dict[str, int]
    kinesis: dict[str, int]
    write_units: float
    read_units: float

    def per_shard_hour(self, figure: float) -> float:
        return figure * 3600 / self.seconds / self.shards


class Feeder:
    """Puts a record on each shard ten times a second while it is on."""

    def __init__(self, double: KinesisDouble) -> None:
        self._double = double
        self._on = threading.Event()
        self._ended = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    @contextmanager
    def feeding(self) -> Iterator[None]:
        self._on.set()
        yield
        self._on.clear()

    def close(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            if self._on.is_set():
                for shard in self._double.shards:
                    self._double.put(b"record", shard=shard)


def settings(application: str, worker: int, kinesis: str, dynamodb: str, kind: str) -> str:
    """Returns a worker's settings file: everything that is not said is the default."""
    return javaproperties.dumps(
        {
            "applicationName": application,
            "streamName": application,
            "workerId": f"host-{worker}",
            "executableName": shlex.join([sys.executable, "-S", "-E", str(CHILD), CHECKPOINTS]),
            "regionName": "us-east-1",
            "kinesisEndpoint": kinesis,
            "dynamoDBEndpoint": dynamodb,
            "initialPositionInStream": "TRIM_HORIZON",
            **KINDS[kind],
        }
    )


@contextmanager
def workers(folder: Path, hosts: int, file: Callable[[int], str]) -> Iterator[None]:
    """Runs ``kainite run`` on so many hosts, all of them here."""
    with ExitStack() as stack:
        processes = []
        for number in range(hosts):
            path = folder / f"host-{number}.properties"
            path.write_text(file(number))
            log = stack.enter_context((folder / f"host-{number}.log").open("wb"))
            command = [sys.executable, "-m", "kainite", "run", "-p", str(path)]
            processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        try:
            yield
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(60)


def await_shares(dynamodb: Any, table: str, shards: int, hosts: int) -> None:
    """Waits until each host has its part of the leases."""
    end = time.monotonic() + SETTLE_LIMIT_S
    most = -(-shards // hosts)
    while time.monotonic() < end:
        try:
            items = dynamodb.scan(TableName=table)["Items"]
        except dynamodb.exceptions.ResourceNotFoundException:
            items = []
        owners = Counter(item["leaseOwner"]["S"] for item in items if "leaseOwner" in item)
        if owners.total() == shards and max(owners.values()) <= most:
            return
        time.sleep(0.5)
    raise SystemExit(f"the leases were not shared within {SETTLE_LIMIT_S:g} s: {owners}")


def measure(kind: str, hosts: int, shards: int, seconds: float) -> list[Cost]:
    """Counts an idle and a busy application."""
    application = f"cost-{kind}-{hosts}"
    with tempfile.TemporaryDirectory(prefix="kainite-bench-") as root, dynamodb_local() as local:
        proxy, double = CountingProxy(local), KinesisDouble(shards=shards)
        feeder = Feeder(double)
        dynamodb = boto3.client("dynamodb", endpoint_url=local, region_name="us-east-1")
        try:
            file = lambda number: settings(application, number, double.endpoint, proxy.endpoint, kind)  # noqa: E731
            with workers(Path(root), hosts, file):
                await_shares(dynamodb, application, shards, hosts)
                idle = counted(proxy, double, seconds)
                with feeder.feeding():
                    time.sleep(3)  # the first checkpoints
                    busy = counted(proxy, double, seconds)
            return [cost(kind, hosts, shards, state, seconds, found) for state, found in ((False, idle), (True, busy))]
        finally:
            feeder.close()
            dynamodb.close()
            double.close()
            proxy.close()


def measure_java(shards: int, seconds: float) -> list[Cost]:
    """Counts Amazon's daemon, idle."""
    with (
        tempfile.TemporaryDirectory(prefix="kainite-bench-") as root,
        dynamodb_local() as local,
        kinesis_local() as stream,
    ):
        proxy = CountingProxy(local)
        dynamodb = boto3.client("dynamodb", endpoint_url=local, region_name="us-east-1")
        keys = {
            **AS_2X,
            "executableName": shlex.join([sys.executable, "-S", "-E", str(CHILD), "{}"]),
            "failoverTimeMillis": "10000",
            "leaseAssignmentIntervalMillis": "20000",
            "idleTimeBetweenReadsInMillis": "1500",
        }
        app = Application(client_of(stream), dynamodb, stream, proxy.endpoint, Path(root), shards, keys)
        try:
            with app.java("java"):
                await_shares(dynamodb, app.name, shards, 1)
                return [cost("java", 1, shards, False, seconds, (counted(proxy, None, seconds)))]
        finally:
            dynamodb.close()
            proxy.close()


def counted(proxy: CountingProxy, double: KinesisDouble | None, seconds: float) -> tuple[Counts, dict[str, int]]:
    """Returns what was asked for in so many seconds."""
    proxy.take()
    before = len(double.requests) if double else 0
    time.sleep(seconds)
    return proxy.take(), dict(Counter(name for name, _ in double.requests[before:])) if double else {}


def cost(kind: str, hosts: int, shards: int, busy: bool, seconds: float, found: tuple[Counts, dict[str, int]]) -> Cost:
    counts, kinesis = found
    requests = dict(counts.requests)
    return Cost(kind, hosts, shards, busy, seconds, requests, kinesis, counts.write_units, counts.read_units)


def table(costs: list[Cost]) -> str:
    lines = [
        f"{'a shard and hour':24}{'hosts':>6}{'requests':>10}{'write units':>13}{'read units':>12}{'of Kinesis':>12}"
    ]
    for each in costs:
        name = f"{each.kind}, {'busy' if each.busy else 'idle'}"
        asked = (sum(each.requests.values()), each.write_units, each.read_units, sum(each.kinesis.values()))
        figures = [f"{each.per_shard_hour(one):,.0f}" for one in asked]
        lines.append(f"{name:24}{each.hosts:>6}{figures[0]:>10}{figures[1]:>13}{figures[2]:>12}{figures[3]:>12}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="to count, idle and busy each")
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--java", action="store_true", help="Amazon's daemon too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    warn_unless_quiet()
    os.environ |= {"AWS_ACCESS_KEY_ID": "benchmark", "AWS_SECRET_ACCESS_KEY": "benchmark"}
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    costs: list[Cost] = []
    for kind in given.kinds:
        for hosts in given.hosts:
            print(f"{kind}, {hosts} hosts …", file=sys.stderr)
            costs += measure(kind, hosts, given.shards, given.seconds)
    if given.java:
        costs += measure_java(given.shards, given.seconds)
    print(json.dumps([asdict(each) for each in costs], indent=2) if given.json else table(costs))


if __name__ == "__main__":
    main()
