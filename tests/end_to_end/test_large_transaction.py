"""One transaction of a million rows on the whole way, every part a process of its own, in bounded memory.

PostgreSQL, ``kainite extract`` with its extractor, a stream, ``kainite run`` with its record processor, the log,
``kainite apply`` with Spark, PostgreSQL. Small transactions before and after it touch its rows, so it has to arrive
whole and in its turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite_demo.postgres_server import programs
from kainite_demo.services import kinesis_client, moto
from support.names import unique
from support.postgresql_source import drop_slot, source

__all__ = ["source"]

ROWS = int(os.environ.get("KAINITE_LARGE_TRANSACTION", "1000000"))
LIMIT = 3600.0
MIB = 1 << 20
BOUNDS = {
    "extractor": 128 * MIB,
    "kainite extract": 512 * MIB,
    "record processor": 256 * MIB,
    "kainite run": 256 * MIB + 400 * ROWS,
    "kainite apply": 512 * MIB + 400 * ROWS,
    "task": 256 * MIB + 1500 * ROWS,
}
"""How much memory a process may have taken, bytes: what the pages say of a unit, and of the process without one."""

STATE = "SELECT count(*), sum(price), min(name), max(name), md5(string_agg(item::text, '' ORDER BY item.id)) FROM item"


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(2 * LIMIT)
def test_a_million_rows_in_one_transaction_arrive_in_bounded_memory(
    source: SourceSlot, postgres_server: str, postgres: str, moto_endpoint: str, tmp_path: Path
) -> None:
    stream = unique("large")
    url = postgres_server.replace("/postgres?", f"/{source.slot}?")
    # Leases are answered about while the stream's double is busy: it is a process of its own.
    with moto(tmp_path / "moto") as ready, psycopg.connect(source.url, autocommit=True) as connection:
        kinesis = ready()
        kinesis_client(kinesis).create_stream(StreamName=stream, ShardCount=2)
        connection.execute("DROP TABLE note")
        parts = Parts(tmp_path, environment(moto_endpoint, kinesis))
        try:
            replicate(parts, connection, url, postgres, stream)
        finally:
            drop_slot(connection, stream.replace("-", "_"))
    for name, peak in sorted(parts.peaks.items()):
        print(f"{name:20} {peak / MIB:8.0f} MiB")
    assert parts.peaks.keys() >= BOUNDS.keys()
    assert {name: peak for name, peak in parts.peaks.items() if peak > BOUNDS.get(name, peak)} == {}


def environment(endpoint: str, kinesis: str) -> dict[str, str]:
    """Returns the commands' environment, with Kainite's programs and pg_dump of the servers' version."""
    path = os.pathsep.join((sysconfig.get_path("scripts"), str(programs()), os.environ["PATH"]))
    return {**os.environ, "AWS_ENDPOINT_URL": endpoint, "AWS_ENDPOINT_URL_KINESIS": kinesis, "PATH": path}


class Parts:
    """The running commands, and the most memory that each kind of process has taken.

    Args:
        folder: for the settings and what the commands log.
        environment: of the commands.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.peaks: dict[str, int] = defaultdict(int)
        self._environment = dict(environment)
        self._running: dict[str, psutil.Process] = {}

    def run(self, *arguments: str, fails: bool = False) -> None:
        """Runs a command of Kainite to its end."""
        command = [sys.executable, "-m", "kainite", *arguments]
        done = subprocess.run(command, env=self._environment, cwd=self.folder, capture_output=True, text=True)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        """Runs a command of Kainite meanwhile; kills it with all its children."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as errors:
            command = [sys.executable, "-m", "kainite", name, "-p", "shop.properties"]
            process = subprocess.Popen(command, env=self._environment, cwd=self.folder, stderr=errors, stdout=errors)
        self._running[name] = psutil.Process(process.pid)
        try:
            yield
        finally:
            family = [*self._running.pop(name).children(recursive=True)] if process.poll() is None else []
            process.kill()
            process.wait()
            for child in family:
                child.kill()

    def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition, and looks at the memory meanwhile.

        Raises:
            AssertionError: a command has ended, or the condition does not come true.
        """
        deadline, pause = time.monotonic() + LIMIT, threading.Event()
        while not condition():
            for name, process in list(self._running.items()):
                assert process.status() != psutil.STATUS_ZOMBIE, self.log(name)
                self._look(name, process)
            assert time.monotonic() < deadline, "\n".join(map(self.log, self._running))
            pause.wait(0.5)

    def log(self, name: str) -> str:
        """Returns the end of what a command has logged."""
        return f"{name}: " + (self.folder / f"{name}.log").read_text()[-3000:]

    def _look(self, name: str, process: psutil.Process) -> None:
        self._note(f"kainite {name}", process)
        for child in process.children(recursive=True):
            try:
                self._note(kind_of(name, child.name()), child)
            except psutil.NoSuchProcess:
                continue

    def _note(self, kind: str, process: psutil.Process) -> None:
        self.peaks[kind] = max(self.peaks[kind], peak_of(process.pid))


def kind_of(command: str, program: str) -> str:
    """Returns what a child process of one of the commands is."""
    return (
        "Spark's JVM" if program == "java" else {"extract": "extractor", "run": "record processor"}.get(command, "task")
    )


def peak_of(pid: int) -> int:
    """Returns the most memory that a process has taken, bytes; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def replicate(parts: Parts, connection: psycopg.Connection, at: str, to: str, stream: str) -> None:
    """Sets a replica up, and lets the large transaction arrive in it."""
    settings = parts.folder / "shop.properties"
    init = ("replicate", "init", "-p", settings.name)
    parts.run(*init, "--source", at, "--target", to, "--stream", stream, fails=True)
    assert settings.exists()
    with settings.open("a") as lines:
        # A reply of Kinesis has 10 MiB at most; the double knows no such bound.
        lines.write("\nextractAggregation = true\nregionName = us-east-1\nmaxRecords = 300\n")
    parts.run(*init, "--write")
    with ExitStack() as running, psycopg.connect(to, autocommit=True) as target:
        running.enter_context(parts.running("extract"))
        parts.run("replicate", "load", "-p", settings.name)
        running.enter_context(parts.running("run"))
        running.enter_context(parts.running("apply"))
        connection.execute("INSERT INTO item VALUES (0, 'first', 1)")
        parts.until(lambda: bool(target.execute("SELECT FROM item").fetchall()))
        began = time.monotonic()
        connection.execute(f"INSERT INTO item SELECT n, 'item ' || n, n / 8.0 FROM generate_series(1, {ROWS}) n")
        connection.execute("UPDATE item SET price = -price WHERE id % 100000 = 7")
        connection.execute("UPDATE item SET name = 'last' WHERE id = 0")
        parts.until(lambda: target.execute("SELECT FROM item WHERE name = 'last'").fetchone() is not None)
        print(f"{ROWS} rows in {time.monotonic() - began:.0f} s")
        assert target.execute(STATE).fetchone() == connection.execute(STATE).fetchone()
