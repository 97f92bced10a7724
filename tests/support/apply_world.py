"""A log, a target and apply jobs between them, for the apply job's tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from kainite.log.contract import LogStore
from kainite.observe.meter import SILENT, Meter
from kainite.settings import ApplySettings, OnFailure
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.delta import Delta, Operation
from kainite.uow.signing import Signing
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job import ApplyJob
from kainite_spark.driver.job_health import JobHealth
from kainite_spark.driver.runner import Runner
from kainite_spark.targets.contract import Target
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.stop_requests import StopRequests
from support.inline_runner import InlineRunner
from support.main_log import MainLog
from support.stores import Database

TABLES = """
    CREATE TABLE parent (id bigint PRIMARY KEY, v bigint);
    CREATE TABLE item (id bigint PRIMARY KEY, v bigint CHECK (v >= 0), parent_id bigint REFERENCES parent);
    CREATE TABLE journal (tid bigint, what text);
"""
"""``journal`` has no key: a unit that is applied twice has two rows in it, and the rows show the order."""


class World:
    """One log partition and one target.

    Args:
        store: the log's store.
        url: an empty database, or with ``create=False`` one that another world made.
        ledger: the log's name in the target.
        target: the target's URL for Kainite, if it is not ``url``.
        apply: settings with which the target is opened.
        partition: the log partition; two worlds of one store need two.
    """

    def __init__(
        self,
        store: LogStore,
        url: str,
        *,
        ledger: str = "log/0",
        create: bool = True,
        target: str | None = None,
        apply: ApplySettings | None = None,
        partition: str = "0",
    ) -> None:
        self.store = store
        self.partition = partition
        self.database = Database(url, target)
        if create:
            self.database.run(TABLES)
        self.catalogue = reflect(url, () if apply is None else apply.schemas)
        self.target: Target = open_target(self.database.target, self.catalogue, apply=apply)
        self.target.prepare(ledger, self.catalogue)
        self.log = MainLog(store, Signing(self.catalogue), partition)
        self.stop = threading.Event()
        self.ledger = ledger
        self.stops: StopRequests | None = None

    def runner(self) -> InlineRunner:
        return InlineRunner(self.store, self.partition, self.target)

    def job(
        self,
        runner: Runner | None = None,
        *,
        owner: str = "a job",
        meter: Meter = SILENT,
        health: JobHealth | None = None,
        **settings: Any,
    ) -> ApplyJob:
        configured = ApplySettings(**({"lease": 60.0, "idle": 0.01} | settings))
        runner = runner or self.runner()
        environment = ApplyEnvironment(
            configured, self.store, self.partition, owner, self.target, runner, self.ledger, meter=meter,
            health=health or JobHealth(), stops=self.stops,
        )  # fmt: skip
        return ApplyJob(environment, self.stop)

    def apply(self, on_failure: OnFailure = OnFailure.BLOCK, **settings: Any) -> ApplyJob:
        """Runs a job that catches up and ends; then the log copies its outcomes."""
        job = self.job(on_failure=on_failure, **settings)
        job.run(once=True)
        self.log.take_outcomes()
        return job

    @contextmanager
    def living(self, bring: Callable[[], object], *expected: type[Exception]) -> Iterator[None]:
        """Lets an apply job, and what brings units to the log, run on threads meanwhile, as they do for good.

        Args:
            bring: called again and again; brings units.
            expected: errors by which these may end.
        """
        over = threading.Event()

        def follow() -> None:
            while not over.is_set():
                bring()
                self.log.take_outcomes()
                self.log.repair()

        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(follow), pool.submit(self.job().run)]
            try:
                yield
            finally:
                over.set()
                self.stop.set()
                for each in running:
                    with suppress(*expected):
                        each.result()
                self.stop.clear()
        self.log.take_outcomes()

    def items(self) -> dict[int, int]:
        return dict(self.database.rows("SELECT id, v FROM item"))

    def journal(self) -> list[str]:
        """Returns the names that units noted, sorted; each applied unit must be there once."""
        return sorted(what for (what,) in self.database.rows("SELECT what FROM journal"))

    def acknowledged(self) -> list[int]:
        return [tid for (tid,) in self.database.rows("SELECT transaction_id FROM kainite_applied ORDER BY 1")]


def insert(key: int, value: int = 0) -> Delta:
    return Delta("item", Operation.INSERT, {"id": key}, {"id": key, "v": value}, {})


def update(key: int, value: int) -> Delta:
    return Delta("item", Operation.UPDATE, {"id": key}, {"v": value}, {})


def note(uow: str) -> Delta:
    return Delta("journal", Operation.INSERT, {}, {"tid": 0, "what": uow}, {})


def noted(uow: str, *deltas: Delta) -> Sequence[Delta]:
    """Returns the deltas, and a note that the unit was applied."""
    return (*deltas, note(uow))
