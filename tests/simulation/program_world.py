"""One run of a scenario of programs on the log: owners (``kainite log serve``), programs, and the verdict.

Owners and programs are kept going by :mod:`simulation.hosts`; :mod:`simulation.programs` has what is demanded. When
faults have stopped, each program must get all that it means to append into the log, and each state all of the log,
within :data:`PATIENCE` seconds.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Collection
from random import Random
from typing import Any

from kainite.uow.catalogue.tables import Catalogue
from kainite.waltz.serving import serving_applications
from kainite.worker import log_service
from simulation.faults import Faults
from simulation.hosts import Hosts
from simulation.loop import Hub, Process
from simulation.oracle import BrokenPromiseError
from simulation.parts import edges, settings_of_owner
from simulation.plan import Programs, Scenario
from simulation.programs import PARTITION, Intent, Ledger, Notes, Program, Promises, waiting
from simulation.world import Verdict

PATIENCE = 120.0
"""Seconds, after the last fault, within which everything must be in the log and in the states."""

LATE = 12.0
"""Seconds for which the world goes on after that, and after the last zombie has woken up."""


class ProgramWorld:
    """Everything that outlives the processes."""

    def __init__(self, plan: Scenario, left_out: Collection[str] = ()) -> None:
        assert plan.more.programs is not None
        self._plan = plan
        self._hub = Hub()
        self._faults = Faults(self._hub, plan.seed, plan.rates, plan.until, left_out)
        self._faults.outages.extend(plan.outages)
        self._hosts = Hosts(plan, self._hub, self._faults, PARTITION)
        self._promises = Promises(self._durable, self._hosts.broken)
        self._intents = intents_of(plan.more.programs, Random(f"intents {plan.seed}"))
        self._promises.intents |= {one.name: one for some in self._intents for one in some}
        self._notes = [Notes() for _ in self._intents]
        self._ledgers = [Ledger() for _ in self._intents]
        if plan.more.programs.shared:
            self._ledgers = [self._ledgers[0]] * len(self._intents)
        self._names = itertools.count(1)
        self._settled = False

    def run(self) -> Verdict:
        """Runs the scenario to its verdict."""
        plan, hub = self._plan, self._hub
        parts: Any = {"client": lambda *_: None, "store_of": self._hosts.store_of, "catalogue": lambda _: Catalogue({})}
        with edges(hub, self._faults, plan, **parts):
            try:
                problem = self._live()
            finally:
                hub.close()
        log = tuple(f"{number} {data.decode()}" for number, data in enumerate(self._promises.log)) if problem else ()
        return Verdict(
            plan.seed, problem, tuple(self._faults.happened), hub.now, sum(self._faults.counts.values()), log
        )

    def _live(self) -> str | None:
        plan, hub = self._plan, self._hub
        for slot in range(plan.daemons):
            self._start_owner(slot)
        for slot in range(plan.daemons, plan.daemons + len(self._intents)):
            self._start_program(slot)
        self._hosts.expect()
        hub.after(1.0, self._audit)
        try:
            hub.run(lambda: self._settled, plan.until + PATIENCE)
            if not self._settled:
                return f"{PATIENCE:g} s after the last fault {self._lacking()}"
            hub.run(lambda: False, max(hub.now, self._faults.latest) + LATE)
            self._promises.look()
        except BrokenPromiseError as broken:
            return str(broken)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return str(hub.errors[0]) if hub.errors else None

    def _lacking(self) -> str:
        left = [name for some, notes in zip(self._intents, self._notes, strict=True) for name in waiting(some, notes)]
        if left:
            return f"these are not appended: {', '.join(left)}"
        if missing := self._promises.missing({name for notes in self._notes for name in notes.done}):
            return f"these are done and not in the log: {', '.join(missing)}"
        marks = [ledger.mark for ledger in self._ledgers]
        return f"the log has {len(self._promises.log)} transactions, and the states are at {marks}"

    def _audit(self) -> None:
        self._promises.look()
        tail = len(self._promises.log) - 1
        done = not any(waiting(*each) for each in zip(self._intents, self._notes, strict=True))
        missing = self._promises.missing({name for notes in self._notes for name in notes.done})
        self._settled = done and not missing and all(ledger.mark == tail for ledger in self._ledgers)
        self._hub.after(1.0, self._audit)

    def _durable(self, first: int) -> list[bytes]:
        batches = self._hosts.store.read_batches(PARTITION, first, strong=True)
        return [entry.data for batch in batches for _, entry in batch.entries_from(first)]

    def _start_owner(self, slot: int) -> None:
        process = self._hosts.process(f"owner{slot}.{next(self._names)}", slot)
        stop = asyncio.Event()
        self._hosts.occupy(slot, process, lambda: self._start_owner(slot))
        self._start(
            slot,
            process,
            log_service.serve(settings_of_owner(self._plan, f"w{slot}"), stop, serving_applications),
            stop,
        )

    def _start_program(self, slot: int) -> None:
        process = self._hosts.process(f"program{slot}.{next(self._names)}", slot)
        number, stop = slot - self._plan.daemons, asyncio.Event()
        self._hosts.occupy(slot, process, lambda: self._start_program(slot))
        plan = self._plan.more.programs
        assert plan is not None
        program = Program(
            process, self._faults, self._hosts.store_of(process), self._ledgers[number], self._notes[number],
            self._intents[number], self._promises, 2 * self._plan.until * plan.workers / plan.intents,
        )  # fmt: skip
        self._start(slot, process, program.run(plan.workers, stop), stop)

    def _start(self, slot: int, process: Process, main: Any, stop: asyncio.Event) -> None:
        self._hosts.stops[slot] = lambda: process.loop.enter(stop.set)
        process.start(main, lambda error: self._hosts.ended(process, error))


def intents_of(programs: Programs, rng: Random) -> list[list[Intent]]:
    """Returns what each program means to append."""
    return [[_intent(programs, rng, maker, number) for number in range(programs.intents)]
            for maker in range(programs.count)]  # fmt: skip


def _intent(programs: Programs, rng: Random, maker: int, number: int) -> Intent:
    name, own = f"{maker}-{number}", -1 - maker
    if programs.validate:
        return Intent(name, write=(0,), gives_up=rng.random() < 0.1)
    if rng.random() < programs.loose:
        return Intent(name, again=False)
    locks = [rng.randrange(programs.locks) for _ in range(3)]
    write, read, append = ([lock] if rng.random() < 0.5 else [] for lock in locks)
    return Intent(name, (own, *write), tuple(read), tuple(append), gives_up=rng.random() < 0.1)
