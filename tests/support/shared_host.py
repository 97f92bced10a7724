"""Commands of Kainite's on a host that other users share: a folder that all may enter, and the widest umask."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import psutil

from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.names_of_all import table_names

CHILD = Path(__file__).parents[1] / "children" / "kclpy_verbatim.py"
LIMIT = 60.0
AWS_SECRET = "the-secret-of-aws"
OPEN = "for-all-to-read"


@contextmanager
def open_folder() -> Iterator[Path]:
    """Yields a folder that every user may enter: what is protected in it protects itself. One file in it is not."""
    with tempfile.TemporaryDirectory(prefix="kainite-open-") as path:
        folder = Path(path)
        folder.chmod(0o755)
        (folder / OPEN).touch(mode=0o644)
        yield folder


def application(endpoint: str, folder: Path, shards: int = 1) -> dict[str, str]:
    """Returns the settings of an application with a stream of its own, whose target has one table."""
    name = unique("app")
    with contextlib.closing(sqlite3.connect(folder / "target.db")) as target:
        target.execute("CREATE TABLE t (id integer PRIMARY KEY, v text)")
    (folder / "target.db").chmod(0o600)
    boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1").create_stream(
        StreamName=name, ShardCount=shards
    )
    return {
        "applicationName": name,
        "streamName": name,
        "regionName": "us-east-1",
        "kinesisEndpoint": endpoint,
        "dynamoDBEndpoint": endpoint,
        "initialPositionInStream": "TRIM_HORIZON",
        "idleTimeBetweenReadsInMillis": "50",
        "executableName": f"{sys.executable} {CHILD}",
        "unitsOfWork": "true",
        "metricsPort": "0",
        "auditTrail": str(folder / "audit"),
        "target": f"sqlite:///{folder}/target.db",
    }


@contextmanager
def running(
    command: str, settings: Mapping[str, str], folder: Path, more: Mapping[str, str] | None = None
) -> Iterator[psutil.Process]:
    """Runs a command with a settings file of its own, a temp folder that all may enter, and the widest umask.

    Args:
        command: such as ``run``.
        settings: what stands in the file.
        folder: for the file, the temp folder and the log lines.
        more: variables of the command's environment.
    """
    properties, temporary = folder / f"{command}.properties", folder / "temporary"
    properties.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    properties.chmod(0o600)
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)
    places = {"TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(temporary)}
    environment = {**os.environ, "AWS_SECRET_ACCESS_KEY": AWS_SECRET, **places, **(more or {})}
    line = [sys.executable, "-m", "kainite", command, "-p", str(properties)]
    with (
        (folder / f"{command}.log").open("wb") as log,
        subprocess.Popen(line, stderr=log, env=environment, umask=0) as process,
    ):
        (folder / f"{command}.log").chmod(0o600)
        try:
            yield psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT)


def family(process: psutil.Process) -> list[psutil.Process]:
    """Returns a process and its descendants."""
    return [process, *process.children(recursive=True)]


def put(settings: Mapping[str, str], data: bytes, hash_key: int = 0) -> None:
    """Puts a record on the application's stream, into the shard that has the hash key."""
    kinesis: Any = boto3.client("kinesis", endpoint_url=settings["kinesisEndpoint"], region_name="us-east-1")
    kinesis.put_record(StreamName=settings["streamName"], Data=data, PartitionKey="k", ExplicitHashKey=str(hash_key))


def unit_line(uow: str, key: int, value: str) -> bytes:
    """Returns the emit line of a unit with one row."""
    change = {"uow": uow, "table": "t", "op": "insert", "key": {"id": key}, "row": {"id": key, "v": value}}
    return json.dumps({"action": "emit", "deltas": [change, {"uow": uow, "end": True, "count": 1}]}).encode()


def log_rows(settings: Mapping[str, str]) -> DynamoDBStore:
    """Returns the store of the application's log."""
    client = boto3.client("dynamodb", endpoint_url=settings["dynamoDBEndpoint"], region_name="us-east-1")
    return DynamoDBStore(client, f"{settings['applicationName']}-log")


def has_log(settings: Mapping[str, str]) -> bool:
    """Returns whether the log's table is there."""
    client = boto3.client("dynamodb", endpoint_url=settings["dynamoDBEndpoint"], region_name="us-east-1")
    return f"{settings['applicationName']}-log" in table_names(client)
