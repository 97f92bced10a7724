"""Java's MultiLangDaemon (KCL 3.1.3) and ``kainite run`` on the same settings, stream, lease table and child.

Kinesis is kinesis-local: KCL speaks HTTP/2 to it, which moto does not. DynamoDB is moto, which has all that KCL 3
needs (the index by UpdateTable, the lock's conditions). Java waits for up to 30 s before it fills an empty lease table,
so the table is filled before Java starts. From its start to the first record Java takes about 10 s.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from kainite.base.checkpoint import Checkpoint
from kainite.kinesis.client import StreamClient
from kainite.leases.shard_sync.create_leases import create_missing
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import InitialPosition, StreamSettings
from support.names import unique

ROOT = Path(__file__).parents[2]
JARS = Path(sys.prefix) / "peers/java-kcl/amazon_kclpy/jars"
JOURNAL = ROOT / "tests/children/journal.py"
LIMIT = 90.0
"""Seconds that a test waits for what takes Java 10 s on a quiet machine."""
AS_2X = {"clientVersionConfig": "CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X"}
JAVA = (
    "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Daws.region=us-east-1",
    "-cp", f"{JARS}/*", "software.amazon.kinesis.multilang.MultiLangDaemon", "-p",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Delivered:
    """A record that was delivered to a child."""

    worker: str
    shard: str
    sequence: int
    payload: str


@dataclass
class Application:
    """One stream with an application's lease table, and the workers on it.

    Attributes:
        kinesis, dynamodb: clients.
        kinesis_endpoint, dynamodb_endpoint: their addresses.
        folder: for settings, logs and journals.
        shards: how many the stream begins with.
        keys: settings of all workers.
    """

    kinesis: Any
    dynamodb: Any
    kinesis_endpoint: str
    dynamodb_endpoint: str
    folder: Path
    shards: int = 1
    keys: dict[str, str] = field(default_factory=dict)
    name: str = field(default_factory=lambda: unique("java"))
    highest: dict[str, Checkpoint] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinesis.create_stream(StreamName=self.name, ShardCount=self.shards)
        self.kinesis.get_waiter("stream_exists").wait(StreamName=self.name, WaiterConfig={"Delay": 1})
        self.table = LeaseTable(self.dynamodb, self.name)
        self.table.create()
        settings = StreamSettings(self.name, initial_position=InitialPosition.TRIM_HORIZON)
        asyncio.run(create_missing(self.table, StreamClient(self.kinesis, self.name), settings, ()))

    def put(self, *payloads: str) -> None:
        """Puts records, the first one on the first shard and so on."""
        for index, payload in enumerate(payloads):
            key = str(2**128 // self.shards * (index % self.shards))
            self.kinesis.put_record(StreamName=self.name, Data=payload.encode(), PartitionKey="k", ExplicitHashKey=key)

    def properties(self, worker: str) -> Path:
        """Writes the settings file of a worker, the same for both daemons; returns its path."""
        values = {
            "applicationName": self.name, "streamName": self.name, "workerId": worker,
            "executableName": f"{sys.executable} {JOURNAL} {self._journal(worker)}",
            "AwsCredentialsProvider": "EnvironmentVariableCredentialsProvider", "regionName": "us-east-1",
            "kinesisEndpoint": self.kinesis_endpoint, "dynamoDBEndpoint": self.dynamodb_endpoint,
            "initialPositionInStream": "TRIM_HORIZON", "retrievalMode": "POLLING", "metricsLevel": "NONE",
            "idleTimeBetweenReadsInMillis": "200", "failoverTimeMillis": "4000", "shutdownGraceMillis": "10000",
            "leaseAssignmentIntervalMillis": "1000", "parentShardPollIntervalMillis": "500",
            "workerMetricsReporterFreqInMillis": "5000", **self.keys,
        }  # fmt: skip
        path = self.folder / f"{worker}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    @contextmanager
    def java(self, worker: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs Java's daemon; kills it with its children at the end."""
        with self._running(worker, *JAVA) as process:
            yield process

    @contextmanager
    def kainite(self, worker: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs ``kainite run``; kills it with its children at the end."""
        with self._running(worker, sys.executable, "-m", "kainite", "run", "-p") as process:
            yield process

    @contextmanager
    def _running(self, worker: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
        environment = {**os.environ, "AWS_CBOR_DISABLE": "true"}
        with self._log(worker).open("ab") as log:
            process = subprocess.Popen(
                [*command, str(self.properties(worker))], env=environment, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            kill(process)

    def delivered(self, worker: str | None = None) -> list[Delivered]:
        """Returns the records that the children of one worker, or of all, received, in each one's order."""
        workers = [worker] if worker else [path.stem for path in self.folder.glob("*.journal")]
        lines = [(name, json.loads(line)) for name in workers for line in _lines(self._journal(name))]
        return [Delivered(name, line[1], int(line[2]), line[3]) for name, line in lines if line[0] == "record"]

    def payloads(self, worker: str | None = None) -> set[str]:
        return {record.payload for record in self.delivered(worker)}

    def leases(self) -> dict[str, Lease]:
        """Reads the lease table; fails if any checkpoint is below its earlier value."""
        leases = {lease.key: lease for lease in self.table.scan()}
        for key, lease in leases.items():
            before, now = self.highest.get(key, lease.checkpoint), lease.checkpoint
            assert now >= before, f"{key}: the checkpoint went back from {before} to {now}"
            self.highest[key] = now
        return leases

    def owned(self, worker: str) -> int:
        """Returns how many leases carry the worker's name and are not being handed over."""
        return sum(1 for lease in self.leases().values() if lease.owner == worker and not lease.checkpoint_owner)

    def workers(self) -> set[str]:
        """Returns the workers that report to a KCL 3 fleet."""
        entries = self.dynamodb.scan(TableName=f"{self.name}-WorkerMetricStats", ConsistentRead=True)["Items"]
        return {entry["wid"]["S"] for entry in entries}

    def eventually(self, condition: Callable[[], object], what: str) -> None:
        """Waits until ``condition`` holds, and checks the checkpoints meanwhile; shows the daemons' logs on failure."""
        end = time.monotonic() + LIMIT
        while not condition():
            self.leases()
            if time.monotonic() > end:
                raise AssertionError(f"{what} never came\n{self._logs()}")
            time.sleep(0.2)

    def _journal(self, worker: str) -> Path:
        return self.folder / f"{worker}.journal"

    def _log(self, worker: str) -> Path:
        return self.folder / f"{worker}.log"

    def log(self, worker: str) -> str:
        """Returns what a daemon has logged so far."""
        return self._log(worker).read_text(errors="replace")

    def _logs(self) -> str:
        tails = [(path.stem, path.read_text(errors="replace")[-3000:]) for path in self.folder.glob("*.log")]
        owners = {key: lease.owner for key, lease in self.leases().items()}
        return "\n".join([f"leases: {owners}", *(f"--- {name}\n{tail}" for name, tail in tails)])


def terminate(process: subprocess.Popen[bytes]) -> None:
    """Sends SIGTERM and waits for the end."""
    process.send_signal(signal.SIGTERM)
    process.wait(LIMIT)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Sends SIGKILL to the daemon; its children's input ends, and they are waited for."""
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    process.wait(LIMIT)
    _, late = psutil.wait_procs(children, 20)
    for child in late:
        child.kill()


def _lines(path: Path) -> list[str]:
    # A line that is still being written is left for the next time.
    return path.read_text().split("\n")[:-1] if path.exists() else []
