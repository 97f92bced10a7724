"""One run of a scenario of two logs that write into one target, each as in :mod:`simulation.world`.

Each application has a stream, a log, daemons, apply jobs and an oracle of its own, and shares hosts, faults and the
target's database with the other one. Units of both have the same names and the same ids. What is promised of one log
must hold of each, whatever befalls the other. :mod:`simulation.claims` looks at the tables that they take.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from random import Random

from simulation.claims import ONLY, SECOND, Claims
from simulation.disturbances import some_incidents
from simulation.faults import Faults
from simulation.loop import Hub, Process
from simulation.parts import edges
from simulation.plan import Scenario
from simulation.world import LATE, Verdict, World, without_error

SEEDS_APART = 1_000_000_007
"""The second log's history is that of another seed."""


class TwoLogs:
    """Two worlds with one target."""

    def __init__(self, plan: Scenario, folder: Path, left_out: Collection[str] = ()) -> None:
        self._plan = plan
        self._hub = Hub()
        self._faults = Faults(self._hub, plan.seed, plan.rates, plan.until, left_out)
        names = itertools.count(1)
        self._worlds = [
            World(of_one, folder, hub=self._hub, application=application, names=names)
            for of_one, application in ((plan, ONLY), (of_second(plan), SECOND))
        ]

    def run(self) -> Verdict:
        """Runs the scenario to its verdict."""
        hub, faults, plan = self._hub, self._faults, self._plan
        for world in self._worlds:
            world.make(faults)
        claims = Claims(self._worlds[0].path, self._worlds[0].hosts.broken)
        for world in self._worlds:
            world.claims = claims
        with edges(
            hub, faults, plan,
            client=lambda service, process: self._of(process).client(service, process),
            store_of=lambda process: self._of(process).hosts.store_of(process),
            catalogue=lambda process: self._of(process).read_catalogue(process),
        ):  # fmt: skip
            try:
                problem = without_error(self._live)
            finally:
                hub.close()
        log = tuple(f"{world.application.log} {row}" for world in self._worlds for row in world.log_rows())
        for world in self._worlds:
            world.close()
        effects = sum(faults.counts.values())
        return Verdict(plan.seed, problem, tuple(faults.happened), hub.now, effects, log if problem else ())

    def _live(self) -> str | None:
        for world in self._worlds:
            world.begin()
        self._hub.run(lambda: all(world.settled for world in self._worlds), max(world.limit for world in self._worlds))
        for world in self._worlds:
            if (wrong := world.unfinished()) is not None:
                return f"{world.application.log}: {wrong}"
        self._hub.run(lambda: False, max(self._hub.now, self._faults.latest) + LATE)
        return None

    def _of(self, process: Process) -> World:
        """Returns the world that a process belongs to."""
        return next(world for world in self._worlds if process in world.hosts.made)


def of_second(plan: Scenario) -> Scenario:
    """Returns the plan of the second log: with another history, and other incidents."""
    rng = Random(f"second log {plan.seed}")
    incidents = tuple(some_incidents(rng, plan.until)) if plan.incidents else ()
    return replace(plan, seed=plan.seed + SEEDS_APART, incidents=incidents)
