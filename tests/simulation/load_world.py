"""One run of a scenario of loads: a target that is loaded while the apply job goes on, and the verdict.

=================================================================  =====================================================
real                                                               simulated
=================================================================  =====================================================
drivers of ``load``, ``add`` and ``reload``, their steps, the      the source and its snapshots (``load_source``), Spark
target's ledgers, the process that keeps a snapshot; the apply     (tasks are processes), the extractor and the daemon:
job, its tasks, PostgreSQL as their target                         a unit is in the log some time after its commit
=================================================================  =====================================================

Commands are started again until they have succeeded, as a person does it. When faults have stopped, the target must be
as of the source's last transaction within :data:`PATIENCE` seconds.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import shutil
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, Final

import psycopg

from kainite.capture.postgresql.replication import SourceSlot
from kainite.log.format.entry import UnitStatus
from kainite.replicate import ledger, table_ledger
from kainite.replicate.ends import ReplicaEnds, target_session
from kainite.replicate.giving_up import give_up_full
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_ledger import found_load
from kainite.replicate.table_ledger import OwnLoadState
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.signing import Signing
from kainite_demo.postgres_server import postgres
from kainite_spark.load.copy_source import PostgresCopySource
from kainite_spark.load.job import LoadJob
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.load.tasks import LoadStepResult, LoadTask, run_step
from kainite_spark.targets.opening import open_target
from simulation.faults import Faults
from simulation.held_copies import HeldCopies
from simulation.hosts import Hosts
from simulation.load_edges import SOURCE, LoadSource
from simulation.load_source import DDL, LoadHistory, LoadOracle
from simulation.load_trips import Trips
from simulation.loop import Hub, Process, SimEvent
from simulation.oracle import BrokenPromiseError
from simulation.parts import ApplyParts, edges, run_apply_job
from simulation.plan import Incident, Scenario
from simulation.runner import SimRunner
from simulation.world import Verdict
from support.main_log import MainLog

PATIENCE: Final = 400.0
"""Seconds, after the last fault, within which everything must be loaded and applied."""

LATE: Final = 45.0
"""Seconds for which the world goes on after that: longer than anybody is frozen."""

LOG: Final = "log/0"
_OWN: Final = "kainite_load, kainite_load_table, kainite_load_step, kainite_held_delta, kainite_load_foreign_key"
_EMPTY: Final = f"DROP TABLE IF EXISTS account, entry, journal; TRUNCATE {_OWN}, kainite_applied, kainite_fence"


@functools.cache
def _server() -> tuple[str, Catalogue]:
    """Starts a server for this process; returns the target and its tables."""
    folder = Path(tempfile.mkdtemp(prefix="kainite-sim-"))
    stack = ExitStack()
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(stack.close)
    url = stack.enter_context(postgres(folder / "pg", synchronous_commit="off"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(DDL.encode())
        catalogue = reflect(url)
        for statement in (*ledger.CREATE, *table_ledger.CREATE):
            connection.execute(statement.encode())
    target = open_target(url, catalogue)
    target.prepare(LOG, catalogue)
    target.close()
    return url, catalogue


class LoadWorld:
    """Everything that outlives the processes."""

    def __init__(self, plan: Scenario, left_out: Collection[str] = ()) -> None:
        self._plan = plan
        self._url, self._catalogue = _server()
        self._hub = Hub()
        self._faults = Faults(self._hub, plan.seed, plan.rates, plan.until, left_out)
        self._hosts = Hosts(plan, self._hub, self._faults)
        self._history = LoadHistory(Random(f"loads {plan.seed}"), plan.transactions, plan.until)
        self._log = MainLog(self._hosts.store, Signing(self._catalogue))
        self._ends = ReplicaEnds(SourceSlot(SOURCE, "s", "p"), self._url, LOG)
        self._commands = list(plan.more.loads)
        self._added = {name: float("inf") for command in self._commands for what, _, name in [command.partition(" ")]
                       if what == "add"}  # fmt: skip
        self._source = LoadSource(
            self._hub, self._faults, self._hosts.process, self._history, self._added, self._url, self._log
        )
        self._before = 0
        self._held = HeldCopies(self._hub, lambda: self._oracle, lambda: self._hosts.running[1].kill())
        self._names = itertools.count(1)
        self._settled = False

    def run(self) -> Verdict:
        """Runs the scenario to its verdict."""
        hub, plan = self._hub, self._plan
        with psycopg.connect(self._url, autocommit=True) as own:
            for script in (_EMPTY, DDL, *(f"DROP TABLE {name}" for name in self._added)):
                own.execute(script.encode())
            own.execute(ledger.PREPARE, (LOG,))
            self._oracle = LoadOracle(self._history, own)
            trips = Trips(hub, self._faults, self._url, self._seen)
            parts: Any = {"client": lambda *_: None, "store_of": self._hosts.store_of,
                          "catalogue": lambda _: self._catalogue}  # fmt: skip
            with edges(hub, self._faults, plan, **parts), self._source.edges(), trips.instead():
                try:
                    problem = self._live()
                finally:
                    hub.close()
        return Verdict(plan.seed, problem, tuple(self._faults.happened), hub.now, sum(self._faults.counts.values()))

    def _live(self) -> str | None:
        hub = self._hub
        for one in self._history.transactions:
            hub.after(one.at, functools.partial(self._source.commits, one))
        hub.after(1.0, self._take_outcomes)
        self._start_apply()
        self._start_driver()
        self._hosts.expect(self._befall)
        hub.after(1.0, self._audit)
        try:
            hub.run(lambda: self._settled, self._plan.until + PATIENCE)
            if not self._settled:
                return f"{PATIENCE:g} s after the last fault: {self._missing()}"
            hub.run(lambda: False, max(hub.now, self._faults.latest) + LATE)
            return self._missing()
        except BrokenPromiseError as broken:
            return str(broken)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    # The parts.

    def _start_driver(self) -> None:
        if not self._commands:
            return
        process = self._hosts.process(f"driver.{next(self._names)}", 1)
        stop = SimEvent(self._hub)
        self._hosts.occupy(1, process, self._start_driver)
        self._hosts.stops[1] = stop.set

        def work() -> None:
            while self._commands and not stop.is_set():
                self._carry_out(process, stop)

        self._spawn(process, work)

    def _carry_out(self, process: Process, stop: SimEvent) -> None:
        what, _, table = self._commands[0].partition(" ")
        steps: Any = LoadSteps(self._hub, self._faults, process, self._hosts.process, self._held.begins)
        halt: Any = stop
        left = self._held.is_left()
        with target_session(self._url, "kainite load driver") as connection:
            if table:
                own = TableLoadJob(
                    PostgresCopySource(self._ends), ("public", table), connection, steps, self._open().connect,
                    lambda: self._catalogue,
                    functools.partial(self._make, table), functools.partial(self._publish, table), halt,
                ).run(anew=left)  # fmt: skip
                live = own.state is OwnLoadState.LIVE
            else:
                found = found_load(connection, LOG)
                begun = 0 if found is None else found.generation
                self._before = self._before or begun
                job = LoadJob(PostgresCopySource(self._ends), connection, steps, lambda: self._catalogue, halt)
                anew = left or (what == "anew" and begun == self._before)
                live = job.run(anew=anew).state is LoadState.LIVE
        if live:
            self._commands.pop(0)
            self._before = 0

    def _make(self, table: str, connection: psycopg.Connection) -> None:
        if table in self._added:
            script = DDL.replace("TABLE", "TABLE IF NOT EXISTS")
            connection.execute(next(one for one in script.split(";") if table in one).encode())

    def _publish(self, table: str) -> None:
        if table in self._added:
            self._added[table] = min(self._added[table], self._hub.now)

    def _open(self) -> Any:
        return open_target(self._url, self._catalogue)

    def _start_apply(self) -> None:
        process = self._hosts.process(f"apply.{next(self._names)}", 0)
        stop = SimEvent(self._hub)
        self._hosts.occupy(0, process, self._start_apply)
        self._hosts.stops[0] = stop.set

        def runner_of(target: Any, options: Any) -> SimRunner:
            return SimRunner(self._faults, process, self._hosts.process, self._hosts.store_of,
                             lambda _, opened: opened, target, options, max(1, self._plan.instances))  # fmt: skip

        parts = ApplyParts(self._hosts.store_of(process), lambda: self._catalogue, lambda _: self._open(),
                           lambda target: target, runner_of, lambda _: None)  # fmt: skip
        self._spawn(process, lambda: run_apply_job(self._plan, process.name, parts, stop))

    def _spawn(self, process: Process, work: Callable[[], None]) -> None:
        def kept() -> None:
            failure: BaseException | None = None
            try:
                work()
            except Exception as error:
                failure = error
            self._hub.after(0.0, lambda: self._hosts.ended(process, failure), process)

        self._hub.spawn(process, kept)

    # What is looked at.

    def _befall(self, incident: Incident) -> None:
        living = [keeper for _, keeper in self._source.snapshots.values() if not keeper.dead]
        if living and incident.what == "keeper":
            living[-1].kill()
        if incident.what == "give up":
            self._give_up_next()
        if incident.what == "leave load":
            self._held.leave_next()
        if incident.what == "late copy":
            self._held.delay_next()

    def _give_up_next(self) -> None:
        """Kills the driver as soon as something is held, and has the apply job give its table up at once."""
        if not self._oracle.holds():
            self._hub.after(0.1, self._give_up_next)
            return
        self._hosts.running[1].kill()
        process = self._hosts.process(f"giver.{next(self._names)}")

        def give_up() -> None:
            self._hub.spawn(process, lambda: give_up_full(self._url, LOG, 0))

        self._hub.after(0.05, give_up)

    def _take_outcomes(self) -> None:
        self._log.take_outcomes()
        self._hub.after(1.0, self._take_outcomes)

    def _seen(self, who: str) -> None:
        wrong = self._oracle.look(self._hub.now)
        if wrong is not None:
            self._hosts.broken(f"{wrong} (by {who})")

    def _missing(self) -> str | None:
        if self._commands or self._source.waiting or self._log.state.units:
            return f"left: {self._commands}, {len(self._source.waiting)} transactions, {self._log.statuses()}"
        return self._oracle.missing()

    def _audit(self) -> None:
        failed = [f"{unit.uow} ({unit.cause})" for unit in self._log.state.units.values()
                  if unit.status in (UnitStatus.FAILED, UnitStatus.BLOCKED)]  # fmt: skip
        if failed:
            self._hosts.broken(f"units have failed, and nothing is wrong with them: {failed[0]}")
        self._settled = self._hub.now > self._plan.until and self._missing() is None
        self._hub.after(2.0, self._audit)


class LoadSteps:
    """Implements :class:`kainite_spark.load.rounds.StepRunner`: each step is a process of its own.

    A step that is lost, or silent for long, has no result; its process may go on later.
    """

    parallelism = 2

    def __init__(
        self, hub: Hub, faults: Faults, driver: Process, new_process: Callable[[str], Process],
        begins: Callable[[LoadTask, int, Process], None],
    ) -> None:  # fmt: skip
        self._hub = hub
        self._begins = begins
        self._faults = faults
        self._driver = driver
        self._new_process = new_process

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        found: dict[int, LoadStepResult | None] = {}
        news = SimEvent(self._hub)
        for step in steps:
            self._start(task, step, found, news)
        while len(found) < len(steps):
            news.clear()
            news.wait(1.0)
            look()
        return [result for result in found.values() if result is not None]

    def _start(self, task: LoadTask, step: int, found: dict[int, LoadStepResult | None], news: SimEvent) -> None:
        hub = self._hub
        process = self._new_process(self._faults.named(f"copy {task.generation}.{step}"))

        def told(result: LoadStepResult | None) -> None:
            found.setdefault(step, result)
            news.set()

        def work() -> None:
            result = run_step(task, step)
            hub.after(0.01, lambda: told(result), self._driver)
            hub.after(0.02, process.kill)

        process.on_death.append(lambda: hub.after(0.5, lambda: told(None), self._driver))
        hub.after(self._faults.between(2.0, 12.0, "patience", process.name), lambda: told(None), self._driver)
        self._begins(task, step, process)
        hub.spawn(process, work)
