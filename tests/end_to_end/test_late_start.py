"""What a start needs comes up late: the daemon, the apply job and the extractor wait for it, and a stop ends the wait.

Each runs as a process whose endpoints refuse connections, as those of a host that boots before its network does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.catalogue.tables import Catalogue
from support.http_double import DoubleServer, JsonHandler
from support.late_door import LateDoor
from support.names import unique
from support.waiting import eventually

LIMIT = 60.0
COMMANDS = {"run": ["run"], "extract": ["extract"], "apply": ["apply"], "log serve": ["log", "serve"]}


@pytest.fixture
def door() -> Iterator[LateDoor]:
    door = LateDoor()
    yield door
    door.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """Gives the socket on which a service manager hears."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(LIMIT)
        yield manager


def properties(folder: Path, endpoint: str, name: str, *, units: bool) -> Path:
    values = {
        "applicationName": name,
        "streamName": name,
        "regionName": "us-east-1",
        "kinesisEndpoint": endpoint,
        "dynamoDBEndpoint": endpoint,
        "executableName": "/bin/cat",
        "extractorName": "/bin/cat",
        "extractorMode": "plain",
        "extractorIntervalMillis": "100",
        "metricsPort": "0",
        "metricsLevel": "NONE",
    }
    if units:
        with closing(sqlite3.connect(folder / "target.db")) as target:
            target.execute("CREATE TABLE note (id INTEGER PRIMARY KEY)")
        values |= {"unitsOfWork": "true", "target": f"sqlite:///{folder / 'target.db'}", "applyMaster": "local[1]"}
    path = folder / "late.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in values.items()))
    return path


@contextmanager
def started(folder: Path, command: str, path: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a command with its log as JSON lines in a file, and a service manager that hears."""
    called = [sys.executable, "-m", "kainite", "--log-format", "json", *COMMANDS[command], "-p", str(path), *options]
    environment = {**os.environ, "NOTIFY_SOCKET": str(folder / "notify")}
    with (folder / "log").open("wb") as errors:
        process = subprocess.Popen(called, env=environment, stderr=errors, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def told(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "log").read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def waits(folder: Path) -> list[dict[str, Any]]:
    return [line for line in told(folder) if line.get("event", line.get("message")) == "waiting"]


def heard(manager: socket.socket, message: str) -> None:
    """Waits until the service manager has heard a message."""
    while message not in manager.recv(4096).decode().splitlines():
        pass


@pytest.mark.parametrize("units", [False, True])
def test_the_daemon_is_ready_when_what_it_needs_comes_up(
    door: LateDoor, manager: socket.socket, kinesis: Any, moto_endpoint: str, tmp_path: Path, units: bool
) -> None:
    name = unique("late")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    with started(tmp_path, "run", properties(tmp_path, door.endpoint, name, units=units)) as process:
        assert manager.recv(4096).startswith(b"STATUS=waiting for ")
        assert process.poll() is None

        door.open(moto_endpoint)
        heard(manager, "READY=1")

        assert waits(tmp_path), told(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0
    assert len(waits(tmp_path)) < 6, "an outage is told too often"


def test_the_extractor_begins_when_the_stream_comes_up(
    door: LateDoor, manager: socket.socket, kinesis: Any, moto_endpoint: str, tmp_path: Path
) -> None:
    name = unique("late")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    with started(tmp_path, "extract", properties(tmp_path, door.endpoint, name, units=False)) as process:
        assert manager.recv(4096).startswith(f"STATUS=waiting for stream {name}".encode())

        door.open(moto_endpoint)
        heard(manager, "READY=1")

        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_the_apply_job_begins_when_dynamodb_comes_up(
    door: LateDoor, manager: socket.socket, moto_endpoint: str, tmp_path: Path
) -> None:
    path = properties(tmp_path, door.endpoint, unique("late"), units=True)
    with started(tmp_path, "apply", path, "--once") as process:
        assert manager.recv(4096).startswith(b"STATUS=waiting for the log's table")

        door.open(moto_endpoint)
        heard(manager, "READY=1")

        assert process.wait(3 * LIMIT) == 0, (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("command", "units"),
    [("run", False), ("run", True), ("extract", False), ("apply", True), ("log serve", True)],
)
def test_sigterm_ends_the_wait(
    command: str, units: bool, door: LateDoor, manager: socket.socket, tmp_path: Path
) -> None:
    path = properties(tmp_path, door.endpoint, unique("late"), units=units)
    with started(tmp_path, command, path) as process:
        manager.recv(4096)
        process.send_signal(signal.SIGTERM)

        assert process.wait(LIMIT) == 0, (tmp_path / "log").read_text()
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("command", "units"), [("run", True), ("extract", False), ("apply", True), ("log serve", True)]
)
def test_sighup_does_not_end_the_wait(
    command: str, units: bool, door: LateDoor, manager: socket.socket, tmp_path: Path
) -> None:
    path = properties(tmp_path, door.endpoint, unique("late"), units=units)
    with started(tmp_path, command, path) as process:
        manager.recv(4096)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)  # of two signals that are pending, HUP, with the lower number, comes first
        assert process.wait(LIMIT) == 0, (tmp_path / "log").read_text()


def test_sigterm_ends_the_wait_for_a_target_whose_tables_are_in_a_file(manager: socket.socket, tmp_path: Path) -> None:
    write_catalogue(Catalogue({}, "public"), tmp_path / "catalogue.json")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = f"127.0.0.1:{nobody.getsockname()[1]}"
        path = properties(tmp_path, f"http://{away}", unique("late"), units=True)
        with path.open("a") as file:
            file.write(f"target = postgresql://nobody@{away}/away\ncatalogueFile = {tmp_path / 'catalogue.json'}\n")
        with started(tmp_path, "apply", path) as process:
            assert manager.recv(4096).startswith(b"STATUS=waiting for ")
            process.send_signal(signal.SIGTERM)

            assert process.wait(LIMIT) == 0, (tmp_path / "log").read_text()


class Refusing(JsonHandler):
    """Answers each request as AWS does where the credentials are wrong."""

    def serve(self, operation: str, request: dict[str, Any]) -> None:
        self.answer(400, b'{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"wrong token"}')


@pytest.mark.parametrize(
    ("command", "units"), [("run", False), ("run", True), ("extract", False), ("apply", True), ("log serve", True)]
)
def test_wrong_credentials_end_a_start_at_once_in_a_line(
    command: str, units: bool, manager: socket.socket, tmp_path: Path
) -> None:
    server = DoubleServer(Refusing)
    try:
        path = properties(tmp_path, server.endpoint, unique("late"), units=units)
        with started(tmp_path, command, path) as process:
            eventually(lambda: process.poll() is not None, LIMIT)
    finally:
        server.close()

    log = (tmp_path / "log").read_text()
    assert process.returncode == 1, log
    assert "UnrecognizedClientException" in log.splitlines()[-1]
    assert "Traceback" not in log
    assert not waits(tmp_path)
