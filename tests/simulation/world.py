"""One run of a scenario: the world, its processes, and the verdict.

The world keeps each part going as an operator's init system does: a daemon or an apply job that ends or is killed
starts again some seconds later, as a new process. When faults have stopped, everything frozen goes on, and then
everything that the source did must be in the target within :data:`PATIENCE` seconds; for some time more the oracle
watches for what wakes up late.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from kainite.base.errors import (
    KainiteError,
    LogCorruptError,
    LogFencedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.log.format.entry import UnitStatus
from kainite.log.service.sharing.following import LogFeed
from kainite.log.state.loading import load_state
from kainite.log.store.memory import MemoryStore
from kainite.log.views.unit_table import read_rows
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.executor.group_commit import ApplyOptions
from kainite_spark.targets.opening import open_target
from simulation.faults import NO_RESENDING, Effects, Faults
from simulation.lease_items import SimDynamoDB, SimTable
from simulation.log_store import SimLogStore
from simulation.loop import Hub, Process, SimEvent
from simulation.oracle import BrokenPromiseError, Oracle
from simulation.parts import ApplyParts, edges, run_apply_job, run_daemon, settings_of
from simulation.people import Operator, Producer, allowed
from simulation.runner import SimRunner
from simulation.scenario import OWNER, Incident, Scenario, scenario
from simulation.source import Source
from simulation.stream import SimKinesis, SimStream
from simulation.target import Limits, Lock, SimTarget

PATIENCE = 400.0
"""Seconds, after the last fault, within which everything must be in the target."""

EACH_DISCARD = 40.0
"""Seconds more for each transaction that an operator may have to discard, one after the other, after some tries."""

MOST_RECORDS = 13
"""More than a batch has records (:mod:`simulation.stream`), and so an append units, where they are not numbered."""

LATE = 12.0
"""Seconds for which the world goes on after that, and after the last zombie has woken up."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a run.

    Attributes:
        seed: of the scenario.
        problem: what is wrong; None when nothing is.
        faults: what went wrong around Kainite: time and name.
        seconds: of virtual time.
        effects: how many requests were made.
        log: the log's units at the end, when something is wrong.
        aim: of the scenario.
    """

    seed: int
    problem: str | None
    faults: tuple[tuple[float, str], ...]
    seconds: float
    effects: int
    log: tuple[str, ...] = ()
    aim: str = ""


@dataclass
class World:
    """Everything that outlives the processes."""

    plan: Scenario
    folder: Path
    left_out: Collection[str] = ()
    hub: Hub = field(default_factory=Hub)
    running: dict[int, Process] = field(default_factory=dict)
    stops: dict[int, Callable[[], None]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    settled: bool = False
    mounted: dict[str, str] = field(default_factory=dict)
    _catalogue: list[Catalogue] = field(default_factory=list)
    _names: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def run(self) -> Verdict:
        """Runs the scenario to its verdict."""
        plan = self.plan
        self.faults = Faults(self.hub, plan.seed, plan.rates, plan.until, self.left_out)
        corrected = {correction: one for one, correction in plan.more.poison if correction is not None}
        self.source = Source(
            Random(f"source {plan.seed}"), plan.transactions, plan.style, plan.more.changes, corrected
        )  # fmt: skip
        self.store = MemoryStore()
        self.table = SimTable()
        self.stream = SimStream(self.hub, plan.shards)
        self.limits = Limits(
            [Lock(begin, end, f"T-{number}") for begin, end, number in plan.more.locks], plan.more.most_units
        )
        self.producer = Producer(self)
        self._make_target()
        self.faults.outages.extend(plan.outages)
        with edges(
            self.hub, self.faults, plan, client=self._client, store_of=self.store_of, catalogue=self._read_catalogue
        ):
            try:
                problem = self._live()
            finally:
                self.hub.close()
        verdict = Verdict(
            plan.seed, problem, tuple(self.faults.happened), self.hub.now, sum(self.faults.counts.values()),
            tuple(self._log_rows()) if problem else (),
        )  # fmt: skip
        self.oracle.close()
        return verdict

    def _live(self) -> str | None:
        plan = self.plan
        self.producer.start()
        for slot in range(plan.daemons):
            self._start_daemon(slot)
        for slot in range(plan.daemons, plan.daemons + plan.drivers):
            self._start_driver(slot)
        for number, incident in enumerate(plan.incidents):
            self.hub.after(incident.at, lambda number=number, incident=incident: self._befall(number, incident))  # type: ignore[misc]
        operator = Operator(self)
        self.hub.after(plan.until, self._calm)
        self.hub.after(plan.healed, operator.heal)
        self.hub.after(1.0, self._audit)
        patience = PATIENCE + EACH_DISCARD * plan.transactions * any(by is None for _, by in plan.more.poison)
        limit = max(plan.until, plan.healed, self.producer.longest) + patience
        try:
            self.hub.run(lambda: self.settled, limit)
            if missing := self.oracle.missing():
                return f"not applied {patience:g} s after the last fault: {', '.join(missing)}"
            if not self.settled:
                return f"applied, but not resolved in the log {patience:g} s after the last fault"
            self.hub.run(lambda: False, max(self.hub.now, self.faults.latest) + LATE)
        except BrokenPromiseError as broken:
            return str(broken)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    def process(self, name: str, host: str = "") -> Process:
        return Process(self.hub, name, host, self.plan.more.pids)

    def broken(self, wrong: str) -> None:
        """Ends the run: a promise is broken."""
        if not self.hub.closing:
            self.hub.errors.append(BrokenPromiseError(wrong))

    def seen(self, who: str) -> None:
        """Lets the oracle look at the target, after a transaction of ``who``."""
        wrong = self.oracle.look()
        if wrong is not None:
            self.broken(f"{wrong} (by {who})")

    def make_change(self, script: str) -> None:
        """Changes the target's tables."""
        database = sqlite3.connect(self.path, isolation_level=None)
        database.executescript(script)
        database.close()
        self._catalogue.clear()

    def restart_daemons(self) -> None:
        """Kills the daemons; they start again, and read the catalogue."""
        for slot in range(self.plan.daemons):
            self.running[slot].kill()

    def _make_target(self) -> None:
        self.path = self.folder / "target.db"
        database = sqlite3.connect(self.path)
        database.executescript(self.source.ddl())
        refused = {f"T-{number}" for number in (*self.plan.refused, *(one for one, _ in self.plan.more.poison))}
        database.executemany("INSERT INTO refused VALUES (?)", [(name,) for name in sorted(refused)])
        database.commit()
        database.close()
        catalogue = self._catalogue_now()
        self._open(catalogue).prepare(catalogue)
        self.oracle = Oracle(self.source, self.path, allowed(self.plan, self.source, self.producer.interrupted))

    def _open(self, catalogue: Catalogue | None) -> Any:
        return open_target(f"sqlite:///{self.path}", catalogue)

    def _catalogue_now(self) -> Catalogue:
        """Returns the target's catalogue, in which each second name of a table is a partition of it."""
        if not self._catalogue:
            found = dict(reflect(f"sqlite:///{self.path}").tables)
            for table in self.source.tables.values():
                if table.parted and table.name in found:
                    found[table.part] = replace(found[table.name], name=table.part, part_of=table.name)
            self._catalogue.append(Catalogue(found))
        return self._catalogue[0]

    def _read_catalogue(self, process: Process) -> Catalogue:
        effects = Effects(self.faults, process, "target", TargetUnavailableError, NO_RESENDING)
        return effects.call("catalogue", self._catalogue_now)

    def _client(self, service: str, process: Process) -> Any:
        if service == "kinesis":
            return SimKinesis(self.stream, self.faults, process)
        return SimDynamoDB(self.table, self.faults, process)

    def store_of(self, process: Process) -> Any:
        return SimLogStore(self.store, self.faults, process, self._has_mounted)

    def _has_mounted(self, partition: str, name: str, released: bool) -> None:
        """Notes who owns a log partition; takes it ill when somebody took it from a living owner without a fault."""
        before = self.mounted.get(partition)
        self.mounted[partition] = name
        alive = [one for one in self.hub.processes if one.name == before and not (one.dead or one.frozen)]
        if alive and not released and before != name and self.hub.now > max(self.plan.until, self.faults.latest) + 20.0:
            self.broken(f"{name} took log partition {partition} from {before}, which was well")

    # The parts.

    def _start_daemon(self, slot: int) -> None:
        process = self.process(f"daemon{slot}.{next(self._names)}", f"host{slot % self.plan.hosts}")
        worker = "w" if self.plan.one_worker else f"w{slot}"
        stop = asyncio.Event()
        self._occupy(slot, process, lambda: self._start_daemon(slot))
        self.stops[slot] = lambda: process.loop.enter(stop.set)
        settings = settings_of(self.plan, worker)
        if self.hub.now >= self.plan.more.striped_from:
            settings = replace(settings, log=replace(settings.log, stripes=self.plan.more.stripes))
        process.start(run_daemon(settings, stop), lambda error: self._ended(process, error))

    def _start_driver(self, slot: int) -> None:
        process = self.process(f"apply{slot}.{next(self._names)}", f"host{slot % self.plan.hosts}")
        stop = SimEvent(self.hub)
        plan = self.plan

        def wrapped(target: Any, of: Process = process) -> SimTarget:
            return SimTarget(target, self.faults, of, self.seen, self.limits)

        def runner_of(target: Any, options: ApplyOptions) -> SimRunner:
            return SimRunner(
                self.faults, process, self.process, self.store_of, lambda of, opened: wrapped(opened, of), target,
                options, max(1, plan.instances),
            )  # fmt: skip

        def beside(feed: LogFeed) -> None:
            process.loop.enter(lambda: process.loop.create_task(feed.run()))

        parts = ApplyParts(
            self.store_of(process), lambda: self._read_catalogue(process), self._open, wrapped, runner_of, beside
        )
        self._occupy(slot, process, lambda: self._start_driver(slot))
        self.stops[slot] = stop.set

        def work() -> None:
            failure: BaseException | None = None
            try:
                run_apply_job(plan, process.name, parts, stop)
            except Exception as error:
                failure = error
            self.hub.after(0.0, lambda: self._ended(process, failure), process)

        self.hub.spawn(process, work)

    def _occupy(self, slot: int, process: Process, again: Callable[[], None]) -> None:
        self.running[slot] = process

        def restart() -> None:
            if self.running[slot] is process:
                pause = self.faults.between(0.2, 8.0, "restart", process.name)
                self.hub.after(pause, again)

        process.on_death.append(restart)

    def _ended(self, process: Process, error: BaseException | None) -> None:
        """Takes note of a process that ended by itself; only Kainite's own errors may end one."""
        if error is not None:
            self.notes.append(f"{self.hub.now:.3f} {process.name} ended: {error}")
            stopped = isinstance(error, TargetRejectedError) and not self.plan.more.stop
            if not isinstance(error, KainiteError) or stopped or self._without_cause(process, error):
                self.hub.errors.append(error)
        process.kill()

    def _audit(self) -> None:
        """Looks whether everything is applied, and at the log: nothing unresolved, nothing failed without a cause."""
        state = load_state(self.store, "0")
        failed = [unit for unit in state.units.values() if unit.status is UnitStatus.FAILED
                  and not self.oracle.allowed.extras.may_fail(unit.uow)]  # fmt: skip
        if failed and not self.plan.may_fail:
            self.broken(f"{failed[0].uow} has failed ({failed[0].cause}), and nothing is wrong with it")
        bound = self.plan.more.backlog_units
        if bound and not self.plan.spread and len(state.units) > bound + MOST_RECORDS:
            self.broken(f"{len(state.units)} units wait to be applied; the bound is {bound}")
        self.settled = not self.oracle.missing() and not state.units and not state.open and self.producer.done
        self.hub.after(2.0, self._audit)

    # What befalls them.

    def _befall(self, number: int, incident: Incident) -> None:
        alive = [slot for slot in sorted(self.running) if not self.running[slot].dead]
        if incident.whom == OWNER:
            alive = [slot for slot in alive if self.running[slot].name == self.mounted.get("0")]
        slot = alive[incident.whom % len(alive)] if alive else None
        if slot is None or not self.faults.happens(f"{incident.what} {number} ({self.running[slot].name})"):
            return
        process = self.running[slot]
        match incident.what:
            case "kill":
                process.kill()
            case "freeze":
                process.freeze()
                self.faults.later(incident.amount, process.resume)
            case "stop":
                self.hub.after(0.0, self.stops[slot], process)
            case "skew":
                process.skew += incident.amount
            case "split":
                shards = self.stream.open
                self.stream.split(shards[incident.whom % len(shards)])
            case "merge":
                shards = sorted(self.stream.open, key=lambda shard: shard.start)
                if len(shards) > 1:
                    at = incident.whom % (len(shards) - 1)
                    self.stream.merge(shards[at], shards[at + 1])

    def _calm(self) -> None:
        """Ends all faults but those of zombies, whose sleep was decided before."""
        for slot in self.running:
            self.hub.after(self.faults.between(0.0, 5.0, "calm", slot), self.running[slot].resume)

    def _without_cause(self, process: Process, error: KainiteError) -> bool:
        """Tells whether a process gave its log partition up though nobody else has mounted the partition since."""
        gave_up = isinstance(error, LogCorruptError | LogFencedError)
        return gave_up and process.name in self.mounted.values()

    def _log_rows(self) -> list[str]:
        try:
            return [f"{row.id} {row.uow} {row.status} {row.cause or ''}" for row in read_rows(self.store, "0")]
        except KainiteError as error:
            return [str(error)]


def run_seed(seed: int, left_out: Collection[str] = (), aim: str = "") -> Verdict:
    """Runs a seed's scenario, without the faults that are left out; with an aim in that variant."""
    return replace(run_scenario(scenario(seed, aim), left_out), aim=aim)


def run_scenario(plan: Scenario, left_out: Collection[str] = ()) -> Verdict:
    folder = Path(tempfile.mkdtemp(prefix="kainite-sim-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        return World(plan, folder, left_out).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
