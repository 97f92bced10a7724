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
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest import mock

import psycopg

import kainite.replicate.keeper
import kainite.replicate.page_ranges
import kainite_spark.load.job
import kainite_spark.load.rounds
import kainite_spark.load.table_job
import kainite_spark.load.tasks
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.log.format.entry import UnitStatus
from kainite.replicate import ledger, table_ledger
from kainite.replicate.ends import ReplicaEnds, target_session
from kainite.replicate.keeper import KeeperWork
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_ledger import found_load
from kainite.replicate.tables import ReplicaColumn, ReplicaTable, TablePart
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import UnitEnd
from kainite.uow.signing import Signing
from kainite_demo.postgres_server import postgres
from kainite_spark.load.job import LoadJob
from kainite_spark.load.table_job import TableLoadJob
from kainite_spark.load.tasks import LoadStepResult, LoadTask, run_step
from kainite_spark.targets.opening import open_target
from simulation.faults import Faults
from simulation.hosts import Hosts
from simulation.load_source import DDL, STEP, TABLES, LoadHistory, LoadOracle, LoadTransaction
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
_SOURCE: Final = "postgresql://source"
_ROWS_OF_A_PAGE: Final = 3
_RANGE: Final = re.compile(r"FROM ONLY (\w+) WHERE ctid >= '\((\d+),0\)'::tid(?: AND ctid < '\((\d+),0\)'::tid)?")
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
    target.prepare(catalogue)
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
        self._source = SourceSlot(_SOURCE, "s", "p")
        self._log = MainLog(self._hosts.store, Signing(self._catalogue))
        self._ends = ReplicaEnds(SourceSlot(_SOURCE, "s", "p"), self._url, LOG)
        self._commands = list(plan.more.loads)
        self._added = {name: float("inf") for command in self._commands for what, _, name in [command.partition(" ")]
                       if what == "add"}  # fmt: skip
        self._snapshots: dict[str, tuple[int, Process]] = {}
        self._kept: dict[Process, dict[str, psycopg.Connection]] = {}
        self._waiting: list[LoadTransaction] = []
        self._before = 0
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
            with edges(hub, self._faults, plan, **parts), self._source_edges(), trips.instead():
                try:
                    problem = self._live()
                finally:
                    hub.close()
        return Verdict(plan.seed, problem, tuple(self._faults.happened), hub.now, sum(self._faults.counts.values()))

    def _live(self) -> str | None:
        hub = self._hub
        for one in self._history.transactions:
            hub.after(one.at, functools.partial(self._commits, one))
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

    # The source, and what the extractor and the daemon make of it.

    def _commits(self, one: LoadTransaction) -> None:
        """Has a transaction commit; some time later the log has it, behind all that committed before."""
        self._waiting.append(one)
        self._hub.after(self._faults.between(0.1, 3.0, "extracted", one.lsn), functools.partial(self._extract, one))

    def _extract(self, last: LoadTransaction) -> None:
        while self._waiting and self._waiting[0].lsn <= last.lsn:
            one = self._waiting.pop(0)
            sent = [delta for delta in one.deltas if one.at >= self._added.get(delta.table, 0.0)]
            self._log.append(self._log.fragment(one.uow, *sent, ends=(UnitEnd(len(sent)),)))

    def _nudge(self) -> None:
        """Commits an empty transaction behind all others."""
        lsn = self._history.committed(self._hub.now) * STEP + STEP // 2 + next(self._names)
        self._commits(LoadTransaction(self._hub.now, lsn, ()))

    def _point(self) -> int:
        """Returns where a consistent point is now: at the next commit, or in front of it."""
        done = self._history.committed(self._hub.now)
        return (done + 1) * STEP if done % 2 and done < self._plan.transactions else done * STEP + STEP // 4

    def _published(self, *_: Any) -> tuple[ReplicaTable, ...]:
        state = self._history.states[self._history.committed(self._hub.now)]
        return tuple(
            ReplicaTable("public", name, f"public.{name}", tuple(ReplicaColumn(one, "bigint") for one in columns), (),
                         "d", 0, (TablePart(1, name, 1 + len(state[name]) // _ROWS_OF_A_PAGE, 1),))
            for name, columns in TABLES.items() if self._hub.now >= self._added.get(name, 0.0)
        )  # fmt: skip

    def _kept_snapshot(self, ends: ReplicaEnds, generation: int, *_: Any) -> ConsistentPoint:
        self._hub.pause(0.3)
        lsn, name = self._point(), f"{next(self._names)}-sim"
        keeper = self._hosts.process(f"keeper {name}")
        self._snapshots[name] = (self._history.committed(self._hub.now), keeper)
        work = KeeperWork(_SOURCE, self._url, ends.log_partition, generation, (), 10.0)

        def keep() -> None:
            kainite.replicate.keeper._hold(work, name, None)  # type: ignore[arg-type]  # noqa: SLF001
            keeper.kill()

        self._hub.spawn(keeper, keep)
        self._hub.pause(0.1)
        return ConsistentPoint(lsn, name, SourceIdentity("1", 1, "shop"))

    def _lives(self, _: str, snapshot: str) -> bool:
        return snapshot in self._snapshots and not self._snapshots[snapshot][1].dead

    @contextmanager
    def _session(self, original: Any, url: str, name: str) -> Iterator[Any]:
        """Gives a session with the target, or what stands for one with the source."""
        if url == _SOURCE:
            yield []
        else:
            with original(url, name) as session:
                yield session

    @contextmanager
    def _under(self, session: list[int], snapshot: str) -> Iterator[None]:
        if not self._lives(_SOURCE, snapshot):
            raise kainite_spark.load.tasks._SnapshotLostError(snapshot)  # noqa: SLF001
        session.append(self._snapshots[snapshot][0])
        yield

    def _blocks(self, session: list[int], query: str) -> Iterator[bytes]:
        """Yields the rows of a range as of the session's snapshot."""
        found = _RANGE.search(query)
        assert found is not None, query
        rows = list(self._history.states[session[0]][found[1]].values())
        first, end = int(found[2]), int(found[3] or len(rows) + 1)
        for row in rows[first * _ROWS_OF_A_PAGE : end * _ROWS_OF_A_PAGE]:
            yield ("\t".join(map(str, row)) + "\n").encode()

    @contextmanager
    def _source_edges(self) -> Iterator[None]:
        """Puts the simulated source in the place of a real one."""
        job, table_job, tasks = kainite_spark.load.job, kainite_spark.load.table_job, kainite_spark.load.tasks
        world = self

        class Sessions:
            @property
            def kept(self) -> dict[str, psycopg.Connection]:
                assert world._hub.process is not None
                return world._kept.setdefault(world._hub.process, {})

        original = tasks._session  # noqa: SLF001
        with ExitStack() as stack:
            for place, name, value in (
                *((module, "look_at_sessions", lambda _: ()) for module in (job, table_job)),
                *((module, "check_slot", lambda _: None) for module in (job, table_job)),
                *((module, "kept_snapshot", self._kept_snapshot) for module in (job, table_job)),
                (LoadJob, "_published", self._published),
                (
                    TableLoadJob,
                    "_published",
                    lambda own: next(one for one in self._published() if one.place == own.table),
                ),
                (TableLoadJob, "_nudge", lambda _: self._nudge()),
                (kainite_spark.load.rounds, "lives", self._lives),
                (kainite.replicate.keeper, "execute", lambda *_: None),
                (kainite.replicate.page_ranges, "LEAST_PAGES", 1),
                (tasks, "_SESSIONS", Sessions()),
                (tasks, "_session", functools.partial(self._session, original)),
                (tasks, "_under", self._under),
                (tasks, "_blocks", self._blocks),
            ):
                stack.enter_context(mock.patch.object(place, name, value))
            yield

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
        steps: Any = LoadSteps(self._hub, self._faults, process, self._hosts.process)
        halt: Any = stop
        with target_session(self._url, "kainite load driver") as connection:
            if table:
                done = TableLoadJob(
                    self._ends, ("public", table), connection, steps, self._open().connect,
                    functools.partial(self._make, table), functools.partial(self._publish, table), halt,
                ).run()  # fmt: skip
            else:
                found = found_load(connection, LOG)
                begun = 0 if found is None else found.generation
                self._before = self._before or begun
                job = LoadJob(self._ends, connection, steps, lambda: self._catalogue, halt)
                done = job.run(anew=what == "anew" and begun == self._before)
        if done.state == LoadState.LIVE.value:
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
        living = [keeper for _, keeper in self._snapshots.values() if not keeper.dead]
        if living and incident.what == "keeper":
            living[-1].kill()

    def _take_outcomes(self) -> None:
        self._log.take_outcomes()
        self._hub.after(1.0, self._take_outcomes)

    def _seen(self, who: str) -> None:
        wrong = self._oracle.look(self._hub.now)
        if wrong is not None:
            self._hosts.broken(f"{wrong} (by {who})")

    def _missing(self) -> str | None:
        if self._commands or self._waiting or self._log.state.units:
            return f"left: {self._commands}, {len(self._waiting)} transactions, {self._log.statuses()}"
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

    def __init__(self, hub: Hub, faults: Faults, driver: Process, new_process: Callable[[str], Process]) -> None:
        self._hub = hub
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
        hub.spawn(process, work)
