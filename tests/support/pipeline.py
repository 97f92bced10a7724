"""The whole pipeline with real parts: a stream, ``kainite run`` with amazon_kclpy children, the log, a target.

Spark alone is left out, because it takes long to start: the apply job runs its tasks in this process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from kainite.log.views.unit_table import LogRow, read_rows
from kainite.peers.access import Access
from kainite.peers.feed.following import LogFeed
from kainite.settings import ApplySettings, LogSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.feeding import beside, feed_of
from kainite_spark.driver.job import ApplyJob
from kainite_spark.targets.opening import open_target
from support.inline_runner import InlineRunner
from support.stores import Database

CHILD = Path(__file__).parents[1] / "children" / "kclpy_verbatim.py"
SHARDS = 2
LIMIT = 30.0


def emit(*deltas: Mapping[str, Any]) -> bytes:
    """Returns an emit line."""
    return json.dumps({"action": "emit", "deltas": deltas}).encode()


@dataclass
class Pipeline:
    """One application: stream, settings, log and target under one name.

    Attributes:
        kinesis: a client.
        store: the log's store.
        name: the name of the stream and the application; the table of the log is named after it.
        endpoint: the endpoint of Kinesis and DynamoDB.
        database: the target, with its tables.
        folder: for the settings file and the daemon's output.
        shards: how many the stream gets.
    """

    kinesis: Any
    store: DynamoDBStore
    name: str
    endpoint: str
    database: Database
    folder: Path
    shards: int = SHARDS

    def __post_init__(self) -> None:
        self.kinesis.create_stream(StreamName=self.name, ShardCount=self.shards)
        self.store.create()

    def properties(self, *child: str, **more: str) -> Path:
        values = {
            "applicationName": self.name, "streamName": self.name, "logTableName": self.name + "-log",
            "executableName": " ".join([sys.executable, str(CHILD), *child]), "regionName": "us-east-1",
            "kinesisEndpoint": self.endpoint, "dynamoDBEndpoint": self.endpoint, "workerId": "w",
            "initialPositionInStream": "TRIM_HORIZON", "idleTimeBetweenReadsInMillis": "50",
            "failoverTimeMillis": "2000", "childKillMillis": "500", "taskBackoffTimeMillis": "20",
            "unitsOfWork": "true", "target": self.database.url, **more,
        }  # fmt: skip
        path = self.folder / "app.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    def put(self, lines: Iterable[bytes], shard: int = 0) -> None:
        """Puts payloads on one shard, in order."""
        key = str(2**128 // self.shards * shard)
        for line in lines:
            self.kinesis.put_record(StreamName=self.name, Data=line, PartitionKey="k", ExplicitHashKey=key)

    @contextmanager
    def daemon(self, properties: Path, *program: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs ``kainite run``, or ``program`` with the settings as last argument; kills it with all its children."""
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
        """Runs an apply job that catches up and ends."""
        ApplyJob(self._environment(), threading.Event()).run(once=True)

    @contextmanager
    def applying(self) -> Iterator[LogFeed]:
        """Runs an apply job that follows the log, in a thread; gives its feed."""
        environment = self._environment()
        log = LogSettings(f"{self.name}-log", "a job")
        feed = feed_of(environment.store, log, environment.settings, Access(), "a job")
        stop = threading.Event()
        with beside(feed), ThreadPoolExecutor(1) as pool:
            running = pool.submit(ApplyJob(replace(environment, feed=feed), stop).run)
            try:
                yield feed
            finally:
                stop.set()
                running.result(LIMIT)

    def _environment(self) -> ApplyEnvironment:
        catalogue = reflect(self.database.url)
        target = open_target(self.database.url, catalogue)
        target.prepare(f"{self.name}-log/0", catalogue)
        runner = InlineRunner(self.store, "0", target)
        settings = ApplySettings(lease=60.0, idle=0.01)
        return ApplyEnvironment(settings, self.store, "0", "a job", target, runner, f"{self.name}-log/0")

    def rows(self) -> dict[str, LogRow]:
        """Returns the log's rows by unit; each unit must have one row."""
        if self.store.read_head("0") is None:
            return {}
        rows = read_rows(self.store, "0")
        by_name = {row.uow: row for row in rows}
        assert len(by_name) == len(rows), "a unit stands in the log twice"
        return by_name

    def statuses(self) -> dict[str, str]:
        return {name: str(row.status) for name, row in self.rows().items()}
