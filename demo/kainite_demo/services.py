"""Runs the demo's double of AWS, moto's server on the loopback interface; makes clients and the stream."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from kainite.base.errors import DemoError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_kinesis import KinesisClient

REGION = "us-east-1"
_NOBODY = "kainite-demo"
_STREAM_LIMIT = 30.0
_MOTO_LIMIT = 30.0
# The JVM's second compiler and its parallel collector pay off after minutes; a short run only pays for their threads.
SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def moto(log: Path) -> Iterator[Callable[[], str]]:
    """Starts moto's server as a process of its own, without waiting for it.

    The server ends when its standard input closes, so it never outlives this process.

    Yields:
        A function that waits until the server is ready and returns its address, or raises DemoError; call it once.
    """
    command = [sys.executable, "-W", "ignore", "-m", "kainite_demo.moto_process"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True
        )
    try:
        yield lambda: _address(process, log)
    finally:
        process.kill()
        process.communicate()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], _MOTO_LIMIT)
    line = process.stdout.readline().decode().strip() if ready else ""
    if not line:
        raise DemoError(f"moto's server does not start: {_last_line(log) or 'no answer'}")
    return line


@contextmanager
def running(endpoint: str, name: str) -> Iterator[Callable[[], str]]:
    """Takes a running Kinesis and DynamoDB; at the end deletes the stream ``name`` and the tables named after it.

    Raises:
        DemoError: nothing answers at ``endpoint``.
    """
    try:
        kinesis_client(endpoint).list_streams(Limit=1)
    except (BotoCoreError, ClientError) as error:
        raise DemoError(f"no Kinesis at {endpoint}: start it, or leave --endpoint out: {error}") from error
    try:
        yield lambda: endpoint
    finally:
        kinesis, dynamodb = kinesis_client(endpoint), dynamodb_client(endpoint)
        with suppress(kinesis.exceptions.ResourceNotFoundException):
            kinesis.delete_stream(StreamName=name, EnforceConsumerDeletion=True)
        for page in dynamodb.get_paginator("list_tables").paginate():
            for table in page["TableNames"]:
                if table.startswith(name):
                    dynamodb.delete_table(TableName=table)


def environment(folder: Path) -> dict[str, str]:
    """Returns the environment of the demo's processes.

    It holds nothing of the user's AWS accounts. Temporary files, which a killed process leaves, are in the folder.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {
        **kept,
        "AWS_ACCESS_KEY_ID": _NOBODY,
        "AWS_SECRET_ACCESS_KEY": _NOBODY,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "TMPDIR": str(folder),
        "SPARK_LOCAL_DIRS": str(folder / "spark"),
        "SPARK_LAUNCHER_OPTS": kept.get("SPARK_LAUNCHER_OPTS", SHORT_LIVED_JVM),
        "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={folder} {kept.get('SPARK_SUBMIT_OPTS', SHORT_LIVED_JVM)}",
    }


def kinesis_client(endpoint: str) -> KinesisClient:
    return _session().client("kinesis", endpoint_url=endpoint)


def dynamodb_client(endpoint: str) -> DynamoDBClient:
    return _session().client("dynamodb", endpoint_url=endpoint)


def create_stream(kinesis: KinesisClient, name: str, shards: int) -> None:
    """Creates a stream and waits until it is active.

    Raises:
        DemoError: the stream is not active in time.
    """
    kinesis.create_stream(StreamName=name, ShardCount=shards)
    deadline = time.monotonic() + _STREAM_LIMIT
    while True:
        status = kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamStatus"]
        if status == "ACTIVE":
            return
        if time.monotonic() > deadline:
            raise DemoError(f"stream {name} is still {status} after {_STREAM_LIMIT:.0f} s")
        time.sleep(0.05)


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return lines[-1] if lines else ""


@cache
def _session() -> boto3.Session:
    """Returns the session of all clients: each session reads the services' descriptions anew."""
    return boto3.Session(_NOBODY, _NOBODY, region_name=REGION)
