"""A multi-stream application on the real KCL (3.1.3, in Java) and ``kainite run`` on the same streams and lease table.

``MultiStreamApplication.java`` is compiled by the first test that needs it. Kinesis and DynamoDB are moto's: the
application is told to speak HTTP/1.1, and JSON in place of CBOR.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kainite.base.shard_key import StreamId
from kainite.leases.table.lease_table import LeaseTable
from support.java_kcl import JARS, JOURNAL, LIMIT, kill
from support.names import unique

SOURCE = Path(__file__).with_name("MultiStreamApplication.java")
SHARDS = 2
OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Daws.cborEnabled=false")


def compiled(folder: Path) -> Path:
    """Compiles the application; returns the folder of its classes."""
    subprocess.run(
        ["javac", "-proc:none", "-cp", f"{JARS}/*", "-d", str(folder), str(SOURCE)], check=True, timeout=LIMIT
    )
    return folder


@dataclass
class SeveralStreams:
    """Two streams with an application's lease table, and the workers on it.

    Attributes:
        kinesis, dynamodb: clients.
        endpoint: of both.
        classes: the folder of the compiled application.
        folder: for settings, logs and journals.
    """

    kinesis: Any
    dynamodb: Any
    endpoint: str
    classes: Path
    folder: Path
    name: str = field(default_factory=lambda: unique("several"))

    def __post_init__(self) -> None:
        self.streams = (f"{self.name}-a", f"{self.name}.b")
        for stream in self.streams:
            self.kinesis.create_stream(StreamName=stream, ShardCount=SHARDS)
        self.ids = tuple(map(self._id, self.streams))
        self.table = LeaseTable(self.dynamodb, self.name)

    def _id(self, stream: str) -> str:
        found = self.kinesis.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]
        return str(StreamId.of(found["StreamARN"], int(found["StreamCreationTimestamp"].timestamp())))

    def put(self, prefix: str) -> set[str]:
        """Puts a record on each shard of both streams; returns the payloads."""
        payloads = set()
        for stream in self.streams:
            for shard in range(SHARDS):
                payload, key = f"{prefix}-{stream}-{shard}", str(2**128 // SHARDS * shard)
                self.kinesis.put_record(StreamName=stream, Data=payload.encode(), PartitionKey="k", ExplicitHashKey=key)
                payloads.add(payload)
        return payloads

    @contextmanager
    def java(self, worker: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs the Java application; kills it at the end."""
        command = ["java", *OPTIONS, "-cp", f"{self.classes}:{JARS}/*", SOURCE.stem, self.name, worker]
        command += [self.endpoint, self.endpoint, str(self._journal(worker)), *self.ids]
        with self._running(worker, command) as process:
            yield process

    @contextmanager
    def kainite(self, worker: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs ``kainite run``; kills it with its children at the end."""
        values = {
            "applicationName": self.name, "streamNames": ", ".join(self.streams), "workerId": worker,
            "executableName": f"{sys.executable} {JOURNAL} {self._journal(worker)}", "regionName": "us-east-1",
            "kinesisEndpoint": self.endpoint, "dynamoDBEndpoint": self.endpoint, "retrievalMode": "POLLING",
            "initialPositionInStream": "TRIM_HORIZON", "idleTimeBetweenReadsInMillis": "200",
            "failoverTimeMillis": "4000", "leaseAssignmentIntervalMillis": "1000",
            "parentShardPollIntervalMillis": "500", "shardSyncIntervalMillis": "1000",
        }  # fmt: skip
        path = self.folder / f"{worker}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        with self._running(worker, [sys.executable, "-m", "kainite", "run", "-p", str(path)]) as process:
            yield process

    @contextmanager
    def _running(self, worker: str, command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        with self._log(worker).open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield process
        finally:
            kill(process)

    def delivered(self) -> list[tuple[str, int, str]]:
        """Returns the records that reached any worker's processors: lease key, sequence number, payload."""
        found = []
        for path in self.folder.glob("*.journal"):
            for line in path.read_text().split("\n")[:-1]:
                if line.startswith("["):
                    what, *record = json.loads(line)
                    found += [tuple(record)] if what == "record" else []
                else:
                    found.append(tuple(line.split(" ", 2)))
        return [(key, int(sequence), payload) for key, sequence, payload in found]

    def payloads(self) -> set[str]:
        return {payload for _, _, payload in self.delivered()}

    def checkpointed(self) -> bool:
        """Tells whether each lease stands at the last record that was delivered of its shard."""
        last: dict[str, int] = {}
        for key, sequence, _ in self.delivered():
            last[key] = max(last.get(key, 0), sequence)
        stored = {ls.key: ls.checkpoint.position for ls in self.table.scan()}
        return all((at := stored.get(key)) is not None and at.sequence == sequence for key, sequence in last.items())

    def owned(self, worker: str) -> int:
        """Returns how many leases carry the worker's name."""
        return sum(lease.owner == worker for lease in self.table.scan())

    def items(self) -> dict[str, dict[str, Any]]:
        """Returns the leases' items as they are stored, by key."""
        found = self.dynamodb.scan(TableName=self.name, ConsistentRead=True)["Items"]
        return {item["leaseKey"]["S"]: item for item in found if item.get("checkpoint")}

    def eventually(self, condition: Callable[[], object], what: str, limit: float = LIMIT) -> None:
        """Waits until ``condition`` holds; shows the workers' logs on failure."""
        end = time.monotonic() + limit
        while not condition():
            if time.monotonic() > end:
                tails = [path.read_text(errors="replace")[-3000:] for path in self.folder.glob("*.log")]
                raise AssertionError("\n---\n".join([f"{what} never came", *tails]))
            time.sleep(0.2)

    def _journal(self, worker: str) -> Path:
        return self.folder / f"{worker}.journal"

    def _log(self, worker: str) -> Path:
        return self.folder / f"{worker}.log"
