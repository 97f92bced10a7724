"""Runs ``kainite demo`` as a user does: with kills, with a target that differs, and ended by signals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString

import orjson
import psutil
import psycopg
import pytest

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]

LIMIT = 240.0
SMALL = ["--scale", "2", "--rate", "40", "--clients", "4", "--seconds"]


class Demo:
    """A run with a temporary folder of its own, in which the test finds whatever the run leaves behind."""

    def __init__(self, *options: str) -> None:
        # Not pytest's folder: its path is too long for the sockets of PostgreSQL.
        self.folder = Path(tempfile.mkdtemp(prefix="kd-"))
        self.lines: list[str] = []
        command = [sys.executable, "-m", "kainite", "demo", *options]
        env = {**os.environ, "TMPDIR": str(self.folder)}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, start_new_session=True
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait_for_line(self, text: str) -> None:
        deadline = time.monotonic() + LIMIT
        while not any(text in line for line in self.lines):
            assert self.process.poll() is None, self.lines
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.05)

    def end(self) -> int:
        """Waits until the run has ended; returns its exit status."""
        status = self.process.wait(LIMIT)
        self._reader.join()
        return status

    def left(self) -> list[str]:
        """Returns files and processes that the run should have removed."""
        files = [str(path) for path in self.folder.iterdir()]
        return files + [" ".join(process.cmdline()) for process in psutil.process_iter() if self._is_ours(process)]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.end()
        shutil.rmtree(self.folder)

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.pid != self.process.pid and any(str(self.folder) in part for part in process.cmdline())
        except psutil.Error:
            return False

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            self.lines.extend(iter(output.readline, ""))


@pytest.fixture
def demos() -> Iterator[list[Demo]]:
    started: list[Demo] = []
    yield started
    for demo in started:
        demo.close()


def test_killed_again_and_again_the_target_equals_the_source(demos: list[Demo]) -> None:
    demo = Demo(*SMALL, "15", "--kill", "--json", "--daemons", "2")
    demos.append(demo)
    assert demo.end() == 0, demo.lines
    summary = orjson.loads(demo.lines[-1])
    assert summary["transactions"] > 300
    assert summary["records"] == 5 * summary["transactions"]
    assert summary["rows_compared"] == summary["transactions"] + 2 * (1 + 10 + 100_000)
    assert summary["snapshots_checked"] > 10
    assert set(summary["kills"]) >= {"daemon", "extractor"}
    assert demo.left() == []


@pytest.mark.long
def test_hosts_of_a_fleet_are_killed_and_its_duties_go_on_elsewhere(demos: list[Demo]) -> None:
    demo = Demo(*SMALL, "15", "--fleet", "2", "--kill", "--json", "--shards", "2")
    demos.append(demo)
    assert demo.end() == 0, "".join(demo.lines[-30:])
    summary = orjson.loads(demo.lines[-1])
    assert summary["transactions"] > 300
    assert summary["records"] == 5 * summary["transactions"]
    assert summary["rows_compared"] == summary["transactions"] + 2 * (1 + 10 + 100_000)
    assert set(summary["kills"]) <= {"daemon", "daemon 2"}
    # Each kind has said that it is ready; with both hosts killed each of them was started again.
    starts = summary["duty_starts"]
    assert set(starts) == {"log", "extract", "apply"}
    assert min(starts.values()) >= 1
    assert sum(starts.values()) > len(starts)
    assert demo.left() == []


@pytest.mark.long
def test_transactions_that_come_as_aurora_dsqls_do_are_put_together(demos: list[Demo]) -> None:
    demo = Demo(*SMALL, "12", "--source", "dsql", "--kill", "--json")
    demos.append(demo)
    assert demo.end() == 0, demo.lines
    summary = orjson.loads(demo.lines[-1])
    assert summary["transactions"] > 200
    assert summary["records"] == 4 * summary["transactions"]
    assert summary["rows_compared"] == summary["transactions"] + 2 * (1 + 10 + 100_000)
    assert summary["snapshots_checked"] > 10
    assert "extractor" not in summary["kills"]
    assert demo.left() == []


@pytest.mark.parametrize(
    "ends",
    [
        ("mariadb", "mariadb"),
        pytest.param(("mariadb", "postgresql"), marks=pytest.mark.long),
        pytest.param(("postgresql", "mariadb"), marks=pytest.mark.long),
    ],
    ids=" to ".join,
)
def test_an_end_may_be_mariadb(demos: list[Demo], ends: tuple[str, str]) -> None:
    """Shows it with kills of every process."""
    demo = Demo(*SMALL, "12", "--source", ends[0], "--target", ends[1], "--kill", "--json")
    demos.append(demo)
    assert demo.end() == 0, demo.lines
    summary = orjson.loads(demo.lines[-1])
    assert summary["transactions"] > 200
    assert summary["records"] == 5 * summary["transactions"]
    assert summary["rows_compared"] == summary["transactions"] + 2 * (1 + 10 + 100_000)
    assert summary["snapshots_checked"] > 10
    assert set(summary["kills"]) >= {"daemon", "extractor"}
    assert demo.left() == []


def meddle(demo: Demo, sql: LiteralString) -> None:
    """Changes the target of a running demo."""
    (target,) = demo.folder.glob("kainite-demo-*/target")
    with psycopg.connect(f"postgresql://postgres@/postgres?host={target}") as connection:
        connection.execute(sql)


@pytest.mark.long
def test_a_row_too_many_fails_the_run(demos: list[Demo]) -> None:
    demo = Demo(*SMALL, "3")
    demos.append(demo)
    demo.wait_for_line("running pgbench")
    meddle(demo, "INSERT INTO pgbench_branches VALUES (3, 0)")
    assert demo.end() == 1
    complaint = "kainite: pgbench_branches differs: the source has no more rows, the target ['0', '3',"
    assert demo.lines[-1].startswith(complaint)
    assert demo.left() == []


@pytest.mark.long
def test_a_torn_transaction_fails_the_run_at_once(demos: list[Demo]) -> None:
    demo = Demo(*SMALL, "600")
    demos.append(demo)
    demo.wait_for_line("running pgbench")
    meddle(demo, "UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1")
    assert demo.end() == 1
    assert demo.lines[-1].startswith("kainite: torn transaction in the target: the sums differ after ")
    assert demo.left() == []


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, "starting Kinesis"),
        pytest.param(signal.SIGINT, "starting the daemon", marks=pytest.mark.long),
        (signal.SIGTERM, "running pgbench"),
    ],
)
def test_a_signal_at_any_stage_leaves_nothing_behind(demos: list[Demo], number: signal.Signals, moment: str) -> None:
    demo = Demo(*SMALL, "600")
    demos.append(demo)
    demo.wait_for_line(moment)
    if number == signal.SIGINT:
        os.killpg(demo.process.pid, number)  # as a terminal does
    else:
        demo.process.send_signal(number)
    assert demo.end() == 128 + number, demo.lines
    assert demo.lines[-1] == f"kainite: {number.name}: ending all parts\n"
    assert demo.left() == []
