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
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from kainite.base.errors import KainiteError, LogCorruptError, LogFencedError
from kainite.log.format.entry import UnitStatus
from kainite.log.state.loading import load_state, load_units, low_water_mark
from kainite.log.store.memory import MemoryStore
from kainite.log.views.unit_table import read_rows
from kainite.uow.catalogue.reflection import reflect
from kainite_spark.executor.group_commit import ApplyOptions, Retry
from kainite_spark.targets.opening import open_target
from simulation.faults import Effects, Faults
from simulation.lease_items import SimDynamoDB, SimTable
from simulation.log_store import SimLogStore
from simulation.loop import Hub, Process, SimEvent
from simulation.oracle import BrokenPromiseError, Oracle
from simulation.parts import edges, run_apply_job, run_daemon, settings_of
from simulation.runner import SimRunner
from simulation.scenario import Incident, Scenario, scenario
from simulation.source import Source
from simulation.stream import TOP, SimKinesis, SimStream
from simulation.target import SimTarget

PATIENCE = 400.0
"""Seconds, after the last fault, within which everything must be in the target."""

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
    """

    seed: int
    problem: str | None
    faults: tuple[tuple[float, str], ...]
    seconds: float
    effects: int
    log: tuple[str, ...] = ()


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
    _names: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def run(self) -> Verdict:
        """Runs the scenario to its verdict."""
        plan = self.plan
        self.faults = Faults(self.hub, plan.seed, plan.rates, plan.until, self.left_out)
        self.source = Source(Random(f"source {plan.seed}"), plan.transactions, plan.style)
        self._make_target()
        self.store = MemoryStore()
        self.table = SimTable()
        self.stream = SimStream(self.hub, plan.shards)
        self.faults.outages.extend(plan.outages)
        with edges(
            self.hub, self.faults, client=self._client, store_of=self._store_of, catalogue=lambda: self.catalogue
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
        self._start_source()
        for slot in range(plan.daemons):
            self._start_daemon(slot)
        for slot in range(plan.daemons, plan.daemons + plan.drivers):
            self._start_driver(slot)
        for number, incident in enumerate(plan.incidents):
            self.hub.after(incident.at, lambda number=number, incident=incident: self._befall(number, incident))  # type: ignore[misc]
        self.hub.after(plan.until, self._calm)
        self.hub.after(plan.healed, self._heal)
        self.hub.after(plan.until, self._audit)
        try:
            self.hub.run(lambda: self.settled, max(plan.until, plan.healed) + PATIENCE)
            if missing := self.oracle.missing():
                return f"not applied {PATIENCE:g} s after the last fault: {', '.join(missing)}"
            if not self.settled:
                return f"applied, but not resolved in the log {PATIENCE:g} s after the last fault"
            self.hub.run(lambda: False, max(self.hub.now, self.faults.latest) + LATE)
        except BrokenPromiseError as broken:
            return str(broken)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    def process(self, name: str, host: str = "") -> Process:
        return Process(self.hub, name, host)

    def seen(self, who: str) -> None:
        """Lets the oracle look at the target, after a transaction of ``who``."""
        wrong = self.oracle.look()
        if wrong is not None and not self.hub.closing:
            self.hub.errors.append(BrokenPromiseError(f"{wrong} (by {who})"))

    def _make_target(self) -> None:
        path = self.folder / "target.db"
        database = sqlite3.connect(path)
        database.executescript(self.source.ddl())
        refused = {f"T-{number}" for number in self.plan.refused}
        database.executemany("INSERT INTO refused VALUES (?)", [(name,) for name in sorted(refused)])
        database.commit()
        database.close()
        self.path = path
        url = f"sqlite:///{path}"
        self.catalogue = reflect(url)
        self.target = open_target(url, self.catalogue)
        self.target.prepare(self.catalogue)
        self.oracle = Oracle(self.source, path)

    def _client(self, service: str, process: Process) -> Any:
        if service == "kinesis":
            return SimKinesis(self.stream, self.faults, process)
        return SimDynamoDB(self.table, self.faults, process)

    def _store_of(self, process: Process) -> Any:
        return SimLogStore(self.store, self.faults, process, self.mounted)

    def _target_of(self, process: Process) -> Any:
        return SimTarget(self.target, self.faults, process, self.seen)

    # The parts.

    def _start_source(self) -> None:
        process = self.process("source")
        self.hub.spawn(process, lambda: self._produce(process))

    def _produce(self, process: Process) -> None:
        """Puts the history on the stream, in batches; a batch whose reply is lost is put again."""
        plan, faults = self.plan, self.faults
        rng = Random(f"producer {plan.seed}")
        effects = Effects(faults, process, "put", TimeoutError, {"unsent", "unanswered", "late", "resent", "again"})
        home = rng.randrange(TOP)
        messages = [message for one in self.source.history for message in self.source.messages(one, rng)]
        place = 0
        while place < len(messages):
            batch = messages[place : place + rng.choice((1, 2, 5, 20))]
            try:
                effects.call("put_records", lambda batch=batch: self._put(batch, home))  # type: ignore[misc]
            except TimeoutError:
                continue
            place += len(batch)
            if rng.random() < 0.05 and self.hub.now < plan.until and faults.happens(f"source begins again at {place}"):
                place = max(0, place - rng.randrange(20))
            self.hub.pause(plan.until * rng.random() * 2 * len(batch) / len(messages))

    def _put(self, batch: list[bytes], home: int) -> None:
        for message in batch:
            key = int(TOP * self.faults.chance(self.faults.named("hash key"))) if self.plan.spread else home
            self.stream.put(key, message)

    def _start_daemon(self, slot: int) -> None:
        process = self.process(f"daemon{slot}.{next(self._names)}", f"host{slot % self.plan.hosts}")
        worker = "w" if self.plan.one_worker else f"w{slot}"
        stop = asyncio.Event()
        self._occupy(slot, process, lambda: self._start_daemon(slot))
        self.stops[slot] = lambda: process.loop.enter(stop.set)
        process.start(run_daemon(settings_of(self.plan, worker), stop), lambda error: self._ended(process, error))

    def _start_driver(self, slot: int) -> None:
        process = self.process(f"apply{slot}.{next(self._names)}", f"host{slot % self.plan.hosts}")
        stop = SimEvent(self.hub)
        plan = self.plan
        options = ApplyOptions(group_units=plan.group_units, retry=Retry(3, 0.0, 0.0))
        runner = SimRunner(
            self.faults, process, self.process, self._store_of, self._target_of, options, max(1, plan.instances)
        )
        store, target = self._store_of(process), self._target_of(process)
        self._occupy(slot, process, lambda: self._start_driver(slot))
        self.stops[slot] = stop.set

        def work() -> None:
            failure: BaseException | None = None
            try:
                run_apply_job(plan, process.name, store, target, runner, stop)
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
            if not isinstance(error, KainiteError) or self._without_cause(process, error):
                self.hub.errors.append(error)
        process.kill()

    # What people do.

    def _heal(self) -> None:
        """Lets the target take what it refused; from now on an operator retries what has failed."""
        with sqlite3.connect(self.path) as database:
            database.execute("DELETE FROM refused")
        database.close()
        self._operate()

    def _operate(self) -> None:
        failed = [unit.uow for unit in load_units(self.store, "0", low_water_mark(self.store, "0")).units.values()
                  if unit.status is UnitStatus.FAILED]  # fmt: skip
        asked = {request["uow"] for _, request in self.store.read_requests("0")}
        for uow in failed:
            if uow not in asked and self.plan.refused:
                self.store.put_request("0", {"action": "retry", "uow": uow, "by": "an operator"})
        self.hub.after(3.0, self._operate)

    def _audit(self) -> None:
        """Looks whether everything is applied, and nothing is unresolved in the log."""
        self.settled = not self.oracle.missing() and self._resolved()
        self.hub.after(2.0, self._audit)

    def _resolved(self) -> bool:
        state = load_state(self.store, "0")
        return not state.units and not state.open

    # What befalls them.

    def _befall(self, number: int, incident: Incident) -> None:
        alive = [slot for slot in sorted(self.running) if not self.running[slot].dead]
        process = self.running[alive[incident.whom % len(alive)]] if alive else None
        if process is None or not self.faults.happens(f"{incident.what} {number} ({process.name})"):
            return
        slot = alive[incident.whom % len(alive)]
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


def run_seed(seed: int, left_out: Collection[str] = ()) -> Verdict:
    """Runs a seed's scenario, without the faults that are left out."""
    return run_scenario(scenario(seed), left_out)


def run_scenario(plan: Scenario, left_out: Collection[str] = ()) -> Verdict:
    folder = Path(tempfile.mkdtemp(prefix="kainite-sim-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        return World(plan, folder, left_out).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
