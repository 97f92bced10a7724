"""The whole way of the data with real parts: a stream, ``kainite run`` with amazon_kclpy children, the log, a target.

Only Spark is left out: the apply job runs its tasks in this process, which takes no time to start.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from kainite.log.store.dynamodb import DynamoDBStore
from kainite.log.views.unit_table import LogRow, read_rows
from kainite.settings import ApplySettings
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.driver.job import ApplyEnvironment, ApplyJob
from kainite_spark.targets.opening import open_target
from support.inline_runner import InlineRunner
from support.stores import Database

CHILD = Path(__file__).parents[1] / "children" / "kclpy_verbatim.py"
SHARDS = 2
LIMIT = 30.0


def eventually(condition: Callable[[], object], limit: float = LIMIT) -> None:
    """Wait until ``condition`` holds; fails after ``limit`` seconds."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.1)


def emit(*deltas: Mapping[str, Any]) -> bytes:
    """An emit line."""
    return json.dumps({"action": "emit", "deltas": deltas}).encode()


@dataclass
class Pipeline:
    """One application: stream, settings, log and target under one name.

    Attributes:
        kinesis: a client.
        store: the log's.
        name: of the stream, the application and what hangs on it.
        endpoint: of Kinesis and DynamoDB.
        database: the target; its tables stand.
        folder: for the settings and what the daemon writes.
    """

    kinesis: Any
    store: DynamoDBStore
    name: str
    endpoint: str
    database: Database
    folder: Path

    def __post_init__(self) -> None:
        self.kinesis.create_stream(StreamName=self.name, ShardCount=SHARDS)
        self.store.create()

    def properties(self, *child: str, **more: str) -> Path:
        values = {
            "applicationName": self.name, "streamName": self.name, "logTableName": self.name + "-log",
            "executableName": " ".join([sys.executable, str(CHILD), *child]), "regionName": "us-east-1",
            "kinesisEndpoint": self.endpoint, "dynamoDBEndpoint": self.endpoint, "workerId": "w",
            "initialPositionInStream": "TRIM_HORIZON", "idleTimeBetweenReadsInMillis": "50",
            "failoverTimeMillis": "2000", "childKillMillis": "500", "childRestartBackoffMillis": "20",
            "unitsOfWork": "true", "logPollMillis": "50", "target": self.database.url, **more,
        }  # fmt: skip
        path = self.folder / "app.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    def put(self, lines: Iterable[bytes], shard: int = 0) -> None:
        """Put payloads on one shard, in order."""
        key = str(2**128 // SHARDS * shard)
        for line in lines:
            self.kinesis.put_record(StreamName=self.name, Data=line, PartitionKey="k", ExplicitHashKey=key)

    @contextmanager
    def daemon(self, properties: Path, *program: str) -> Iterator[subprocess.Popen[bytes]]:
        """``kainite run``, or ``program``, whose last argument is the settings; killed with all its children."""
        command = [*program, str(properties)] if program else ["-m", "kainite", "run", "-p", str(properties)]
        with (self.folder / "stderr").open("ab") as errors:
            process = subprocess.Popen([sys.executable, *command], stderr=errors)
        try:
            yield process
        finally:
            children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            process.kill()
            process.wait(LIMIT)
            for child in children:
                child.wait(LIMIT)

    def apply(self) -> None:
        """An apply job that catches up and ends."""
        catalogue = reflect(self.database.url)
        target = open_target(self.database.url, catalogue)
        target.prepare(catalogue)
        runner = InlineRunner(self.store, "0", target)
        settings = ApplySettings(lease=60.0, idle=0.01)
        parts = ApplyEnvironment(settings, self.store, "0", "a job", target, runner, f"{self.name}-log/0")
        ApplyJob(parts, threading.Event()).run(once=True)

    def rows(self) -> dict[str, LogRow]:
        """The log's rows by unit; each unit must stand there once."""
        if self.store.read_head("0") is None:
            return {}
        rows = read_rows(self.store, "0")
        by_name = {row.uow: row for row in rows}
        assert len(by_name) == len(rows), "a unit stands in the log twice"
        return by_name

    def statuses(self) -> dict[str, str]:
        return {name: str(row.status) for name, row in self.rows().items()}
