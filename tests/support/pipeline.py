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
from contextlib import closing, contextmanager
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
        name: the name of the stream and the application; the table of the log is named after it by default.
        endpoint: the endpoint of Kinesis and DynamoDB.
        database: the target, with its tables.
        folder: for the settings file and the daemon's output.
        shards: how many the stream gets.
        partition: the log partition.
        table: the log's table, if it is named after another pipeline.
    """

    kinesis: Any
    store: DynamoDBStore
    name: str
    endpoint: str
    database: Database
    folder: Path
    shards: int = SHARDS
    partition: str = "0"
    table: str = ""

    def __post_init__(self) -> None:
        self.kinesis.create_stream(StreamName=self.name, ShardCount=self.shards)
        self.store.create()
        self.table = self.table or f"{self.name}-log"

    def properties(self, *child: str, **more: str) -> Path:
        values = {
            "applicationName": self.name, "streamName": self.name,
            "logTableName": self.table, "logPartition": self.partition,
            "executableName": " ".join([sys.executable, str(CHILD), *child]), "regionName": "us-east-1",
            "kinesisEndpoint": self.endpoint, "dynamoDBEndpoint": self.endpoint, "workerId": "w",
            "initialPositionInStream": "TRIM_HORIZON", "idleTimeBetweenReadsInMillis": "50",
            "failoverTimeMillis": "2000", "childKillMillis": "500", "taskBackoffTimeMillis": "20",
            "unitsOfWork": "true", "target": self.database.url, **more,
        }  # fmt: skip
        if any(key.startswith("target.") for key in more):
            del values["target"]
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
        with self._environment() as environment:
            ApplyJob(environment, threading.Event()).run(once=True)

    @contextmanager
    def applying(self) -> Iterator[LogFeed]:
        """Runs an apply job that follows the log, in a thread; gives its feed."""
        stop = threading.Event()
        with self._environment() as environment:
            log = LogSettings(self.table, "a job", partition=self.partition)
            feed = feed_of(environment.store, log, environment.settings, Access(), "a job")
            with beside(feed), ThreadPoolExecutor(1) as pool:
                running = pool.submit(ApplyJob(replace(environment, feed=feed), stop).run)
                try:
                    yield feed
                finally:
                    stop.set()
                    running.result(LIMIT)

    @contextmanager
    def _environment(self) -> Iterator[ApplyEnvironment]:
        catalogue = reflect(self.database.url)
        settings, ledger = ApplySettings(lease=60.0, idle=0.01), f"{self.table}/{self.partition}"
        with closing(open_target(self.database.url, catalogue)) as target:
            target.prepare(ledger, catalogue)
            runner = InlineRunner(self.store, self.partition, target)
            yield ApplyEnvironment(settings, self.store, self.partition, "a job", target, runner, ledger)

    def rows(self) -> dict[str, LogRow]:
        """Returns the log's rows by unit; each unit must have one row."""
        if self.store.read_head(self.partition) is None:
            return {}
        rows = read_rows(self.store, self.partition)
        by_name = {row.uow: row for row in rows}
        assert len(by_name) == len(rows), "a unit stands in the log twice"
        return by_name

    def statuses(self) -> dict[str, str]:
        return {name: str(row.status) for name, row in self.rows().items()}
