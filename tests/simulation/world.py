"""One run of a scenario: the world, its processes, and the verdict.

:mod:`simulation.hosts` keeps each part going. When faults have stopped, everything frozen goes on, and then
everything that the source did must be in the target within :data:`PATIENCE` seconds; for some time more the oracle
watches for what wakes up late.
"""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from kainite.base.errors import KainiteError, TargetUnavailableError
from kainite.log.format.entry import UnitStatus
from kainite.log.state.loading import load_state
from kainite.log.views.unit_table import read_rows
from kainite.peers.feed.following import LogFeed
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.several import only
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.log_tables import LogTables, log_tables
from kainite_spark.targets.opening import open_target
from simulation.atomic import opened_together, wrapped_together
from simulation.claims import ONLY, Application, ClaimedTarget, Claims
from simulation.common_marks import CommonMarks
from simulation.faults import NO_RESENDING, Effects, Faults
from simulation.hosts import Hosts
from simulation.lease_asking import LeaseAsking
from simulation.lease_items import SimDynamoDB, SimTable
from simulation.loop import Hub, Process, SimEvent
from simulation.lost import Lost
from simulation.odd import OddUnits
from simulation.oracle import BrokenPromiseError, Oracle
from simulation.parts import ApplyParts, edges, run_apply_job, run_daemon, settings_of
from simulation.people import Operator, Producer, allowed
from simulation.plan import Incident, Scenario
from simulation.repairs import Repairs
from simulation.runner import SimRunner
from simulation.second_target import ASSIGNMENT, FIRST, SECOND, SecondTarget
from simulation.several import SimStreams, unchanged
from simulation.source import Source
from simulation.stream import SimKinesis
from simulation.target import Gate, Limits, Lock, SimTarget
from simulation.went_back import WentBack

PATIENCE = 400.0
"""Seconds, after the last fault, within which everything must be in the target."""

EACH_DISCARD = 40.0
"""Seconds more for each transaction that an operator may have to discard, one after the other, after some tries."""

MOST_RECORDS = 13
"""More than a batch has records (:mod:`simulation.stream`), and so an append units, where they are not numbered."""

MOST_TOGETHER = 20
"""Most messages that the source puts in one aggregate."""

AUDIT_S = 2.0
"""Seconds between two looks at the whole log; more of them where a history has many units."""

LATE = 12.0
"""Seconds for which the world goes on after that, and after the last zombie has woken up."""

LATEST_REQUEST_S = 30.0
"""Seconds after which no request is on its way any more (:mod:`simulation.faults`)."""


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


def without_error(live: Callable[[], str | None]) -> str | None:
    """Returns what is wrong with a run, or the error that ended it."""
    try:
        return live()
    except BrokenPromiseError as broken:
        return str(broken)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@dataclass
class World:
    """Everything that outlives the processes."""

    plan: Scenario
    folder: Path
    left_out: Collection[str] = ()
    hub: Hub = field(default_factory=Hub)
    application: Application = ONLY
    names: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    claims: Claims | None = None
    settled: bool = False
    stream_lost: Lost = field(default_factory=Lost)
    _catalogue: list[Catalogue] = field(default_factory=list)

    def run(self) -> Verdict:
        """Runs the scenario to its verdict."""
        plan = self.plan
        self.make(Faults(self.hub, plan.seed, plan.rates, plan.until, self.left_out))
        with edges(
            self.hub,
            self.faults,
            self.plan,
            client=self.client,
            store_of=self.hosts.store_of,
            catalogue=self.read_catalogue,
            told=self._told,
        ):
            try:
                problem = without_error(self._live)
            finally:
                self.hub.close()
        verdict = Verdict(
            plan.seed, problem, tuple(self.faults.happened), self.hub.now, sum(self.faults.counts.values()),
            tuple(self.log_rows()) if problem else (),
        )  # fmt: skip
        self.close()
        return verdict

    def make(self, faults: Faults) -> None:
        """Makes everything that outlives the processes."""
        plan, self.faults = self.plan, faults
        self.hosts = Hosts(plan, self.hub, self.faults)
        self.store = self.hosts.store
        corrected = {correction: one for one, correction in plan.more.poison if correction is not None}
        self.source = Source(
            Random(f"source {plan.seed}"), plan.transactions, plan.style, plan.more.changes, corrected,
            self.application.prefix,
        )  # fmt: skip
        self.plan = plan = replace(plan, refused=self.source.refused(plan.refused))
        self.source.odd = OddUnits(plan.more.odd)
        self.table = SimTable()
        self.asking = LeaseAsking(self.table, self.hosts.broken)
        self.stream = SimStreams(self.hub, plan)
        self.limits = Limits(
            [Lock(begin, end, f"T-{number}") for begin, end, number in plan.more.locks], plan.more.most_units
        )
        self.gate, self.second_gate = Gate(self.hosts.broken), Gate(self.hosts.broken)
        self.second = self.source.second = self._second_target()
        self.marks: CommonMarks | None = None
        self.producer = Producer(self)
        self.went_back = WentBack(self)
        self._make_target()
        self.faults.outages[:] = plan.outages

    def close(self) -> None:
        """Closes what the oracles have opened."""
        self.oracle.close()
        if self.second is not None:
            self.second.close()
        if self.marks is not None:
            self.marks.close()

    def begin(self) -> None:
        """Starts the parts, and schedules what befalls them."""
        plan = self.plan
        self.producer.start()
        self.went_back.begin()
        for slot in range(plan.daemons):
            self._start_daemon(slot)
        jobs = plan.drivers * (2 if plan.more.two_targets and not plan.more.atomic else 1)
        for slot in range(plan.daemons, plan.daemons + jobs):
            self._start_driver(slot)
        for slot, at in enumerate(plan.more.changed[: plan.daemons]):
            self.hub.after(at, lambda slot=slot: self.hosts.running[slot].kill())  # type: ignore[misc]
        self.hosts.expect(self._reshard)
        Repairs(self).begin()
        operator = Operator(self)
        operator.begin()
        self.hub.after(plan.healed, operator.heal)
        self.hub.after(1.0, self._audit)
        if plan.more.two_logs is not None and self.application.prefix:
            # A request of the old file that arrives late takes what nobody but its log's next start gives up.
            for at in (plan.more.two_logs, plan.until + LATEST_REQUEST_S):
                self.hub.after(at, self.restart_drivers)
        for at, age in plan.more.trims:
            self.hub.after(at, lambda age=age: self._trim(age))  # type: ignore[misc]
        patience = PATIENCE + EACH_DISCARD * plan.transactions * (
            any(by is None for _, by in plan.more.poison) or bool(OddUnits(plan.more.odd).hopeless())
        )
        self._patience = patience
        self.limit = max(plan.until, plan.healed, self.producer.longest) + patience

    def _live(self) -> str | None:
        self.begin()
        self.hub.run(lambda: self.settled, self.limit)
        if self.stream_lost.numbers:
            return self.stream_lost.judged(self.oracle.there, self.stream.filled)
        if self.went_back.settles():
            return None
        if (wrong := self.unfinished()) is not None:
            return wrong
        self.hub.run(lambda: False, max(self.hub.now, self.faults.latest) + LATE)
        return None

    def unfinished(self) -> str | None:
        """Returns what had to come and has not, when patience is over."""
        after = f"{self._patience:g} s after the last fault"
        if missing := self._missing():
            return f"not applied {after}: {', '.join(missing)}"
        if not self.settled:
            left = "a request about a lease has not ended" if self.asking.is_open() else "not resolved in the log"
            return f"applied, but {left} {after}"
        return None

    def seen(self, who: str) -> None:
        """Lets the oracle look at the target, after a transaction of ``who``."""
        if self.went_back.hides():
            return
        if self.claims is not None:
            self.claims.look()
        wrong = self.oracle.look() or self._not_in_the_log() or self._wrong_mark()
        if wrong is not None:
            self.hosts.broken(f"{wrong} (by {who})")

    def seen_second(self, who: str) -> None:
        """Lets the oracle look at the second target, after a transaction of ``who``."""
        assert self.second is not None
        if (wrong := self.second.look() or self._wrong_mark()) is not None:
            self.hosts.broken(f"{wrong} (by {who})")

    def _wrong_mark(self) -> str | None:
        return self.marks.look() if self.marks is not None else None

    def _missing(self) -> list[str]:
        return [*self.oracle.missing(), *(self.second.missing() if self.second is not None else ())]

    def _second_target(self) -> SecondTarget | None:
        plan = self.plan
        if not plan.more.two_targets:
            return None
        return SecondTarget(
            self.folder, plan.transactions, plan.refused, prefix=plan.more.prefix, together=plan.more.atomic
        )

    def _not_in_the_log(self) -> str | None:
        """Returns what is applied that the log does not have: what was never durable may not come again."""
        early = {one.name for one in self.oracle.there.values()} - self.hosts.tenures.units
        return f"{min(early)} is applied, and the log does not have it" if early else None

    def make_change(self, script: str) -> None:
        """Changes the target's tables."""
        database = sqlite3.connect(self.path, isolation_level=None)
        database.executescript(script)
        database.close()
        self._catalogue.clear()

    def restart_daemons(self) -> None:
        """Kills the daemons; they start again, and read the catalogue."""
        for slot in range(self.plan.daemons):
            self.hosts.running[slot].kill()

    def restart_drivers(self) -> None:
        """Kills the apply jobs; they start again, read the settings file, and look at the target."""
        for slot in range(self.plan.daemons, self.plan.daemons + self.plan.drivers):
            self.hosts.running[slot].kill()

    def _make_target(self) -> None:
        self.path = self.folder / "target.db"
        database = sqlite3.connect(self.path)
        database.executescript(self.source.ddl())
        refused = {f"T-{number}" for number in (*self.plan.refused, *(one for one, _ in self.plan.more.poison))}
        database.executemany(f"INSERT INTO {self.source.refusals} VALUES (?)", [(name,) for name in sorted(refused)])
        database.commit()
        database.close()
        catalogue = self._catalogue_now()
        self._open(catalogue).prepare(self.application.log, catalogue)
        if self.second is not None:
            other = reflect(self.second.url)
            open_target(self.second.url, other).prepare("log/0", other)
            self.marks = CommonMarks({FIRST: self.path, SECOND: self.second.path})
            if self.plan.more.atomic:
                self._open_together(catalogue).prepare("log/0", catalogue)
        self.oracle = Oracle(self.source, self.path, allowed(self.plan, self.source, self.producer.interrupted))

    def _open_together(self, catalogue: Catalogue) -> AtomicTarget:
        assert self.second is not None
        urls = {FIRST: f"sqlite:///{self.path}", SECOND: self.second.url}
        return opened_together({name: open_target(urls[name], only(catalogue, ASSIGNMENT, name)) for name in urls})

    def _open(self, catalogue: Catalogue | None) -> Any:
        target = open_target(f"sqlite:///{self.path}", catalogue)
        return target if self.claims is None else ClaimedTarget(target, self.claims)

    def _taking(self, catalogue: Catalogue) -> LogTables:
        """Returns what the log takes by its settings file, which may name another log's tables too for some time."""
        if self.application.prefix and self.hub.now < (self.plan.more.two_logs or 0.0):
            catalogue = reflect(f"sqlite:///{self.path}")
        return log_tables(self.application.log, self.application.log, catalogue, ())

    def _catalogue_now(self) -> Catalogue:
        """Returns the target's catalogue, in which each second name of a table is a partition of it."""
        if not self._catalogue:
            found = {
                name: table for name, table in reflect(f"sqlite:///{self.path}").tables.items()
                if self.application.has(name)
            }  # fmt: skip
            for table in self.source.tables.values():
                if table.parted and table.name in found:
                    found[table.part] = replace(found[table.name], name=table.part, part_of=table.name)
            if self.second is not None:
                found |= reflect(self.second.url).tables
            self._catalogue.append(Catalogue(found))
        return self._catalogue[0]

    def read_catalogue(self, process: Process) -> Catalogue:
        """Returns the catalogue as a process reads it."""
        effects = Effects(self.faults, process, "target", TargetUnavailableError, NO_RESENDING)
        return effects.call("catalogue", self._catalogue_now)

    def client(self, service: str, process: Process) -> Any:
        """Returns boto3's client of a service, in a process."""
        if service == "kinesis":
            return SimKinesis(self.stream.by_name, self.faults, process)
        worker = self._worker(int(process.name.removeprefix("daemon").partition(".")[0]))
        return SimDynamoDB(self.table, self.faults, process, worker, self.hosts.broken, self.asking.judge)

    def _worker(self, slot: int) -> str:
        return "w" if self.plan.one_worker else f"w{slot}"

    # The parts.

    def _start_daemon(self, slot: int) -> None:
        process = self.hosts.process(f"daemon{slot}.{next(self.names)}", slot)
        stop = asyncio.Event()
        self.hosts.occupy(slot, process, lambda: self._start_daemon(slot))
        self.hosts.stops[slot] = lambda: process.loop.enter(stop.set)
        settings = settings_of(self.plan, self._worker(slot))
        if self.hub.now >= self.plan.more.striped_from:
            settings = replace(settings, log=replace(settings.log, stripes=self.plan.more.stripes))
        if self.hub.now < dict(enumerate(self.plan.more.changed)).get(slot, 0.0):
            settings = replace(settings, stream=unchanged(settings.stream))
        process.start(run_daemon(settings, stop), lambda error: self.hosts.ended(process, error))

    def _start_driver(self, slot: int) -> None:
        process = self.hosts.process(f"apply{slot}.{next(self.names)}", slot)
        stop = SimEvent(self.hub)
        plan = self.plan
        second = self.second if slot >= plan.daemons + plan.drivers else None
        name = "" if self.second is None or plan.more.atomic else FIRST if second is None else SECOND

        def one_of(which: str, target: Any, of: Process) -> SimTarget:
            if which == SECOND:
                return SimTarget(target, self.faults, of, self.seen_second, Limits(), self.second_gate, SECOND)
            return SimTarget(target, self.faults, of, self.seen, self.limits, self.gate)

        def wrapped(target: Any, of: Process = process) -> Any:
            if isinstance(target, AtomicTarget):
                return wrapped_together(target, lambda which, one: one_of(which, one, of), self.hosts.store_of(of))
            return one_of(name, target, of)

        def opened(catalogue: Catalogue | None) -> Any:
            if plan.more.atomic:
                assert catalogue is not None, "databases have catalogues"
                return self._open_together(catalogue)
            if catalogue is not None and name:
                catalogue = only(catalogue, ASSIGNMENT, name)
            return self._open(catalogue) if second is None else open_target(second.url, catalogue)

        def runner_of(target: Any, options: ApplyOptions) -> SimRunner:
            return SimRunner(
                self.faults, process, self.hosts.process, self.hosts.store_of,
                lambda of, opened: wrapped(opened, of), target, options, max(1, plan.instances),
            )  # fmt: skip

        def beside(feed: LogFeed) -> None:
            process.loop.enter(lambda: process.loop.create_task(feed.run()))

        parts = ApplyParts(
            self.hosts.store_of(process), lambda: self.read_catalogue(process), opened, wrapped, runner_of, beside,
            name, self.application.log, self._taking if self.claims is not None else None,
        )  # fmt: skip
        self.hosts.occupy(slot, process, lambda: self._start_driver(slot))
        self.hosts.stops[slot] = stop.set

        def work() -> None:
            failure: BaseException | None = None
            try:
                run_apply_job(plan, process.name, parts, stop, adopts=self.went_back.take_adoption())
            except Exception as error:
                failure = error
                self.went_back.heard(error)
            self.hub.after(0.0, lambda: self.hosts.ended(process, failure), process)

        self.hub.spawn(process, work)

    def _trim(self, age: float) -> None:
        """Lets old records vanish; of a shard of which the log has nothing, nobody can tell that some are lost."""
        if not self.faults.happens(f"records older than {age:g} s vanish"):
            return
        collected = load_state(self.store, "0").positions
        self.stream_lost.add(self.stream.trim(age), collected)
        self.oracle.allowed.discarded |= self.stream_lost.numbers

    def _told(self, shard: str) -> None:
        """Hears that records of a shard may be lost."""
        if shard not in self.stream_lost.shards:
            self.hosts.broken(f"records of {shard} are said to be gone, and all are there")
        self.stream_lost.told.add(shard)

    def _audit(self) -> None:
        """Looks whether everything is applied, and at the log: nothing unresolved, nothing failed without a cause."""
        state = load_state(self.store, "0")
        allowed = self.oracle.allowed
        failed = [unit for unit in state.units.values() if unit.status is UnitStatus.FAILED
                  and not (allowed.extras.may_fail(unit.uow) or allowed.odd.may_fail(unit.uow))]  # fmt: skip
        if failed and not self.plan.may_fail:
            self.hosts.broken(f"{failed[0].uow} has failed ({failed[0].cause}), and nothing is wrong with it")
        bound = self.plan.more.backlog_units
        most = MOST_RECORDS * (MOST_TOGETHER if self.plan.more.aggregated else 1)
        if bound and not self.plan.spread and len(state.units) > bound + most:
            self.hosts.broken(f"{len(state.units)} units wait to be applied; the bound is {bound}")
        if self.stream_lost.numbers:  # what else is there cannot be demanded any more
            self.settled = self.producer.done and self.stream_lost.judged(self.oracle.there, self.stream.filled) is None
            self.hub.after(AUDIT_S, self._audit)
            return
        applied = not self._missing() and not state.units and not state.open and self.producer.done
        applied = applied and not self.asking.is_open()
        self.settled = applied or self.went_back.settles()
        self.hub.after(AUDIT_S * (1 + self.plan.transactions // 500), self._audit)

    def _reshard(self, incident: Incident) -> None:
        match incident.what:
            case "split":
                shards = self.stream.open
                self.stream.split(shards[incident.whom % len(shards)])
            case "merge":
                shards = sorted(self.stream.open, key=lambda shard: shard.start)
                if len(shards) > 1:
                    at = incident.whom % (len(shards) - 1)
                    self.stream.merge(shards[at], shards[at + 1])
            case _:
                self.asking.ask(incident, sorted({self._worker(slot) for slot in range(self.plan.daemons)}))

    def log_rows(self) -> list[str]:
        """Returns the log's units."""
        try:
            return [f"{row.id} {row.uow} {row.status} {row.cause or ''}" for row in read_rows(self.store, "0")]
        except KainiteError as error:
            return [str(error)]
