"""An apply job whose tasks are processes, as Spark's are.

    apply_with_task_processes.py ENDPOINT TABLE TARGET CONSISTENCY

The log in DynamoDB, the target and the job are real, and a task does what Spark's tasks do. A task whose process is
killed is tried again in another process, up to four times, as Spark does. Tasks outlive an apply job that is
killed. Spark itself is left out: its start takes longer than everything else.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection

from kainite.aws import clients as aws
from kainite.base import logs
from kainite.base.errors import SparkUnavailableError
from kainite.settings import ApplySettings, AwsSettings, Consistency
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job import ApplyJob
from kainite_spark.driver.patience import patiently
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.tasks import TaskSettings, apply_parts, read_slice, session_of, store_of
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from kainite_spark.targets.opening import open_target

TRIES = 4
GROUP_UNITS = 3
FORK_SERVER = multiprocessing.get_context("forkserver")


class ProcessRunner:
    """Implements :class:`kainite_spark.driver.runner.Runner`; each job instance has a process, until it is killed."""

    parallelism = 2

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        self._workers: dict[int, Connection] = {}

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        with ThreadPoolExecutor(batch.instances) as pool:
            return list(pool.map(lambda instance: self._task(batch, instance), range(batch.instances)))

    def _task(self, batch: MicroBatch, instance: int) -> TaskResult:
        for _ in range(TRIES):
            worker = self._workers.get(instance) or self._workers.setdefault(instance, started(self._settings))
            try:
                worker.send((batch, instance))
                result: TaskResult = worker.recv()
            except (EOFError, OSError):
                self._workers.pop(instance).close()
            else:
                return result
        raise SparkUnavailableError(f"task {instance} was lost {TRIES} times")


def started(settings: TaskSettings) -> Connection:
    """Starts a process for tasks; returns the connection for micro-batches and results."""
    ours, theirs = FORK_SERVER.Pipe()
    FORK_SERVER.Process(target=work, args=(settings, theirs)).start()
    theirs.close()
    return ours


def work(settings: TaskSettings, driver: Connection) -> None:
    """Does what a task of Spark does, for one micro-batch after the other, until the driver is gone."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            batch, instance = driver.recv()
            read = read_slice(store_of(settings), settings.partition, batch.slices[instance])
            options = settings.options.suited(batch)
            parts = (part for _, part in read)
            driver.send(apply_parts(partial(session_of, settings), batch.fence, options, instance, parts))


def main(endpoint: str, table: str, url: str, consistency: str) -> None:
    logs.configure()
    FORK_SERVER.set_forkserver_preload([DynamoDBStore.__module__, "psycopg", __name__])
    settings = AwsSettings(region="us-east-1", dynamodb_endpoint=endpoint)
    store = DynamoDBStore(aws.client("dynamodb", settings), table)
    target = open_target(url, catalogue := reflect(url))
    stop = threading.Event()
    patiently(lambda: target.prepare(f"{table}/0", catalogue), stop)
    tasks = TaskSettings("a run", settings, table, "0", target, ApplyOptions(group_units=GROUP_UNITS))
    apply = ApplySettings(
        lease=2.0, idle=0.1, max_units=9, group_units=GROUP_UNITS, consistency=Consistency(consistency)
    )
    environment = ApplyEnvironment(apply, store, "0", "a job", target, ProcessRunner(tasks), f"{table}/0")
    ApplyJob(environment, stop).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
