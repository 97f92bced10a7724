"""TPC-C through the whole way, from the stream to PostgreSQL, while every part of it is killed.

Each snapshot of the target that a reader takes meanwhile must meet TPC-C's twelve consistency conditions, and be a
state of the source.
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.pipeline import LIMIT, Pipeline, emit
from support.stores import Database
from support.tpcc import Source, Watched, emitted
from support.waiting import eventually

APPLY = Path(__file__).with_name("apply_with_task_processes.py")
PORTIONS, PORTION = 6, 15
"""Transactions are put on the stream in so many portions of so many transactions."""

SLOW = 90.0


@pytest.fixture
def pipeline(kinesis: Any, dynamodb: Any, moto_endpoint: str, postgres: str, tmp_path: Path) -> Pipeline:
    name = unique("tpcc")
    store = DynamoDBStore(dynamodb, f"{name}-log")
    return Pipeline(kinesis, store, name, moto_endpoint, Database(postgres), tmp_path)


class Restarted:
    """A process that is started again whenever it was killed, and at the end is killed for good.

    Args:
        start: gives the running process.
    """

    def __init__(self, start: Callable[[], contextlib.AbstractContextManager[subprocess.Popen[bytes]]]) -> None:
        self._start = start
        self._running = contextlib.ExitStack()
        self.process = self._running.enter_context(start())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LIMIT)
        self._running.close()
        self.process = self._running.enter_context(self._start())

    def __enter__(self) -> Restarted:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


@contextlib.contextmanager
def applying(pipeline: Pipeline) -> Iterator[subprocess.Popen[bytes]]:
    table = f"{pipeline.name}-log"
    command = [sys.executable, str(APPLY), pipeline.endpoint, table, pipeline.database.url, "prefix"]
    with (pipeline.folder / "apply").open("ab") as errors, subprocess.Popen(command, stderr=errors) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def harassed(pipeline: Pipeline, seen: Watched, apply: Restarted, chance: random.Random) -> Iterator[Counter[str]]:
    """Kills a task or ends a backend of the target again and again, each time when units were applied since; counts."""
    ended = threading.Event()
    harm: Counter[str] = Counter()

    def harass() -> None:
        before = 0
        while not ended.wait(chance.uniform(0.0, 0.1)):
            harmful = chance.choice((kill_a_task, terminate_a_backend))
            if seen.reached > before and harmful(pipeline, apply):
                before = seen.reached
                harm[harmful.__name__] += 1

    with ThreadPoolExecutor(1) as pool:
        harassing = pool.submit(harass)
        try:
            yield harm
        finally:
            ended.set()
            harassing.result()


def kill_a_task(_: Pipeline, apply: Restarted) -> bool:
    """Kills a task's process, if there is one: a grandchild of the apply job, whose child forks tasks."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(apply.process.pid).children():
            for task in child.children():
                task.kill()
                return True
    return False


def terminate_a_backend(pipeline: Pipeline, _: Restarted) -> bool:
    """Ends a connection in the middle of a transaction of the apply job, if one is seen in a hundred looks."""
    terminate = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kainite apply'"
        " AND datname = current_database() AND state <> 'idle' LIMIT 1"
    )
    with psycopg.connect(pipeline.database.url, autocommit=True) as connection:
        return any(connection.execute(terminate).rowcount for _ in range(100))


def put(pipeline: Pipeline, source: Source, numbers: range, chance: random.Random) -> None:
    """Puts transactions on the shards, each in two records, and some records twice."""
    records = []
    for number in numbers:
        emits = emitted(f"T-{number}", number, source.transaction())
        half = len(emits) // 2
        for piece in (emits[:half], emits[half:]):
            record = {"Data": emit(*piece), "PartitionKey": f"{chance.random()}"}
            records += [record] * chance.choice((1, 1, 2))
    pipeline.kinesis.put_records(StreamName=pipeline.name, Records=records)


def has_reached(seen: Watched, transactions: int) -> bool:
    return seen.reached >= transactions


@pytest.mark.timeout(240)
def test_every_snapshot_is_consistent_while_all_parts_are_killed(pipeline: Pipeline) -> None:
    chance = random.Random(11)
    source = Source(chance)
    source.create(pipeline.database.url)
    properties = pipeline.properties(uowOrder="dense", idleTimeBetweenReadsInMillis="200")

    with (
        source.watched(pipeline.database.url, pause=0.05) as seen,
        Restarted(lambda: pipeline.daemon(properties)) as daemon,
        Restarted(lambda: applying(pipeline)) as apply,
        harassed(pipeline, seen, apply, random.Random(12)) as harm,
    ):
        for portion in range(PORTIONS):
            put(pipeline, source, range(portion * PORTION + 1, (portion + 1) * PORTION + 1), chance)
            eventually(partial(has_reached, seen, (portion - 1) * PORTION), SLOW)
            if portion in (2, 4):
                (daemon if portion == 2 else apply).kill()
        eventually(partial(has_reached, seen, PORTIONS * PORTION), SLOW)
    assert not seen.wrong, seen.wrong
    assert seen.snapshots > PORTIONS
    assert harm.total() >= 5, harm
