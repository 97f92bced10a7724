"""Starts apply jobs on one log and target, kills them, and tells from the target how far they are."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import javaproperties
import psutil
import psycopg
from apply_failover_parts.units import SCHEMA, units_coming

from kainite.store.dynamodb import DynamoDBStore
from kainite_demo import services
from kainite_demo.postgres_server import postgres
from kainite_demo.processes import Process

LIMIT_S: Final = 180.0
LOOK_S: Final = 0.01

# In a namespace of its own for processes a job is to the others as on another host: they cannot see that its process is
# gone. Only root needs no namespace for users to make one; in it, root may not look into the folders of other users.
_AS_USER: Final = () if os.geteuid() == 0 else ("--user", "--map-root-user")
_ELSEWHERE: Final = ("unshare", *_AS_USER, "--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a target is, at one instant.

    Attributes:
        generation: of the apply job that may commit.
        latest: the latest row.
    """

    generation: int
    latest: int


class Place:
    """A log to which units come, its target, and apply jobs between them.

    Args:
        folder: for the jobs' files.
        connection: a connection to the target.
        settings: lines of the settings file of all jobs.
    """

    def __init__(self, folder: Path, connection: psycopg.Connection[Any], settings: dict[str, str]) -> None:
        self.folder = folder
        self._connection = connection
        self._settings = settings
        self._numbers = count(1)
        self._jobs: list[Process] = []

    def job(self, *, elsewhere: bool = False, **settings: str) -> Process:
        """Starts an apply job.

        Args:
            elsewhere: whether no other job can see its process, as if it ran on another host.
            settings: further lines of its settings file.
        """
        number = next(self._numbers)
        path = self.folder / f"job-{number}.properties"
        path.write_text(javaproperties.dumps({**self._settings, **settings}, timestamp=False))
        command = [sys.executable, "-m", "kainite", "--log-format", "json", "apply", "-p", str(path)]
        environment = {**services.environment(self.folder), "SPARK_LOCAL_IP": "127.0.0.1"}
        job = Process(f"apply job {number}", [*(_ELSEWHERE if elsewhere else ()), *command], self.folder, environment)
        job.start()
        self._jobs.append(job)
        return job

    def end(self) -> None:
        for job in self._jobs:
            job.stop(0.0)

    def reached(self) -> Reached:
        """Returns how far the target is; a job must have begun before."""
        asked = "SELECT (SELECT max(generation) FROM kainite_fence), (SELECT coalesce(max(id), 0) FROM item)"
        row = self._connection.execute(asked).fetchone()
        assert row is not None
        return Reached(*row)

    def check_whole(self) -> None:
        """Raises SystemExit if the target lacks a row before its latest one."""
        row = self._connection.execute("SELECT count(*), coalesce(max(id), 0) FROM item").fetchone()
        if row is None or row[0] != row[1]:
            raise SystemExit(f"the target lacks rows: of those up to the latest it has (count, latest) {row}")

    def await_commit(self, job: Process) -> None:
        """Waits until a job has committed a row that the target does not have now."""
        before = self.reached()
        await_true(lambda: self.reached().latest > before.latest, job)

    def await_fence(self, job: Process, before: int) -> None:
        """Waits until a job has fenced the target with a later generation."""
        await_true(lambda: self.reached().generation > before, job)


def await_true(condition: Callable[[], bool], job: Process) -> None:
    """Waits until a condition holds.

    Raises:
        SystemExit: the job has ended, or the condition does not hold within ``LIMIT_S``.
    """
    end = time.monotonic() + LIMIT_S
    while not condition():
        if job.status is not None or time.monotonic() > end:
            raise SystemExit(job.tail())
        time.sleep(LOOK_S)


def kill(job: Process) -> None:
    """Kills a job with all its processes: Spark's JVM and the Python workers are in groups of their own."""
    below = psutil.Process(job.pid).children(recursive=True)
    job.kill()
    for process in below:
        with suppress(psutil.NoSuchProcess):
            process.kill()


@contextmanager
def place(**settings: str) -> Iterator[Place]:
    """Starts PostgreSQL, DynamoDB's double and the coming of units; gives a place to start jobs in.

    Args:
        settings: lines of the settings file of all jobs.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kaf-", ignore_cleanup_errors=True)))
        target = stack.enter_context(postgres(folder / "target"))
        connection = stack.enter_context(psycopg.connect(target, autocommit=True))
        connection.execute(SCHEMA)
        dynamodb = stack.enter_context(services.moto(folder / "moto.log"))()
        table = "failover-log"
        store = DynamoDBStore(services.dynamodb_client(dynamodb), table)
        store.create()
        stack.enter_context(units_coming(store, table, target))
        common = {
            "applicationName": "failover", "regionName": services.REGION, "dynamoDBEndpoint": dynamodb,
            "logTableName": table, "target": target,
        }  # fmt: skip
        found = Place(folder, connection, {**common, **settings})
        stack.callback(found.end)
        yield found
