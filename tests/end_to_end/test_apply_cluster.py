"""The apply job on a Spark standalone cluster: set up by settings alone, its parts killed, and none of them there.

Each start of a driver and of its executors takes many seconds of processor time; ``make test-long`` runs these tests.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kainite.store.dynamodb import DynamoDBStore
from support.apply_world import World, insert, noted, update
from support.names import unique
from support.spark_cluster import SparkCluster, spark_cluster
from support.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]

LIMIT = 90.0
GRACE_S = 2


@pytest.fixture
def table() -> str:
    return unique("cluster")


@pytest.fixture
def world(dynamodb: Any, postgres: str, table: str) -> World:
    store = DynamoDBStore(dynamodb, table)
    store.create()
    return World(store, postgres)


class Job:
    """``kainite apply`` as a process, and what it said."""

    def __init__(self, folder: Path, world: World, endpoint: str, table: str) -> None:
        self._settings = {
            "applicationName": "cluster", "streamName": "none", "executableName": "none", "regionName": "us-east-1",
            "dynamoDBEndpoint": endpoint, "logTableName": table, "target": world.database.url,
            "applyLeaseMillis": "2000", "applyStallMillis": "10000",
            "shutdownGraceMillis": str(GRACE_S * 1000), "applyPython": sys.executable,
            "applyAwsFrom": "driver",
        }  # fmt: skip
        self._properties = folder / "app.properties"
        self._log = folder / "apply.log"

    @contextlib.contextmanager
    def running(self, master: str, *, small_steps: bool = False, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
        lines = {**self._settings, "applyMaster": master, **settings}
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        command = [sys.executable, "-m", "kainite", "apply", "-p", str(self._properties)]
        if small_steps:
            program = Path(__file__).with_name("apply_in_small_steps.py")
            command = [sys.executable, str(program), str(self._properties), "3", "1"]
        environment: Mapping[str, str] = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        with (
            self._log.open("wb") as log,
            subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    @property
    def said(self) -> str:
        return self._log.read_text(encoding="utf-8")


@pytest.fixture
def job(tmp_path: Path, world: World, moto_endpoint: str, table: str) -> Job:
    return Job(tmp_path, world, moto_endpoint, table)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


def ended(process: subprocess.Popen[bytes]) -> float:
    """Sends TERM; returns the seconds until the process has ended."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(LIMIT)
    return time.monotonic() - began


def test_executors_workers_and_the_master_are_killed_and_each_unit_is_applied_once(
    cluster: SparkCluster, world: World, job: Job
) -> None:
    units = 60
    for n in range(units):
        world.log.unit(f"T-{n:03}", *noted(f"T-{n:03}", insert(n) if n < 20 else update(n % 20, n)))
    with job.running(cluster.master, small_steps=True) as process:
        eventually(lambda: world.acknowledged(), LIMIT)
        os.kill(cluster.executors()[0], signal.SIGKILL)
        eventually(lambda: len(world.journal()) > units // 3, LIMIT)
        cluster.kill(cluster.workers()[0])
        eventually(lambda: len(world.journal()) == units, LIMIT)
        # A master that restarts without recovery has forgotten the job.
        cluster.kill("master")
        cluster.kill(cluster.workers()[0])
        cluster.start_master()
        world.log.unit("T-999", *noted("T-999", insert(999)))
        assert process.wait(LIMIT) != 0
        assert re.search("no executors|no task of a Spark job|SparkContext", job.said)
    assert world.journal() == [f"T-{n:03}" for n in range(units)]
    assert world.items() == {n: units - 20 + n for n in range(20)}


def test_after_the_cluster_is_back_the_next_job_goes_on(cluster: SparkCluster, world: World, job: Job) -> None:
    world.log.unit("T-0", *noted("T-0", insert(0)))
    cluster.start_workers(2)
    with job.running(cluster.master) as process:
        eventually(lambda: world.journal() == ["T-0"], LIMIT)
        assert ended(process) < LIMIT
        assert process.returncode == 0, job.said


def test_without_executors_the_job_says_so_stops_when_asked_and_ends_by_itself(
    tmp_path: Path, world: World, job: Job
) -> None:
    world.log.unit("T-0", *noted("T-0", insert(0)))
    with spark_cluster(tmp_path, workers=0) as empty:
        with job.running(empty.master, applyStallMillis="600000") as process:
            eventually(lambda: "Spark has had no executors" in job.said, LIMIT)
            assert ended(process) < GRACE_S + 15
            assert process.returncode == 0, job.said
        with job.running(empty.master, applyStallMillis="2000") as process:
            assert process.wait(LIMIT) != 0
            assert "Spark has had no executors" in job.said.strip().splitlines()[-1]
    assert world.journal() == []


def test_a_master_that_is_not_there_is_told_and_the_start_can_be_stopped(job: Job) -> None:
    with job.running("spark://127.0.0.1:1") as process:
        eventually(lambda: "waiting for Spark to start" in job.said, LIMIT)
        assert ended(process) < GRACE_S + 10
        assert process.returncode == 0, job.said
        assert "apply job started" not in job.said


def test_executors_that_cannot_work_end_the_start_with_what_to_set(
    cluster: SparkCluster, world: World, job: Job
) -> None:
    with job.running(cluster.master, applyPython=os.path.realpath(sys.executable)) as process:
        assert process.wait(LIMIT) != 0
        assert "set applyPython to one that has kainite[spark] installed" in job.said.strip().splitlines()[-1]
    with job.running(cluster.master, applyAwsFrom="executor") as process:
        assert process.wait(LIMIT) != 0
        assert "applyAwsFrom=driver" in job.said.strip().splitlines()[-1]
